from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.landscapes.roughness import roughness

A, B = np.linspace(-1, 1, 41), np.linspace(-2, 2, 33)


def test_a_paraboloid_is_convex_and_even() -> None:
    got = roughness(A, B, A**2 + 3 * B[:, None] ** 2 + A * B[:, None])
    assert got.nonconvex == 0
    assert got.minima == 1
    assert got.variation == pytest.approx(0, abs=1e-9)
    # The middle is the least, 0; x² over the grid has the mean Σ x²/n, and xy none.
    assert got.rise == pytest.approx((A**2).mean() + 3 * (B**2).mean(), rel=1e-12)
    assert got.laplacian == pytest.approx(8, rel=1e-9)
    # Hessian [[2, 1], [1, 6]]
    assert got.sharpest == pytest.approx(4 + np.sqrt(5), rel=1e-9)


def test_a_saddle_bends_down_everywhere() -> None:
    got = roughness(A, B, A**2 - B[:, None] ** 2)
    assert got.nonconvex == 1
    assert got.minima == 0
    assert got.laplacian == pytest.approx(0, abs=1e-9)
    assert got.rise == pytest.approx((A**2).mean() - (B**2).mean(), rel=1e-12)


def test_waves_are_rough() -> None:
    wavy = roughness(A, B, np.sin(3 * np.pi * A) + 0 * B[:, None] + B[:, None] ** 2)
    calm = roughness(A, B, A**2 + B[:, None] ** 2)
    assert wavy.nonconvex == pytest.approx(0.5, abs=0.05)
    assert wavy.minima == 3
    assert wavy.variation > 0.5 > calm.variation


def test_what_is_no_surface_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match=r"shape \(2, 2\)"):
        roughness(A[:2], B[:2], np.zeros((2, 2)))
    with pytest.raises(AttnscopeError, match="not finite"):
        roughness(A[:3], A[:3], np.full((3, 3), np.nan))
    with pytest.raises(AttnscopeError, match="axis b is not even"):
        roughness(A[:3], np.array([0.0, 1, 3]), np.zeros((3, 3)))
