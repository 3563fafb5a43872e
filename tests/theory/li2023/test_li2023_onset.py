from __future__ import annotations

import math

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    expected_norms,
    growth_exponent,
    measured_onset,
    predicted_norms,
    predicted_onset,
    propagate,
    rotation,
    top_singular,
)


def turning(angles: np.ndarray) -> np.ndarray:
    """Rank-one G of norm 2 whose u turns by the angles and whose w turns by twice of them."""
    u = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    w = np.stack([np.cos(2 * angles), np.sin(2 * angles)], axis=-1)
    return 2 * u[:, :, None] * w[:, None, :]


def test_exponent_is_the_integral_of_sigma() -> None:
    times = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(growth_exponent(times, [0.0, 2.0, 4.0]), [0, 1, 7])
    steps = growth_exponent(times, [3.0, 3.0, 3.0], lr=0.5)
    np.testing.assert_allclose(steps, np.log(2.5) * np.array([0, 2, 6]))


def test_norm_and_onset_at_constant_sigma() -> None:
    times = np.linspace(0, 10, 21)
    sigma = np.full(21, 0.7)
    norms = predicted_norms(times, sigma, eps=1e-2, d_a=50)
    np.testing.assert_allclose(norms, 0.0025 * np.exp(1.4 * times), rtol=1e-12)
    for level in (1.0, 30.0):
        exact = math.log(level / 0.0025) / 1.4
        found = predicted_onset(times, sigma, eps=1e-2, d_a=50, level=level)
        assert found.verdict == "reached"
        assert found.time == pytest.approx(exact, rel=1e-12)
        assert measured_onset(times, norms, level).time == pytest.approx(exact, rel=1e-12)


def test_no_onset_says_why() -> None:
    times, sigma = [0.0, 1.0], [1.0, 1.0]
    late = predicted_onset(times, sigma, eps=1e-3, d_a=50)
    assert (late.verdict, math.isnan(late.time)) == ("not reached", True)
    assert str(late) == "no onset before the last time"
    above = predicted_onset(times, sigma, eps=1.0, d_a=50)
    assert (above.verdict, math.isnan(above.time)) == ("starts above", True)
    # ε = .1 and d_a = 101 has .505 in one direction, but all directions together have more than 1.
    assert predicted_onset(times, sigma, eps=0.1, d_a=101).verdict == "reached"
    rng = np.random.default_rng(0)
    keys, queries = 0.1 * rng.normal(size=(2, 101, 101))
    norm = float(np.linalg.norm(keys.T @ queries, 2))
    whole = predicted_onset(times, sigma, eps=0.1, d_a=101, initial_norm=norm)
    assert whole.verdict == measured_onset(times, [norm, 5.0]).verdict == "starts above"
    assert str(whole).startswith("no onset: attention is not near uniform")


def test_norms_that_overflow_or_start_from_zero() -> None:
    times = [0.0, 1.0, 2.0]
    assert predicted_norms(times, [400.0] * 3, 1e-3, 10)[-1] == math.inf
    assert predicted_onset(times, [400.0] * 3, 1e-3, 10).time == pytest.approx(
        math.log(1 / 5e-6) / 800
    )
    assert measured_onset(times, [0.0, 0.0, 3.0]).time == 2.0
    assert measured_onset(times, [0.1, 0.2, math.inf]).time == 2.0
    assert measured_onset(times, [0.0, 0.0, 0.0]).verdict == "not reached"


def test_rotation_of_a_pair_that_turns() -> None:
    angles = np.array([0.0, 0.1, 0.3, 0.3])
    gradients = turning(angles)
    sigma, u, w = top_singular(gradients)
    np.testing.assert_allclose(sigma, 2.0, rtol=1e-14)
    np.testing.assert_allclose(np.abs(np.einsum("tkq,tk,tq->t", gradients, u, w)), 2, rtol=1e-13)
    turned = np.diff(angles)[:, None] * [1, 2]
    np.testing.assert_allclose(rotation(gradients), 1 - np.cos(turned), atol=1e-14)


@pytest.mark.parametrize(("speed", "error"), [(0.02, 0.05), (2.0, 1.0)])
def test_rank_one_is_right_when_the_pair_turns_slowly_and_wrong_when_not(
    speed: float, error: float
) -> None:
    times = np.linspace(0, 4, 161)
    gradients = turning(speed * times)
    rng = np.random.default_rng(3)
    keys, queries = 1e-3 * rng.normal(size=(5_000, 3)), 1e-3 * rng.normal(size=(5_000, 2))
    exact = propagate(keys, queries, times, gradients).norms[-1]
    predicted = predicted_norms(times, top_singular(gradients)[0], 1e-3, 5_000)[-1]
    off = abs(math.log(predicted / exact))
    assert off < error if speed < 1 else off > error
    assert (rotation(gradients).max() < 1e-5) == (speed < 1)


def test_gradient_descent_grows_by_one_plus_eta_sigma() -> None:
    rng = np.random.default_rng(4)
    gradient, eta = rng.normal(size=(5, 7)), 0.1
    keys, queries = rng.normal(size=(4, 5)), rng.normal(size=(4, 7))
    norms = [np.linalg.norm(keys.T @ queries, 2)]
    for _ in range(300):
        keys, queries = keys - eta * queries @ gradient.T, queries - eta * keys @ gradient
        norms.append(np.linalg.norm(keys.T @ queries, 2))
    times, sigma = eta * np.arange(301), np.full(301, np.linalg.norm(gradient, 2))
    exponent = growth_exponent(times, sigma, lr=eta)
    grown = math.log(norms[300] / norms[200])
    assert grown == pytest.approx(2 * (exponent[300] - exponent[200]), rel=1e-6)
    flow = growth_exponent(times, sigma)
    assert 2 * (flow[300] - flow[200]) > 1.1 * grown


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="strictly ascending"):
        growth_exponent([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(AttnscopeError, match=r"sigma of shape \(3,\): expected a singular value"):
        growth_exponent([0.0, 1.0], [1.0, 1.0, 1.0])
    with pytest.raises(AttnscopeError, match="eps = 0: expected a number above 0"):
        predicted_norms([0.0, 1.0], [1.0, 1.0], 0.0, 10)
    with pytest.raises(AttnscopeError, match="lr = -1: expected a number above 0"):
        growth_exponent([0.0, 1.0], [1.0, 1.0], lr=-1.0)
    with pytest.raises(AttnscopeError, match="not NaN"):
        measured_onset([0.0, 1.0], [math.nan, 1.0])
    with pytest.raises(AttnscopeError, match=r"expected \(time, key, query\)"):
        rotation(np.zeros((3, 3)))


def test_the_exponent_of_descent_is_the_sum_over_its_steps() -> None:
    """Π(1 + η σ(kη)) with a rising σ, whose steps lag behind the integral."""
    eta, steps = 0.5, 40
    times = np.arange(steps + 1) * eta
    sigma = 0.02 * times
    exact = np.concatenate([[0.0], np.cumsum(np.log1p(eta * sigma[:-1]))])
    np.testing.assert_allclose(growth_exponent(times, sigma, lr=eta), exact, rtol=0, atol=1e-12)
    coarse = growth_exponent(times[::8], sigma[::8], lr=eta)
    np.testing.assert_allclose(coarse, exact[::8], rtol=0, atol=5e-3)
    lag = exact[-1] - growth_exponent(times, sigma)[-1]
    assert lag < -0.1


def test_the_average_over_starts_is_the_closed_form_where_one_direction_leads() -> None:
    times = np.linspace(0, 4, 41)
    gradients = np.broadcast_to(turning(np.zeros(1)), (41, 3, 2))
    found = expected_norms(times, gradients, eps=1e-2, d_a=50)
    np.testing.assert_allclose(found, 0.005 * np.sinh(4 * times)[: len(found)], rtol=1e-9)
    late = predicted_norms(times, np.full(41, 2.0), eps=1e-2, d_a=50)[: len(found)]
    np.testing.assert_allclose(found[20:], late[20:], rtol=1e-3)


def test_the_average_over_starts_is_that_of_many_starts_with_all_of_g() -> None:
    rng = np.random.default_rng(0)
    times = np.linspace(0, 2, 9)
    gradients = rng.normal(size=(9, 4, 3))
    start = rng.normal(size=(2, 4000, 4))
    scores = propagate(start[0], start[1][:, :3], times, gradients)
    for lr in (None, 0.05):
        scores = propagate(start[0], start[1][:, :3], times, gradients, lr)
        mean = scores.norms[-1] / 4000
        found = expected_norms(times, gradients, eps=1.0, d_a=1, lr=lr)
        assert found[-1] == pytest.approx(mean, rel=0.1)
    with pytest.raises(AttnscopeError, match="eps = 0"):
        expected_norms(times, gradients, eps=0.0, d_a=3)
    with pytest.raises(AttnscopeError, match="a matrix G a time"):
        expected_norms(times, gradients[0], eps=1.0, d_a=3)
