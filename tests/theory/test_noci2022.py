"""Closed forms at uniform attention, against gradients by automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.theory.noci2022 import (
    gradient_ratio_at_depth,
    gradient_ratio_bound,
    mean_growth,
    query_gradient,
    residual_after,
    value_gradient,
)


def _squared_jacobians(tokens: np.ndarray, seed: int) -> tuple[float, float]:
    """Return |dS/dW_Q|^2 and |dS/dW_V|^2 at W_Q = 0, whole Jacobians."""
    torch.manual_seed(seed)
    x = torch.from_numpy(tokens)
    d = x.shape[1]
    keys, values = (torch.randn(d, d, dtype=torch.float64) / d**0.5 for _ in range(2))

    def attend(queries: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ queries @ keys.T @ x.T / d**0.5, dim=-1) @ x @ values

    zero = torch.zeros(d, d, dtype=torch.float64)
    of_queries, of_values = torch.autograd.functional.jacobian(attend, (zero, values))
    return float((of_queries**2).sum()), float((of_values**2).sum())


def test_gradients_at_uniform_attention() -> None:
    tokens = np.random.default_rng(0).normal(size=(6, 8))
    found = np.array([_squared_jacobians(tokens, seed) for seed in range(60)])
    np.testing.assert_allclose(found[:, 1], value_gradient(tokens), rtol=1e-10)
    error = found[:, 0].std() / np.sqrt(60)
    assert abs(found[:, 0].mean() - query_gradient(tokens)) < 4 * error


def test_tokens_that_are_alike_give_queries_no_gradient() -> None:
    tokens = np.tile(np.random.default_rng(1).normal(size=8), (5, 1))
    assert query_gradient(tokens) == pytest.approx(0, abs=1e-25)
    assert value_gradient(tokens) > 1


@pytest.mark.parametrize("spread", [0.01, 0.3, 3.0])
def test_the_bound_holds_for_normalised_tokens(spread: float) -> None:
    chance = np.random.default_rng(2)
    tokens = np.ones((7, 16)) + spread * chance.normal(size=(7, 16))
    tokens *= 4 / np.linalg.norm(tokens, axis=1, keepdims=True)
    residual = np.linalg.norm(tokens - tokens.mean(axis=0)) / np.linalg.norm(tokens)
    ratio = np.sqrt(query_gradient(tokens) / value_gradient(tokens))
    assert ratio <= gradient_ratio_bound(residual) * (1 + 1e-12)
    # A residual a hundred times too small would be refuted.
    assert ratio > gradient_ratio_bound(residual / 100)


def test_depth_makes_tokens_parallel_unless_branches_are_scaled() -> None:
    assert mean_growth(10) == 1024
    assert mean_growth(400, branch=400**-0.5) == pytest.approx(np.e, rel=2e-3)
    assert residual_after(0.9, 0) == pytest.approx(0.9, rel=1e-12)
    assert residual_after(0.9, 12) < 0.04
    assert residual_after(0.9, 12, branch=12**-0.5) > 0.75


def test_depth_leaves_queries_little_unless_branches_are_scaled() -> None:
    deep = gradient_ratio_at_depth(0.5, np.arange(60))
    assert (np.diff(deep) < 0).all()
    # Far down it halves with every layer.
    np.testing.assert_allclose(deep[41:] / deep[40:-1], 0.5, rtol=1e-3)
    scaled = [float(gradient_ratio_at_depth(0.5, n, n**-0.5)) for n in (10, 100, 10_000)]
    # 1 + 1/L to the power of L goes to e.
    rho = 0.25 / (0.25 + 0.75 * np.e)
    assert scaled[-1] == pytest.approx(rho / np.sqrt(1 - rho), rel=1e-3)
    assert min(scaled) > 0.1
