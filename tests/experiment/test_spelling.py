"""The command and the Python that a report prints make exactly the run it shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.cli.verbs.run import parse
from attnscope.experiment.spec import settings
from attnscope.results import command_line, python_lines
from attnscope.studies.lu2021 import Capacity, Cnn, Query, Sen, Synergy
from attnscope.trajectory import open_run
from toy_study import Bowl

NUMBERS = st.floats(1e-8, 1e3, allow_nan=False)


def floats(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of either sign; those that nothing could be computed with are refused elsewhere."""
    return st.floats(low, high).map(lambda x: x if abs(x) > 1e-90 else 0.0)


COMMON = {
    "seeds": st.integers(1, 40),
    "engine": st.sampled_from(["flow", "descent"]),
    "lr": st.floats(1e-6, 10.0),
    "epochs": st.integers(1, 10**6),
    "points": st.integers(2, 1000),
    "correct": st.booleans(),
    "variance": NUMBERS,
}
OWN: dict[type[Any], dict[str, st.SearchStrategy[Any]]] = {
    Sen: {"m": st.integers(1, 50), "words_per_topic": st.integers(1, 3)},
    Capacity: {"dictionary": st.integers(1, 10**4)},
    Synergy: {"projection": floats(-3, 3), "early": st.integers(1, 5000)},
    Query: {"query_variances": st.lists(NUMBERS, min_size=2, max_size=5).map(tuple)},
    Cnn: {"length": st.integers(8, 12), "dim": st.integers(1, 30)},
    Bowl: {
        "start": st.lists(floats(-5, 5), min_size=1, max_size=4).map(tuple),
        "talkative": st.booleans(),
        "weight": floats(-1e-3, 1e9),
        "fault": st.sampled_from(["", "two words", "it's"]),
    },
}


def specs(cls: type[Any]) -> st.SearchStrategy[Any]:
    fields = settings(cls())
    shared = {name: strategy for name, strategy in COMMON.items() if name in fields}
    return st.fixed_dictionaries({}, optional={**shared, **OWN[cls]}).map(
        # Gradient descent has no correction to make.
        lambda f: cls(**{k: v for k, v in f.items() if k != "correct" or "engine" not in f})
    )


@pytest.mark.parametrize("cls", list(OWN))
@given(data=st.data())
def test_the_command_line_parses_back_to_the_spec(cls: type[Any], data: st.DataObject) -> None:
    study = data.draw(specs(cls))
    words = shlex.split(command_line(study))
    assert words[:3] == ["attnscope", "run", cls.name()]
    options, again = parse(cls, words[3:])
    assert again == study
    assert options.scale == "paper"


@pytest.mark.parametrize("cls", list(OWN))
@given(data=st.data())
def test_json_and_python_give_the_spec_back(cls: type[Any], data: st.DataObject) -> None:
    study = data.draw(specs(cls))
    assert cls.from_json(study.to_json()) == study
    made: list[Any] = []
    lines = python_lines(study).split("\n")
    scope: dict[str, Any] = {"attnscope": type("Stub", (), {"run": made.append})}
    exec("\n".join(line for line in lines if line.startswith(("from", "run ="))), scope)
    assert made == [study]


def test_a_default_spec_needs_no_flags() -> None:
    assert command_line(Sen()) == "attnscope run lu2021.sen"
    assert "Sen()" in python_lines(Sen())


def test_the_python_lines_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    study = Capacity().but(seeds=2, epochs=200, dictionary=60, train=40, test=20, m=4, points=21)
    scope: dict[str, Any] = {}
    exec(python_lines(study), scope)
    folder = tmp_path / "runs" / study.identity()
    assert open_run(folder.relative_to(tmp_path)).identical(scope["run"])
    assert (folder / "report.html").stat().st_size > 10_000
    claims = [each for claim in study.claims() for each in claim.expanded()]
    assert len(capsys.readouterr().out.splitlines()) == len(claims)
