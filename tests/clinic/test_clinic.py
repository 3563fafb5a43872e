"""The clinic: recorded trainings replayed as they grew, and a few trained anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from clinic_cases import CASES, HEALTHY, SICK
from clinic_records import RECORDS, read, write
from clinic_replay import Replayed, replay
from clinic_training import train

from attnscope.watched.chart import Chart, chart_of
from attnscope.watched.course import Course


@pytest.fixture(scope="module")
def replayed() -> list[Replayed]:
    """The judged half, replayed from its recordings."""
    charts = read()
    return [replay(case, charts[case.name]) for case in CASES if case.half == "judged"]


def test_the_clinic_is_as_large_as_it_says() -> None:
    for half in ("fixing", "judged"):
        sick = [case for case in SICK if case.half == half]
        assert len({case.disease for case in sick}) >= 12
        assert len([case for case in HEALTHY if case.half == half]) >= 12
    assert len({case.name for case in CASES}) == len(CASES)
    # No training is in both halves.
    fixing, judged = ({c.seed for c in CASES if c.half == h} for h in ("fixing", "judged"))
    assert not fixing & judged
    assert RECORDS.stat().st_size < 200_000


def test_diseases_that_were_held_back_are_named(replayed: list[Replayed]) -> None:
    sick = [one for one in replayed if one.case.disease]
    missed = [one.case.name for one in sick if not one.named]
    assert len(missed) * 12 <= len(sick), missed


def test_healthy_trainings_are_left_in_peace(replayed: list[Replayed]) -> None:
    alarms = {one.case.name: one.alarms for one in replayed if one.alarms}
    readings = sum(one.readings for one in replayed)
    assert readings > 600
    assert 1000 * sum(alarms.values()) <= readings, alarms


def test_what_begins_late_is_dated(replayed: list[Replayed]) -> None:
    for one in replayed:
        if one.case.disease == "spike" and one.named:
            assert 0 <= one.dated - one.case.onset <= 15, one.case.name


@pytest.mark.parametrize(
    "name",
    [
        "diverging-overflow-encoder-pre2-adamw-3",
        "dead_heads-dead_head-vision-pre2-adamw-23",
        "healthy-encoder-pre2-adam-111",
    ],
)
def test_trained_anew(name: str, tmp_path: Path) -> None:
    """The same from a fresh training through the recorder, so that recordings do not grow stale."""
    torch.set_num_threads(1)
    (case,) = [case for case in CASES if case.name == name]
    found = replay(case, chart_of(train(case, tmp_path / "run")), stride=5)
    assert found.alarms == 0
    assert found.named or not case.disease


def test_recordings_come_back(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan], [np.inf, 1e-30], [0.0, -1 / 3]])
    chart = Chart({"loss": Course(np.array([0, 1, 7]), values)}, {"layers": ["a"], "other": 1})
    write({"one": chart, "two": chart}, tmp_path / "records")
    back = read(tmp_path / "records")
    assert list(back) == ["one", "two"]
    np.testing.assert_array_equal(back["two"].courses["loss"].steps, [0, 1, 7])
    np.testing.assert_allclose(back["two"].courses["loss"].values, values, rtol=2**-8)
    assert back["one"].spec == {"layers": ["a"]}
