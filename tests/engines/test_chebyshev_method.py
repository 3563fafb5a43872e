"""The stabilised method: its order, its stability, its estimate of the largest eigenvalue."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_runge_kutta import CASES, START, gap
from toys import Point, order

from attnscope.engines.chebyshev import Chebyshev, tableau
from attnscope.engines.runge_kutta import Workspace

pytestmark = pytest.mark.usefixtures("float64")


def method(curvature: torch.Tensor, start: torch.Tensor) -> Chebyshev:
    """Return the method on ½ Σ c x², at the start of its first step."""
    vector = start.clone()

    def field(out: torch.Tensor) -> float:
        torch.mul(curvature, vector, out=out)
        return float(0.5 * (curvature * vector * vector).sum())

    it = Chebyshev(Workspace(vector, field))
    it.work.evaluate(it.work.state, it.work.slopes[0])
    return it


def on(name: str) -> tuple[Chebyshev, object]:
    loss, exact = CASES[name]
    model = Point(*START.tolist())

    def field(out: torch.Tensor) -> float:
        value = loss(model)
        out.copy_(torch.autograd.grad(value, model.x)[0])
        return value.item()

    it = Chebyshev(Workspace(model.x.data, field))
    it.work.evaluate(it.work.state, it.work.slopes[0])
    return it, exact


@pytest.mark.parametrize("radius", [0.1, 150.0])
@pytest.mark.parametrize("name", CASES)
def test_fixed_steps_are_of_order_four(name: str, radius: float) -> None:
    until, counts, errors = 2.0, [14, 20, 28, 40], []
    for count in counts:
        it, exact = on(name)
        it.radius = radius
        for _ in range(count):
            it.attempt(until / count, 1.0, 1.0)
            it.work.accept()
        errors.append(gap(it.work.state, exact(until)))  # type: ignore[operator]
    measured = order([until / count for count in counts], errors)
    # On the quartic the leading term of the error nearly cancels at five stages.
    assert measured > 3.5
    assert name == "quartic" or measured < 4.5
    assert errors[-1] < 1e-5


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("fraction", "expected"), [(0.3, 4), (0.7, 4), (1.0, 5)])
def test_dense_output_is_of_order_three(name: str, fraction: float, expected: int) -> None:
    sizes, errors = [0.1, 0.075, 0.05, 0.0375], []
    for h in sizes:
        it, exact = on(name)
        it.attempt(h, 1.0, 1.0)
        it.interpolate(h, fraction)
        errors.append(gap(it.work.vector, exact(fraction * h)))  # type: ignore[operator]
    assert order(sizes, errors) > expected - 0.35


@pytest.mark.parametrize("name", CASES)
def test_the_error_estimate_shrinks_with_the_fourth_power_of_the_step(name: str) -> None:
    sizes = [0.2, 0.15, 0.1, 0.075]
    errors = [on(name)[0].attempt(h, 1e-300, 1.0)[0] for h in sizes]
    assert order(sizes, errors) == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("stages", [5, 6, 7, 8, 9, 11, 14, 20, 37, 80])
def test_every_mode_within_the_limit_decays(stages: int) -> None:
    """One step on ½ Σ c x² multiplies each x by the stability polynomial.

    Beyond, rounding of modes as large as these shows: 1e-16 (hλ)⁴/107.
    """
    limit = tableau(stages).limit
    curvature = torch.from_numpy(np.linspace(1e-3, 1, 4001) * limit)
    it = method(curvature, torch.ones(4001))
    it.radius = limit / 1.0500001
    it.attempt(1.0, 1.0, 1.0)
    assert it.stages == stages
    factor = it.work.next_state.abs()
    assert float(factor.max()) < 1
    assert float(factor[curvature > 3].max()) < 0.97
    assert limit > 0.23 * stages**2


def test_power_iteration_finds_the_largest_eigenvalue_and_keeps_its_direction() -> None:
    curvature = torch.tensor([1.0, 3.0, 40.0])
    it = method(curvature, torch.tensor([1.0, 1.0, 1e-3]))
    it.measure(20)
    assert it.radius == pytest.approx(40, rel=1e-2)
    assert it.eigenvalue == pytest.approx(40, rel=2e-2)
    it.measure(1)
    assert it.radius == pytest.approx(40, rel=1e-6)


def test_negative_curvature_has_a_negative_eigenvalue_and_no_gradient_none() -> None:
    it = method(torch.tensor([-5.0, -1.0]), torch.tensor([1.0, 1.0]))
    it.measure(20)
    assert it.eigenvalue == pytest.approx(-5, rel=2e-2)
    still = method(torch.tensor([-5.0, -1.0]), torch.zeros(2))
    assert still.measure(20) == 0
    assert still.attempt(0.1, 1.0, 1.0)[0] == 0
