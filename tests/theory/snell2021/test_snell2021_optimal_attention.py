from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from attnscope.errors import AttnscopeError
from attnscope.theory.snell2021 import (
    correct_probability,
    frank_wolfe_gap,
    near_equation_30,
    optimal_attention,
    random_optimum,
)

COUNTEREXAMPLE = [[0, 0, 0], [0, -10, 5], [0, 5, -10]]


def loss(alpha: np.ndarray, gamma: np.ndarray, shift: np.ndarray, right: int) -> float:
    values = alpha @ gamma + shift
    return float(logsumexp(values) - values[right])


def test_counterexample_of_eq_30() -> None:
    best = optimal_attention(COUNTEREXAMPLE, 0)
    assert best.alpha == pytest.approx([0, 0.5, 0.5], abs=1e-7)
    assert float(best.probability) == pytest.approx(1 / (1 + 2 * np.exp(-2.5)), abs=1e-8)
    small = 1 / (1 + np.exp(-10) + np.exp(5))
    assert best.beta == pytest.approx([1 / 3, small, small], rel=1e-12)
    assert bool(best.neglects)
    assert float(best.gap) < 1e-8


def test_gap_certifies_the_loss_of_another_solver() -> None:
    rng = np.random.default_rng(0)
    gamma = 3 * rng.standard_normal((30, 6, 8))
    shift = rng.standard_normal((30, 8))
    right = rng.integers(8, size=30)
    best = optimal_attention(gamma, right, shift)
    assert best.gap.max() <= 1e-8
    assert best.alpha.min() >= 0
    assert best.alpha.sum(axis=1) == pytest.approx(np.ones(30), abs=1e-12)
    sums = {"type": "eq", "fun": lambda a: a.sum() - 1}
    for n in range(30):
        ours = loss(best.alpha[n], gamma[n], shift[n], right[n])
        assert ours == pytest.approx(-np.log(best.probability[n]), rel=1e-9, abs=1e-12)
        other = minimize(
            loss,
            np.full(6, 1 / 6),
            (gamma[n], shift[n], right[n]),
            "SLSQP",
            bounds=[(0, 1)] * 6,
            constraints=sums,
            options={"ftol": 1e-12, "maxiter": 500},
        )
        point = np.maximum(other.x, 0) / np.maximum(other.x, 0).sum()
        theirs = loss(point, gamma[n], shift[n], right[n])
        assert theirs >= ours - 1e-8
        assert theirs == pytest.approx(ours, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 100.0])
def test_gap_is_reached_at_every_scale(scale: float) -> None:
    rng = np.random.default_rng(1)
    gamma = scale * rng.standard_normal((40, 12, 9))
    right = rng.integers(9, size=40)
    best = optimal_attention(gamma, right)
    assert best.gap.max() <= 1e-8
    # No position alone does better than the optimum.
    assert (best.probability >= best.beta.max(axis=1) - 1e-8).all()


def test_two_outputs_look_at_the_largest_beta_alone() -> None:
    rng = np.random.default_rng(2)
    gamma = rng.standard_normal((100, 7, 2))
    best = optimal_attention(gamma, np.zeros(100))
    assert (best.alpha.argmax(axis=1) == best.beta.argmax(axis=1)).all()
    assert not best.neglects.any()
    assert best.probability == pytest.approx(best.beta.max(axis=1), abs=1e-7)
    p = correct_probability(best.alpha / best.alpha.sum(axis=1, keepdims=True), best.beta)
    assert best.probability == pytest.approx(p, abs=1e-12)


def test_masked_positions_are_as_if_absent() -> None:
    rng = np.random.default_rng(3)
    gamma = 2 * rng.standard_normal((5, 4, 6))
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1]])
    best = optimal_attention(gamma, 2, mask=mask)
    for n in range(5):
        there = mask[n] > 0
        alone = optimal_attention(gamma[n, there], 2)
        assert best.probability[n] == pytest.approx(float(alone.probability), abs=1e-8)
        assert (best.alpha[n, ~there] == 0).all()
        assert (best.beta[n, ~there] == 0).all()


def test_leading_axes_broadcast_and_slices_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    gamma, shift = rng.standard_normal((3, 1, 5, 4)), rng.standard_normal((3, 2, 4))
    right = rng.integers(4, size=(3, 2))
    whole = optimal_attention(gamma, right, shift)
    assert whole.alpha.shape == (3, 2, 5)
    assert whole.probability.shape == (3, 2)
    module = sys.modules["attnscope.theory.snell2021.optimal_attention"]
    monkeypatch.setattr(module, "SLICE", 1)
    sliced = optimal_attention(gamma, right, shift)
    assert np.abs(sliced.alpha - whole.alpha).max() < 1e-12
    one = optimal_attention(gamma[1, 0], right[1, 1], shift[1, 1])
    assert one.alpha == pytest.approx(whole.alpha[1, 1], abs=1e-9)


def test_equal_positions_share_attention() -> None:
    best = optimal_attention([[1.0, 0.0, 0.0]] * 4, 0)
    assert best.alpha == pytest.approx(np.full(4, 0.25))
    assert not bool(best.neglects)


def test_bad_input_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match=r"shape \(3,\)"):
        optimal_attention([1.0, 2.0, 3.0], 0)
    with pytest.raises(AttnscopeError, match="target from 3 to 3: expected 0 to 2"):
        optimal_attention(COUNTEREXAMPLE, 3)
    with pytest.raises(AttnscopeError, match=r"offset \(4,\)"):
        optimal_attention(COUNTEREXAMPLE, 0, np.zeros(4))
    with pytest.raises(AttnscopeError, match="finite"):
        optimal_attention([[0.0, np.inf]], 0)
    with pytest.raises(AttnscopeError, match="without any position"):
        optimal_attention(COUNTEREXAMPLE, 0, mask=[0, 0, 0])
    rng = np.random.default_rng(0)
    with pytest.raises(AttnscopeError, match="largest gap"):
        optimal_attention(1e4 * rng.standard_normal((20, 20, 10)), np.zeros(20))


def test_gap_of_any_attention_bounds_what_can_be_gained() -> None:
    rng = np.random.default_rng(0)
    logits, offset = 2 * rng.standard_normal((3, 1, 5, 4)), rng.standard_normal((3, 2, 4))
    target = rng.integers(4, size=(3, 2))
    best = optimal_attention(logits, target, offset)
    alpha = rng.dirichlet(np.ones(5), size=(3, 2))
    gap = frank_wolfe_gap(logits, target, offset, alpha)
    at_best = frank_wolfe_gap(logits, target, offset, best.alpha)
    assert at_best == pytest.approx(best.gap, abs=1e-12)
    values = np.einsum("ntl,ntlo->nto", alpha, np.broadcast_to(logits, (3, 2, 5, 4))) + offset
    p = np.exp(values - np.logaddexp.reduce(values, axis=-1, keepdims=True))
    p = np.take_along_axis(p, target[..., None], axis=-1)[..., 0]
    odds = np.log((1 - p) / p) - np.log((1 - best.probability) / best.probability)
    assert (odds <= gap + 1e-9).all()
    assert (odds >= -1e-8).all()


def test_random_problems_neglect_the_largest_beta_only_beyond_two_outputs() -> None:
    assert not random_optimum(100, 8, 2, 10.0, 0).neglects.any()
    assert 0 < random_optimum(200, 8, 5, 10.0, 0).neglects.mean() < 0.5
    assert near_equation_30(50, 0.1, 0).neglects.all()
