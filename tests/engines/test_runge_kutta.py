"""The order of the solver and of its dense output, on flows with a closed form."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from toys import CURVATURE, Point, order, quadratic

from attnscope.engines.runge_kutta import DormandPrince, Workspace

pytestmark = pytest.mark.usefixtures("float64")

START = torch.tensor([0.9, -0.6, 0.5], dtype=torch.float64)


def quartic(model: nn.Module) -> Tensor:
    """¼ Σ x⁴: the flow is x₀ / √(1 + 2 x₀² t)."""
    return 0.25 * (model.get_parameter("x") ** 4).sum()


Exact = Callable[[float], Tensor]
CASES: dict[str, tuple[Callable[..., Tensor], Exact]] = {
    "quadratic": (quadratic, lambda t: START * torch.exp(-CURVATURE * t)),
    "quartic": (quartic, lambda t: START / torch.sqrt(1 + 2 * START**2 * t)),
}


def solver(name: str) -> tuple[DormandPrince, Exact]:
    loss, exact = CASES[name]
    model = Point(*START.tolist())
    vector = model.x.data

    def field(out: Tensor) -> float:
        value = loss(model)
        out.copy_(torch.autograd.grad(value, model.x)[0])
        return value.item()

    return DormandPrince(Workspace(vector, field)), exact


def begin(it: DormandPrince) -> float:
    """Evaluate the first slope; return the loss at the start."""
    return it.work.evaluate(it.work.state, it.work.slopes[0])


def gap(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).abs().max())


@pytest.mark.parametrize("name", CASES)
def test_fixed_steps_are_of_order_five(name: str) -> None:
    until, counts = 2.0, [20, 28, 40, 56]
    errors = []
    for count in counts:
        it, exact = solver(name)
        begin(it)
        for _ in range(count):
            it.attempt(until / count, 1.0, 1.0)
            it.work.accept()
        errors.append(gap(it.work.state, exact(until)))
    measured = order([until / count for count in counts], errors)
    # On the quartic the leading term of the error nearly cancels, which only helps.
    assert measured > 4.65
    assert name == "quartic" or measured < 5.35
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("fraction", "expected"), [(0.3, 5), (0.7, 5), (1.0, 6)])
def test_dense_output_is_of_order_four(name: str, fraction: float, expected: int) -> None:
    """A method of order p is off by O(h^(p+1)) after one step."""
    sizes, errors = [0.1, 0.075, 0.05, 0.0375], []
    for h in sizes:
        it, exact = solver(name)
        begin(it)
        it.attempt(h, 1.0, 1.0)
        it.interpolate(h, fraction)
        errors.append(gap(it.work.vector, exact(fraction * h)))
    measured = order(sizes, errors)
    assert measured > expected - 0.35
    assert name == "quartic" or measured < expected + 0.35


@pytest.mark.parametrize("name", CASES)
def test_dense_output_meets_both_ends_of_the_step(name: str) -> None:
    it, _ = solver(name)
    begin(it)
    it.attempt(0.5, 1.0, 1.0)
    it.interpolate(0.5, 0.0)
    torch.testing.assert_close(it.work.vector, START, rtol=0, atol=1e-15)
    it.interpolate(0.5, 1.0)
    end = it.work.vector.clone()
    it.work.accept()
    torch.testing.assert_close(end, it.work.state, rtol=0, atol=1e-14)


def estimate(z: float) -> float:
    """The difference of the two solutions of x' = -x, x(0) = 1, after one step of length -z."""
    return abs(-97 * z**5 + 39 * z**6 - 5 * z**7) / 120_000


def test_the_error_is_the_largest_coordinates_scaled_by_the_tolerance() -> None:
    it, exact = solver("quadratic")
    begin(it)
    errors = START.abs() * torch.tensor([estimate(-0.5 * c) for c in CURVATURE.tolist()])
    found, _ = it.attempt(0.5, 1e-300, 1e-3)
    assert found == pytest.approx(float(errors.max()) / 1e-3, rel=1e-8)
    found, _ = it.attempt(0.5, 1e-2, 1e-3)
    scale = 1e-3 + 1e-2 * torch.maximum(START.abs(), exact(0.5).abs())
    assert found == pytest.approx(float((errors / scale).max()), rel=1e-8)


def test_a_step_returns_the_loss_at_its_end() -> None:
    it, exact = solver("quadratic")
    assert begin(it) == pytest.approx(0.5 * float((CURVATURE * START**2).sum()), rel=1e-15)
    _, loss = it.attempt(0.1, 1.0, 1.0)
    assert loss == pytest.approx(0.5 * float((CURVATURE * exact(0.1) ** 2).sum()), rel=1e-8)
    assert math.isfinite(loss)
