"""A sweep in the lab: its list, its diagrams, and the run behind a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lab_folders import EVIL, ask, served

import attnscope
from attnscope.studies.song2024 import RegressionRun

Place = tuple[str, int]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    runs = tmp_path_factory.mktemp("lab") / "runs"
    attnscope.sweep(
        RegressionRun(until=1.0, points=5),
        {"width": [2, 8], "sequences": [1, 4]},
        runs / "certificate",
        workers=1,
    )
    (runs / "broken").mkdir()
    (runs / "broken" / "sweep.json").write_text('{"axes": 3')
    (runs / "sly").mkdir()
    (runs / "sly" / "sweep.json").write_text(
        f'{{"axes": [{{"fields": ["m"]}}], "study": "{EVIL}", "status": "x"}}'
    )
    with served(runs) as made:
        yield made


def got(place: Place, path: str, status: int = 200) -> str:
    answer = ask(place, path)
    assert answer.status == status
    return answer.text


def test_sweeps_are_listed_whatever_is_in_their_manifests(place: Place) -> None:
    page = got(place, "/runs")
    assert '<a href="/sweeps/certificate/">certificate</a>' in page
    assert "width × sequences" in page
    assert "its manifest sweep.json is damaged" in page
    assert EVIL not in page


def test_a_click_on_a_cell_opens_its_run(place: Place) -> None:
    page = got(place, "/sweeps/certificate/?claim=fits")
    assert "HD = Nn" in page
    cells = re.findall(r'href="(/sweeps/certificate/points/\d+)"', page)
    assert len(cells) == 4
    report = got(place, cells[3])
    assert "width = 8, sequences = 4" in report
    assert "The loss, and what is certain about it before training" in report


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/sweeps/certificate/?claim=none", "decides no claim"),
        ("/sweeps/certificate/points/77", "There is no point 77"),
        ("/sweeps/none/", "not"),
        ("/sweeps/broken/", "sweep.json"),
        ("/sweeps/certificate/report", "cannot be read"),
    ],
)
def test_what_is_not_there_is_a_sentence(place: Place, path: str, told: str) -> None:
    assert told in got(place, path, 404)
