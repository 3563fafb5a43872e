from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.probes.landscapes.directions import random_directions
from attnscope.probes.landscapes.landscape import landscape, profiles


class Point(nn.Module):
    """Two named parameters, moved by hand in the tests."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
        self.y = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))


class Staged:
    """ReLU behind attention: the smooth part and the rest."""

    def __init__(self) -> None:
        source = torch.Generator().manual_seed(1)
        self.data = torch.randn(3, 5, 4, generator=source, dtype=torch.float64)
        self.passes = 0

    def stage(self, model: KernelAttention) -> Tensor:
        self.passes += 1
        return model(self.data).mean(1)

    def finish(self, model: KernelAttention, stage: Tensor) -> Tensor:
        return 1 + torch.relu(stage).square().sum()

    def __call__(self, model: KernelAttention) -> Tensor:
        return self.finish(model, self.stage(model))


def attention() -> KernelAttention:
    return KernelAttention(4, 2, generator=torch.Generator().manual_seed(0)).double()


AXIS = np.linspace(-0.5, 0.5, 27)


def test_a_paraboloid_is_what_it_is() -> None:
    model = Point()

    def loss(model: Point) -> Tensor:
        return model.x.square().sum() + 3 * model.y.square().sum() + model.x.sum() * model.y.sum()

    drawn = random_directions(model, ("x", "y"), seed=5)
    d1, d2 = (drawn.parts[name].numpy()[i] for i, name in enumerate("xy"))
    a, b = np.linspace(-1, 2, 31), np.linspace(-3, 1, 21)
    got = landscape(model, loss, drawn, a, b)
    x = np.array([1.0, 2.0]) + a[:, None] * d1
    y = 3.0 + b * d2[0]
    expected = (x**2).sum(1) + 3 * y[:, None] ** 2 + x.sum(1) * y[:, None]
    np.testing.assert_allclose(got.loss, expected, rtol=1e-12)
    assert got.center == pytest.approx(5 + 27 + 9)
    # Degree 8 is enough: nine by nine points, the centre and the checks.
    assert got.evaluations <= 81 + 1 + 12
    assert "degree 8" in got.words
    assert "filter-normalised" in got.words


def test_the_smooth_part_is_read_off_polynomials_and_kinks_stay_exact() -> None:
    model, loss = attention(), Staged()
    drawn = random_directions(model, ("W_Q", "W_K"))
    exact = landscape(model, loss, drawn, AXIS, AXIS, tolerance=0)
    assert loss.passes == exact.evaluations == 27 * 27
    assert exact.error == 0
    assert "one pass a point" in exact.words
    loss.passes = 0
    fast = landscape(model, loss, drawn, AXIS, AXIS)
    assert loss.passes == fast.evaluations < 27 * 27 / 2
    np.testing.assert_allclose(fast.loss, exact.loss, rtol=1e-5)


def test_a_loss_too_rough_for_polynomials_is_evaluated_everywhere() -> None:
    model = Point()
    drawn = random_directions(model, ("x", "y"))
    axis = np.linspace(-1, 1, 31)

    def rough(model: Point) -> Tensor:
        return 2 + torch.sign(torch.sin(20 * model.x[0])) + model.y[0] ** 2

    got = landscape(model, rough, drawn, axis, axis)
    assert got.error == 0
    assert "one pass a point" in got.words
    d1, d2 = drawn.parts["x"].numpy()[0], drawn.parts["y"].numpy()[1]
    x, y = 1 + axis * d1[0], 3 + axis * d2[0]
    expected = 2 + np.sign(np.sin(20 * x)) + y[:, None] ** 2
    np.testing.assert_allclose(got.loss, expected, rtol=1e-12)


def test_points_that_are_not_finite_are_left_empty_and_counted() -> None:
    model = Point()
    drawn = random_directions(model, ("x", "y"))
    axis = np.linspace(-2, 2, 21)
    got = landscape(model, lambda m: torch.log(m.y[0]) + 5, drawn, axis, axis)
    empty = np.isnan(got.loss)
    assert empty.any()
    assert not empty.all()
    assert f"{empty.sum()} points are not finite" in got.words


def test_the_model_is_bit_identical_afterwards() -> None:
    model, loss = attention().train(), Staged()
    before = [p.detach().clone() for p in model.parameters()]
    drawn = random_directions(model, ("W_Q", "W_K"))
    calls = 0

    def breaks(model: KernelAttention) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise ValueError("no more")
        return loss(model)

    with pytest.raises(ValueError, match="no more"):
        landscape(model, breaks, drawn, AXIS, AXIS)
    landscape(model, loss, drawn, AXIS, AXIS)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert model.training


def test_what_cannot_be_a_landscape_gets_a_sentence() -> None:
    model = Point()
    drawn = random_directions(model, ("x", "y"))
    ok = np.linspace(-1, 1, 5)
    with pytest.raises(AttnscopeError, match="expected two, which span a plane"):
        landscape(model, lambda m: m.x.sum(), drawn.ray(0), ok, ok)
    with pytest.raises(AttnscopeError, match=r"a = .*rising"):
        landscape(model, lambda m: m.x.sum(), drawn, ok[::-1], ok)
    with pytest.raises(AttnscopeError, match=r"b = .*finite"):
        landscape(model, lambda m: m.x.sum(), drawn, ok, np.array([0.0, np.inf]))
    with pytest.raises(AttnscopeError, match="The loss at θ\\* is nan"):
        landscape(model, lambda m: m.x.sum() * np.nan, drawn, ok, ok)
    with pytest.raises(AttnscopeError, match=r"shape \(2,\): expected a single number"):
        landscape(model, lambda m: m.x, drawn, ok, ok)
    with pytest.raises(AttnscopeError, match="tolerance = -1"):
        landscape(model, lambda m: m.x.sum(), drawn, ok, ok, tolerance=-1)


def test_profiles_are_rays_with_a_band() -> None:
    model = Point()
    draws = [random_directions(model, ("x",), seed=s) for s in range(3)]
    steps = np.linspace(-1, 1, 7)
    got = profiles(model, lambda m: m.x.square().sum(), draws, steps)
    d = np.stack([draw.parts["x"].numpy()[0] for draw in draws])
    expected = ((np.array([1.0, 2.0]) + steps[:, None] * d[:, None]) ** 2).sum(2)
    np.testing.assert_allclose(got.loss, expected)
    np.testing.assert_allclose(got.mean, expected.mean(0))
    np.testing.assert_array_equal(got.low, got.loss.min(0))
    np.testing.assert_array_equal(got.high, got.loss.max(0))
    assert got.words == "3 draws of random directions in x, filter-normalised"
    with pytest.raises(AttnscopeError, match="No draws"):
        profiles(model, lambda m: m.x.sum(), [], steps)
