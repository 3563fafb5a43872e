"""How rough a surface is, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError

FLAT = 1e-3
"""Curvature within this share of the largest counts as none: differences have rounding errors."""


@dataclass(frozen=True)
class Roughness:
    """Curvature of a surface over its inner points, from second differences.

    Args:
        nonconvex: share of points where the surface bends down in some direction, that is where
            the smaller eigenvalue of its 2 × 2 Hessian is negative.
        variation: standard deviation of the Laplacian over its mean size; 0 for a paraboloid.
        minima: points lower than all eight neighbours.
        sharpest: largest eigenvalue at any point.
        rise: mean of the surface less its value at the middle point of the grid.
        laplacian: root mean square of the Laplacian.
    """

    nonconvex: float
    variation: float
    minima: int
    sharpest: float
    rise: float
    laplacian: float


def roughness(a: np.ndarray, b: np.ndarray, values: np.ndarray) -> Roughness:
    """Measure a surface given on an even grid, shape ``(len(b), len(a))``."""
    a, b, z = (np.asarray(part, dtype=float) for part in (a, b, values))
    if z.shape != (len(b), len(a)) or min(z.shape) < 3:
        raise AttnscopeError(
            f"The surface has shape {z.shape} over axes of {len(a)} and {len(b)} points: expected "
            "(len(b), len(a)), three or more of each."
        )
    if not np.isfinite(z).all():
        raise AttnscopeError("The surface has points that are not finite: expected numbers.")
    for name, axis in (("a", a), ("b", b)):
        if not np.allclose(np.diff(axis), axis[1] - axis[0], rtol=1e-6, atol=0):
            raise AttnscopeError(f"The axis {name} is not even: expected equal steps.")
    h, k = a[1] - a[0], b[1] - b[0]
    middle = z[1:-1, 1:-1]
    aa = (z[1:-1, 2:] - 2 * middle + z[1:-1, :-2]) / h**2
    bb = (z[2:, 1:-1] - 2 * middle + z[:-2, 1:-1]) / k**2
    ab = (z[2:, 2:] - z[2:, :-2] - z[:-2, 2:] + z[:-2, :-2]) / (4 * h * k)
    spread = np.sqrt(((aa - bb) / 2) ** 2 + ab**2)
    small, large = (aa + bb) / 2 - spread, (aa + bb) / 2 + spread
    least = FLAT * max(np.abs(small).max(), np.abs(large).max())
    laplacian = aa + bb
    size = np.abs(laplacian).mean()
    shifts = [(i, j) for i in (0, 1, 2) for j in (0, 1, 2) if (i, j) != (1, 1)]
    rows, columns = middle.shape
    lower = [middle < z[i : i + rows, j : j + columns] for i, j in shifts]
    return Roughness(
        nonconvex=float((small < -least).mean()),
        variation=float(laplacian.std() / size) if size > 0 else 0.0,
        minima=int(np.all(lower, axis=0).sum()),
        sharpest=float(large.max()),
        rise=float(z.mean() - z[len(b) // 2, len(a) // 2]),
        laplacian=float(np.sqrt((laplacian**2).mean())),
    )
