"""Closed forms of what strategies cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr

from attnscope.errors import AttnscopeError
from attnscope.tasks.markov_chains import MarkovChains
from attnscope.theory.edelman2024 import infinite_context, laplace_regret, one_look, row_entropy


@pytest.mark.parametrize(
    ("visits", "states", "cost"),
    [
        (0, 2, 0.19315),
        (1, 2, 0.13651),
        (20, 2, 0.02162),
        (100, 2, 0.00483),
        (0, 3, 0.26528),
        (5, 3, 0.11048),
        (100, 3, 0.00952),
    ],
)
def test_regret(visits: int, states: int, cost: float) -> None:
    assert laplace_regret(visits, states) == pytest.approx(cost, abs=6e-6)


def test_regret_against_the_integral_over_one_row() -> None:
    # After m visits, c of them to state 0: the chance of that is uniform over c, and the row then
    # has a Beta(c + 1, m - c + 1) law whose mean the rule answers with.
    for m in (0, 3, 7):
        chance = (np.arange(m + 1) + 1) / (m + 2)
        expected = (entr(chance) + entr(1 - chance)).mean() - 0.5
        assert laplace_regret(m, 2) == pytest.approx(expected, abs=1e-12)
    assert 200 * laplace_regret(200, 5) == pytest.approx(2, rel=0.05)


def test_costs_with_infinite_context() -> None:
    def inner(p: float) -> float:
        return 2 * (entr(p) + entr(1 - p)) * (1 - p * np.log1p(1 / p))

    found = infinite_context(2)
    assert found.entropy_rate == pytest.approx(quad(inner, 0, 1)[0], abs=1e-6)
    assert found.unigram == pytest.approx(0.0830, abs=5e-4)
    three = infinite_context(3)
    assert (three.uniform, three.unigram) == pytest.approx((0.2791, 0.1599), abs=1e-3)
    assert row_entropy(2) == 0.5


def test_one_look_against_chains() -> None:
    # A state of 44 steps back says as much as the stationary law.
    tokens = MarkovChains(2, 60).sample(40_000, 0).tokens.numpy()
    same = (tokens[:, -1] == tokens[:, 15]).mean()
    assert entr(same) + entr(1 - same) == pytest.approx(one_look(2), abs=5e-3)
    assert one_look(2) < np.log(2)
    assert one_look(3) < np.log(3)


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="states = 1"):
        one_look(1)
    with pytest.raises(AttnscopeError, match="states = 1"):
        row_entropy(1)
    with pytest.raises(AttnscopeError, match="visits = -1"):
        laplace_regret(-1, 2)
