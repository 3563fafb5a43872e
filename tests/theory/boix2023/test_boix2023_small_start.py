"""Time at small starts: extrapolation is exact for its law, and bad sizes are said."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope import AttnscopeError
from attnscope.theory import boix2023


def test_extrapolation_removes_what_falls_as_one_over_the_logarithm() -> None:
    sizes, limit, late = (1e-3, 1e-9), np.array([1.5, 4.0]), np.array([2.0, -0.3])
    found = [limit + late / boix2023.rescaled(size) for size in sizes]
    ahead = boix2023.extrapolate(found[0], sizes[0], found[1], sizes[1])
    np.testing.assert_allclose(ahead, limit, rtol=1e-14)


@pytest.mark.parametrize("size", [1.0, 2.0, 0.0, 1e-200, 5e-324, -1.0, float("nan")])
def test_a_start_that_is_not_small_or_that_no_double_holds(size: float) -> None:
    with pytest.raises(AttnscopeError, match=r"α = .*expected a start below 1"):
        boix2023.rescaled(size)


def test_one_size_cannot_be_extrapolated() -> None:
    with pytest.raises(AttnscopeError, match="twice"):
        boix2023.extrapolate(1.0, 1e-3, 2.0, 1e-3)


def test_the_first_singular_value_of_a_linear_model() -> None:
    # L = ½‖W - M‖² with W = L Rᵀ: G(0) = M, and the leading pair grows at σ_max.
    rng = np.random.default_rng(0)
    target = rng.normal(size=(4, 4))
    sigma = np.linalg.svd(target, compute_uv=False)

    def time(size: float) -> float:
        left, right = size * rng0.normal(size=(2, 4, 4))
        unit, h, passed = boix2023.rescaled(size), 2e-4, 0.0
        while np.linalg.norm(left @ right.T, 2) < 1e-3:
            gradient = target - left @ right.T
            left, right = left + h * gradient @ right, right + h * gradient.T @ left
            passed += h
        return passed / unit

    found = []
    for size in (1e-6, 1e-12):
        rng0 = np.random.default_rng(1)
        found.append(time(size))
    # At 1e-3 of 1 the product has log(1e-3)/(2σ) to go, which extrapolation removes.
    ahead = boix2023.extrapolate(found[0], 1e-6, found[1], 1e-12)
    assert ahead == pytest.approx(1 / sigma[0], rel=5e-3)
    assert boix2023.first_time(target) == pytest.approx(1 / sigma[0])
    assert boix2023.first_time(np.zeros((2, 2))) == np.inf
