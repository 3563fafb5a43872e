"""Runs to the end of time, few of them; runs that never saturate; bad settings."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope import AttnscopeError
from attnscope.claims import examine_all
from attnscope.experiment import solve
from attnscope.studies.tarzanagh2023 import JointStudy, SelectionStudy, TailStudy
from attnscope.studies.tarzanagh2023.selection import PICTURES
from attnscope.trajectory import Readings


@pytest.fixture(scope="module")
def tail() -> tuple[TailStudy, Readings]:
    study = TailStudy(seeds=8, per_decade=2, descents=1)
    return study, study.read(solve(study).tree)


@pytest.fixture(scope="module")
def selection() -> tuple[SelectionStudy, Readings]:
    study = SelectionStudy(seeds=6, per_decade=2, widths=(2, 4), most_steps=200)
    return study, study.read(solve(study).tree)


def test_the_tail_and_its_controls(tail: tuple[TailStudy, Readings]) -> None:
    study, run = tail
    found = {finding.key: finding for finding in examine_all(study.claims(), run)}
    assert found["direction-1e30-logistic"].verdict == "holds"
    assert found["descent"].ours < 1e-3
    own = run.of("logistic").theory
    assert own.share.mean() > 0.8
    assert own.share_equal.mean() < 0.2
    assert own.share_plain.mean() < 0.02
    assert own.correlation_swapped.max() < 0.92
    assert (run.of("logistic").stats.evaluations <= 1000).all()
    assert all(f.control_fails for key, f in found.items() if key != "late-switches")


def test_figures_and_tables_of_the_tail(tail: tuple[TailStudy, Readings]) -> None:
    study, run = tail
    (figure,) = study.figures(run)
    assert figure.panels[0].marks
    ends, _ = study.tables(run)
    assert [row[0] for row in ends.rows][-1] == "gradients"


def test_a_run_that_does_not_saturate_is_stopped_and_said(
    selection: tuple[SelectionStudy, Readings],
) -> None:
    study, run = selection
    narrow = run.of("d = 2")
    stopped = narrow.stats.outcome.to_numpy() == "stopped"
    assert stopped.any()
    problem = study.build("d = 2", int(stopped.argmax()))
    ended = study.training.run(
        problem.model, problem.loss, time=study.end, record=(), stop=problem.stop
    )
    assert "after 200 attempted steps: attention did not saturate" in ended.status
    assert not narrow.theory.saturated.to_numpy()[stopped].all()
    assert (narrow.theory.reachable == 0).any()
    assert np.isfinite(narrow.theory.locally).all()


def test_what_is_chosen(selection: tuple[SelectionStudy, Readings]) -> None:
    study, run = selection
    found = {finding.key: finding for finding in examine_all(study.claims(), run)}
    assert found["one-input"].verdict == "holds"
    assert found["one-input"].control == pytest.approx(2 / 3)
    assert found["nuclear"].verdict == "holds"
    assert found["nuclear"].control_fails
    first, second = (run.of(case).theory.token.to_numpy() for case in PICTURES)
    assert first.tolist() == [0] * 6
    assert second.tolist() == [0, 0, 0, 0, 1, 1]
    assert len(study.figures(run)) == 3
    (printed,) = study.printed(run)
    assert [row[0] for row in printed.rows] == list(study.cases)


def test_a_batch_of_one_input() -> None:
    study = TailStudy(seeds=1, inputs=1, until=1e6, descents=0)
    run = study.read(solve(study).tree)
    assert run.of("logistic").theory.locally.item() == 1
    assert study.tables(run)
    assert study.figures(run)


def test_the_gap_of_a_tie_between_tokens_is_printed(
    selection: tuple[SelectionStudy, Readings],
) -> None:
    study, run = selection
    (printed,) = study.printed(run)
    assert printed.columns[-1] == "least gap of logits"
    assert all(np.isfinite(row[-1]) and row[-1] >= 0 for row in printed.rows)


def test_an_input_of_one_token() -> None:
    with pytest.raises(AttnscopeError, match="there is nothing to choose"):
        TailStudy(tokens=1)


def test_a_time_without_a_decade() -> None:
    with pytest.raises(AttnscopeError, match="until a time of"):
        TailStudy(until=0.05)


def test_attention_and_values_together() -> None:
    study = JointStudy(seeds=2, steps=400)
    run = study.read(solve(study).tree)
    found = {finding.key: finding for finding in examine_all(study.claims(), run)}
    assert {f.verdict for f in found.values()} == {"holds"}
    assert all(f.control_fails for f in found.values())
    assert len(study.figures(run)[0].panels) == 4
    (table,) = study.tables(run)
    assert [row[-1] for row in table.rows] == pytest.approx([0.944444, 0.5], abs=1e-6)
