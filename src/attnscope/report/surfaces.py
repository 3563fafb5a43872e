"""What of a surface can be drawn, and the surface in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Surface


@dataclass(frozen=True, eq=False)
class DrawableSurface:
    """A surface in float64 within its range, and what the range is."""

    surface: Surface
    low: float
    high: float


def drawable_surface(surface: Surface) -> DrawableSurface:
    """Return the surface with NaN for whatever cannot be drawn, its heights within the range."""
    place = f"Surface '{surface.title}'"
    x, y = (np.asarray(axis, dtype=float) for axis in (surface.x, surface.y))
    shape, fitting = np.shape(surface.values), (y.size, x.size)
    if x.ndim != 1 or y.ndim != 1 or shape != fitting or min(fitting) < 2:
        raise AttnscopeError(
            f"{place}: values has shape {shape}, x has shape {x.shape}, y has shape {y.shape}; "
            "expected (rows, columns), (columns,) and (rows,), two or more of each."
        )
    for name, axis in (("x", x), ("y", y)):
        if not (np.isfinite(axis).all() and (np.diff(axis) > 0).all()):
            raise AttnscopeError(f"{place}: expected the points {name} to be finite and rising.")
    values = _finite(surface.values)
    if not np.isfinite(values).any():
        raise AttnscopeError(
            f"{place}: nothing to draw; expected one finite number or more in values."
        )
    path = None
    if surface.path is not None:
        path = _finite(surface.path)
        if path.ndim != 2 or path.shape[1] != 3:
            raise AttnscopeError(
                f"{place}: the path has shape {path.shape}; expected (points, 3): x, y, height."
            )
        # A line goes from point to point: one without a place is left out.
        path = path[np.isfinite(path).all(1)]
    low, high = _range(surface, values, path)
    if path is not None:
        path = np.column_stack([path[:, :2], np.clip(path[:, 2], low, high)])
    shown = replace(surface, x=x, y=y, values=np.clip(values, low, high), path=path)
    return DrawableSurface(shown, low, high)


def in_words(surface: Surface) -> str:
    """Say what the surface shows, for those who cannot see it."""
    values = _finite(surface.values)
    lowest, highest = np.nanargmin(values), np.nanargmax(values)

    def said(index: np.intp) -> str:
        row, column = np.unravel_index(index, values.shape)
        return f"{values[row, column]:.4g} at ({surface.x[column]:.3g}, {surface.y[row]:.3g})"

    text = (
        f"{surface.zlabel} over {surface.xlabel} from {surface.x[0]:.3g} to {surface.x[-1]:.3g} "
        f"and {surface.ylabel} from {surface.y[0]:.3g} to {surface.y[-1]:.3g}: "
        f"lowest {said(lowest)}, highest {said(highest)}."
    )
    if surface.zrange is not None:
        low, high = surface.zrange
        text += f" Drawn from {low:.4g} to {high:.4g}."
    if surface.path is not None and len(surface.path):
        first, last = surface.path[0], surface.path[-1]
        text += (
            f" {surface.path_label or 'A path'}, {len(surface.path)} points, leads from "
            f"{first[2]:.4g} at ({first[0]:.3g}, {first[1]:.3g}) to {last[2]:.4g} at "
            f"({last[0]:.3g}, {last[1]:.3g})."
        )
    return text


def _range(surface: Surface, values: np.ndarray, path: np.ndarray | None) -> tuple[float, float]:
    if surface.zrange is not None:
        low, high = map(float, surface.zrange)
        if not (np.isfinite([low, high]).all() and low < high):
            raise AttnscopeError(
                f"Surface '{surface.title}': zrange = {surface.zrange}; expected a lower and a "
                "higher finite number."
            )
        return low, high
    heights = values[np.isfinite(values)]
    if path is not None:
        heights = np.concatenate([heights, path[:, 2]])
    low, high = float(heights.min()), float(heights.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _finite(values: np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.nan)
