"""The page on data over HTTP: what it answers, what it refuses, and how much it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_folders import ask, served
from tornado.web import HTTPError

from attnscope.errors import AttnscopeError
from attnscope.lab.server import serve
from attnscope.lab.table_page import EXAMPLE, LARGEST, wished

Place = tuple[str, int]


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "mine.csv"
    path.write_text(EXAMPLE + "\n")
    (path.parent / "secret.csv").write_text(EXAMPLE + "\n")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, mine: Path) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("runs"), tables=(str(mine),)) as made:
        yield made


def post(place: Place, wish: Any, **headers: str) -> tuple[int, list[dict[str, Any]]]:
    body = wish if isinstance(wish, bytes) else json.dumps(wish).encode()
    answer = ask(place, "/data/scene", headers, "POST", body)
    lines = [json.loads(line) for line in answer.text.splitlines() if line.startswith("{")]
    return answer.status, lines


def test_the_page_offers_the_named_file(place: Place, mine: Path) -> None:
    page = ask(place, "/data")
    assert page.status == 200
    assert f'<option value="{mine}">mine.csv</option>' in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


def test_a_pasted_table_a_named_file_and_a_training_are_answered(place: Place, mine: Path) -> None:
    status, lines = post(place, {"table": EXAMPLE, "smoothing": 1.0})
    assert status == 200
    assert lines[-1]["kind"] == "said"
    status, named = post(place, {"name": str(mine)})
    assert named[-1]["sentences"] == lines[-1]["sentences"]
    status, trained = post(place, {"key": lines[-1]["key"], "train": True, "epochs": 300})
    assert trained[-1]["kind"] == "trained"


def test_a_file_that_was_not_named_is_not_read(place: Place, mine: Path) -> None:
    for name in (str(mine.parent / "secret.csv"), "/etc/passwd", "../secret.csv"):
        _, lines = post(place, {"name": name})
        assert len(lines) == 1
        assert "is not one of the sets and files of this lab" in lines[0]["sorry"]


def test_bad_tables_are_sentences_and_the_lab_lives_on(place: Place) -> None:
    _, lines = post(place, {"table": "label,text\na,b,c\n"})
    assert "line 2: there are 3 columns" in lines[-1]["sorry"]
    _, lines = post(place, {"table": "  \n"})
    assert "The box is empty" in lines[-1]["sorry"]
    for body in (b"", b"[1]", b"\xff", b"[" * 100_000):
        status, lines = post(place, body)
        assert status == 400
        assert "sorry" in lines[-1]
    assert ask(place, "/data").status == 200


def test_too_much_is_refused_and_foreign_pages_are(place: Place) -> None:
    body = json.dumps({"table": "a,b\n" * (LARGEST // 3)}).encode()
    try:
        status, _ = post(place, body)
    except (ConnectionError, OSError):
        status = 400  # The connection is closed before all of it is taken.
    assert status == 400
    status, _ = post(place, {"table": EXAMPLE}, Origin="http://evil.example")
    assert status == 403
    assert ask(place, "/data").status == 200


WISHES = st.dictionaries(
    st.sampled_from(["table", "name", "key", "smoothing", "epochs", "train", "text", "label"]),
    st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.booleans(), st.none()),
)


@given(WISHES)
def test_whatever_is_sent_is_a_wish_or_a_sentence(sent: dict[str, Any]) -> None:
    try:
        found = wished(json.dumps(sent).encode(), {"sst2"})
    except (AttnscopeError, HTTPError):
        return
    assert found["name"] in (None, "sst2")
    assert isinstance(found["train"], bool)
    assert 0 < found["smoothing"] <= 100
    assert 0 < found["epochs"] <= 300_000


def test_a_table_that_is_not_there_is_said_before_the_lab_starts(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"--data .*gone\.csv: there is no such file"):
        serve(tmp_path, tables=[str(tmp_path / "gone.csv")])
