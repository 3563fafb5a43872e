"""The studies of Edelman 2024, smaller than quick: claims and controls decide as they should."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.claims import examine_all
from attnscope.errors import AttnscopeError
from attnscope.experiment import solve
from attnscope.studies._markov import TIED, closest, lead
from attnscope.studies.edelman2024 import Minimal, Phases, TransitionTimes


def test_the_transition_is_predicted_over_a_factor_of_100() -> None:
    study = TransitionTimes.at("quick", seeds=1, rates=(10.0, 1000.0), length=16, points=61)
    run = study.read(solve(study).tree)
    for found in examine_all(study.claims(), run):
        assert found.verdict == "holds", found
        assert found.control_fails, found
    assert len(study.figures(run)) == 2
    (table,) = study.tables(run)
    assert len(table.rows) == 3


def test_phases_of_a_short_run_are_read_right() -> None:
    # As long as it takes to reach the unigram rule: no bigram phase, and the claim says so.
    study = Phases.at("quick", seeds=1, steps=40, length=16, held_out=64, batch=32)
    run = study.read(solve(study).tree)
    found = {each.key: each for each in examine_all(study.claims(), run)}
    assert found["one-layer"].verdict == "holds"
    assert found["phases"].verdict == "fails"
    assert run.kl.sizes["answer"] == 4
    assert float(run.theory.cost[2]) < float(run.theory.cost[1]) < float(run.theory.cost[0])
    assert study.figures(run)
    (table,) = study.tables(run)
    gap = table.columns.index("runner-up at the end further off by (nats)")
    assert all(row[gap] > 0 and row[gap + 1] == 0 for row in table.rows)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Phases(states=1), "states = 1"),
        (lambda: Phases.at("quick", batch=None), "batch = None"),
        (lambda: TransitionTimes(rates=(1.0,)), "rates = \\(1.0,\\): expected two"),
        (lambda: TransitionTimes(states=1), "states = 1"),
        (lambda: Minimal(sequences=400, length=64), "sequences = 400 of length = 64"),
        (lambda: Minimal(unigram_share=1.0), "unigram_share = 1"),
        (lambda: Minimal(length=4), "length = 4"),
    ],
)
def test_what_is_refused_is_quoted(make: object, said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        make()  # type: ignore[operator]


def test_a_batch_of_one_trains() -> None:
    study = Phases.at("quick", seeds=1, steps=2, length=8, held_out=4, batch=1)
    assert attnscope.Study in type(study).__mro__
    assert study.read(solve(study).tree).kl.notnull().all()


def test_two_rules_that_are_equally_close_are_a_tie() -> None:
    kl = xr.DataArray(
        [[0.2, 0.2, 0.3], [0.1, 0.2, 0.3], [0.3, 0.2, 0.2 + 1e-9], [np.nan] * 3],
        dims=("step", "strategy"),
    )
    assert closest(kl, "strategy").to_numpy().tolist() == [TIED, 0, TIED, TIED]
    assert np.allclose(lead(kl, "strategy"), [0, 0.1, 1e-9, np.nan], equal_nan=True)
    # The truth is no strategy, however close it is.
    answers = xr.DataArray([0.4, 0.3, 0.1, 0.0], dims="answer")
    assert (int(closest(answers)), round(float(lead(answers)), 9)) == (2, 0.2)


def test_the_outcome_says_by_how_much_a_rule_is_closest() -> None:
    study = Minimal(sequences=10, length=8, points=21, until=1.0)
    run = study.read(solve(study).tree)
    assert re.search(
        r"closest to the \w+ rule \(the \w+ rule is [\d.e-]+ nats further off\)",
        study.outcome(run, []),
    )
    run.tree["observables/kl"][:] = 0.25
    assert re.search(
        r"as close to the \w+ rule as to the \w+ rule \(0 nats between them\)",
        study.outcome(run, []),
    )
