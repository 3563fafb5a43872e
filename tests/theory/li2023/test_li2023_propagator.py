from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import propagate

KEYS = np.random.default_rng(5).normal(size=(4, 5))
QUERIES = np.random.default_rng(6).normal(size=(4, 7))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape)


def test_constant_gradient_is_cosh_and_sinh() -> None:
    gradient, times = normal(5, 7), np.array([0.0, 0.3, 1.7])
    found = propagate(KEYS, QUERIES, times, np.stack([gradient] * 3))
    u, sigma, w = np.linalg.svd(gradient, full_matrices=False)
    x, y = KEYS @ u, QUERIES @ w.T
    for at, time in enumerate(times):
        cosh, sinh = np.cosh(sigma * time), np.sinh(sigma * time)
        still = QUERIES - y @ w
        np.testing.assert_allclose(found.keys[at], (x * cosh - y * sinh) @ u.T, atol=1e-11)
        np.testing.assert_allclose(found.queries[at], (y * cosh - x * sinh) @ w + still, atol=1e-11)
        product = found.keys[at].T @ found.queries[at]
        assert found.norms[at] == pytest.approx(np.linalg.svd(product)[1][0], rel=1e-13)


def test_turning_gradient_that_starts_from_zero() -> None:
    times = np.array([0.0, 0.5, 0.6, 2.0])
    gradients = normal(4, 5, 7)
    gradients[0] = 0

    def field(time: float, state: np.ndarray) -> np.ndarray:
        at = min(int(np.searchsorted(times, time, side="right")) - 1, 2)
        part = (time - times[at]) / (times[at + 1] - times[at])
        gradient = (1 - part) * gradients[at] + part * gradients[at + 1]
        keys, queries = state[:20].reshape(4, 5), state[20:].reshape(4, 7)
        return -np.r_[(queries @ gradient.T).ravel(), (keys @ gradient).ravel()]

    state = np.r_[KEYS.ravel(), QUERIES.ravel()]
    found = propagate(KEYS, QUERIES, times, gradients)
    for at in range(3):
        span = (times[at], times[at + 1] * (1 - 1e-15))
        state = solve_ivp(field, span, state, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        here = np.r_[found.keys[at + 1].ravel(), found.queries[at + 1].ravel()]
        np.testing.assert_allclose(here, state, rtol=1e-9, atol=1e-9)


def test_descent_is_that_of_an_optimiser() -> None:
    first, last = normal(2, 5, 7)
    times = np.array([0.0, 0.5, 1.0])
    gradients = np.stack([first, (first + last) / 2, last])
    keys, queries = (torch.tensor(side, requires_grad=True) for side in (KEYS, QUERIES))
    optimiser = torch.optim.SGD([keys, queries], lr=0.05)
    for step in range(20):
        optimiser.zero_grad()
        gradient = torch.tensor(first + (last - first) * step / 20)
        (gradient * (keys.T @ queries)).sum().backward()
        optimiser.step()
    found = propagate(KEYS, QUERIES, times, gradients, lr=0.05)
    np.testing.assert_allclose(found.keys[-1], keys.detach(), rtol=1e-11)
    np.testing.assert_allclose(found.queries[-1], queries.detach(), rtol=1e-11)
    flow = propagate(KEYS, QUERIES, times, gradients)
    assert np.abs(flow.keys[-1] - found.keys[-1]).max() > 0.01


def test_exact_zeros_never_leave_and_no_gradient_moves_nothing() -> None:
    gradients = normal(3, 5, 7)
    zero = propagate(0 * KEYS, 0 * QUERIES, [0, 1, 2], gradients)
    assert zero.norms.tolist() == [0, 0, 0]
    still = propagate(KEYS, QUERIES, [0, 1, 2], 0 * gradients)
    np.testing.assert_array_equal(still.keys[-1], KEYS)


def test_propagation_ends_where_it_means_nothing_any_more() -> None:
    gradients = np.stack([normal(5, 7)] * 200)
    found = propagate(KEYS, QUERIES, np.arange(200.0), gradients)
    assert 2 < len(found.times) < 50
    assert found.norms[-2] <= 1e6 < found.norms[-1] < np.inf
    assert len(found.keys) == len(found.queries) == len(found.norms) == len(found.times)


def test_what_does_not_fit_is_refused() -> None:
    gradients = np.zeros((2, 5, 7))
    with pytest.raises(AttnscopeError, match=r"keys \(4, 5\), queries \(4, 5\)"):
        propagate(KEYS, KEYS, [0.0, 1.0], gradients)
    with pytest.raises(AttnscopeError, match=r"gradients .* at 3 times"):
        propagate(KEYS, QUERIES, [0.0, 1.0, 2.0], gradients)
    with pytest.raises(AttnscopeError, match=r"lr = 0.3 and times 1 apart: expected a whole"):
        propagate(KEYS, QUERIES, [0.0, 1.0], gradients, lr=0.3)
