"""What a run would cost, found out without running it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from torch import Tensor, nn

from attnscope.catalogue import load, names
from attnscope.cli import main
from attnscope.engines import Final, Logarithmic, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, estimate
from attnscope.experiment.estimate import CaseCost, Estimate
from attnscope.experiment.estimate import _seconds as seconds_of
from attnscope.scales import SCALES
from toy_study import Bowl, Point


@pytest.mark.parametrize("name", names())
def test_every_study_has_every_scale(name: str) -> None:
    for scale in SCALES:
        assert load(name).at(scale).to_json()  # type: ignore[arg-type]


@pytest.mark.usefixtures("data_if_here")
@pytest.mark.parametrize("name", names())
def test_a_dry_run_says_what_a_study_takes(name: str) -> None:
    try:
        study = load(name).at("quick", seeds=1)
        cost = estimate(study, workers=2, budget=0.0)
    except (AttnscopeError, ImportError) as error:
        pytest.skip(str(error))  # Its data are not here.
    assert cost.runs == len(study.runs())
    assert all(case.seconds > 0 and case.bytes > 0 and case.measured for case in cost.cases)
    assert cost.processor >= cost.seconds > 0


def test_steps_and_bytes_are_counted_exactly() -> None:
    study = Bowl().but(engine="descent", epochs=300, points=31)
    cost = estimate(study, workers=1)
    assert [case.steps for case in cost.cases] == [300, 300]
    assert [case.bytes for case in cost.cases] == [31 * (2 + 1) * 8] * 2
    assert cost.sentences()[0] == "4 runs of 2 cases, 300 steps each."


class _Clock:
    """A processor on which a loss takes a second, and a reading ten or a hundred."""

    now = 0.0

    def process_time(self) -> float:
        return self.now

    def takes(self, seconds: float, model: nn.Module) -> Tensor:
        self.now += seconds
        return model.get_parameter("x").square().sum()


@dataclass(frozen=True)
class _Read(Bowl):
    """Readings that are close together at first, and some at both ends alone."""

    def build(self, case: str, seed: int) -> Problem:
        def taking(name: str, seconds: float) -> Observable:
            return Observable(name, lambda model: CLOCK.takes(seconds, model))

        often = Record((taking("often", 10.0),), Logarithmic(11, 0.1))
        ends = Record((taking("ends", 100.0),), Final(), dim="end")
        return Problem(Point((1.0,)), lambda model: CLOCK.takes(1.0, model), [often, ends])


CLOCK = _Clock()


def test_readings_among_the_measured_steps_do_not_count_as_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 16 runs of snell2021.keyword a dry run once said six times what they take."""
    monkeypatch.setattr(sys.modules[CaseCost.__module__], "clock", CLOCK)
    study = _Read().but(engine="descent", epochs=1000)
    cost = estimate(study, workers=1, budget=60.0)
    points = len(Logarithmic(11, 0.1).times(100.0))
    assert cost.cases[0].seconds == 1000 * 1.0 + points * 10.0 + 2 * 100.0


def test_a_reading_that_takes_minutes_is_measured_once() -> None:
    """A dry run of song2024.landscape took eight minutes."""
    begun, read = CLOCK.now, Record((Observable("long", lambda m: CLOCK.takes(100.0, m)),), Final())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[CaseCost.__module__], "clock", CLOCK)
        assert seconds_of(read, Point((1.0,))) == 100.0
    assert CLOCK.now - begun == 100.0


def test_what_may_end_earlier_is_said_to_be_the_most() -> None:
    case = CaseCost("a", 1, 100, 3, 1.0, 10, 0.5)
    said = "Runs may end earlier, by conditions of the study: that is the most."
    assert said not in Estimate((case,), 1, 1, 1).sentences()
    assert said in Estimate((replace(case, stops=True),), 1, 1, 1).sentences()
    whole = replace(case, stops=True, done=1.0)  # The trial was the run.
    assert said not in Estimate((whole,), 1, 1, 1).sentences()


def test_time_is_shared_by_processes_but_no_shorter_than_a_run() -> None:
    cases = (CaseCost("a", 3, 10, 3, 60.0, 100, 0.1), CaseCost("b", 3, 10, 3, 20.0, 100, 0.1))
    two = Estimate(cases, workers=2, memory=10, checkpoint=50)
    assert (two.processor, two.seconds, two.disk) == (240.0, 120.0, 700)
    assert Estimate(cases, 100, 10, 50).seconds == 60.0


def test_the_command_line_prints_it_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "lu2021.sen", "--scale", "desk", "--seeds", "2", "--dry-run"]) == 0
    said = capsys.readouterr().out
    for word in ("8 runs of 4 cases", "time: about", "memory: about", "disk: at most"):
        assert word in said
    assert not list(tmp_path.iterdir())


def test_a_scale_that_is_none_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="scale = 'hour': expected 'quick' or 'desk' or"):
        Bowl.at("hour")  # type: ignore[arg-type]
