"""A variable of a watched run over the steps of its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from attnscope.trajectory.arrays import clock_name

FIRST_READINGS = 3
"""Readings that have to be there before anything is said: one is a start, two are a line."""
RECENT = 0.1
"""The last tenth of the readings, and three of them at least, stand for "now": single steps of
stochastic training say little."""


@dataclass(frozen=True, eq=False)
class Course:
    """A variable over the steps at which it was read; readings without any number are left out.

    Args:
        steps: numbers of steps taken, shape ``(readings,)``.
        values: shape ``(readings, ...)``.
    """

    steps: np.ndarray
    values: np.ndarray

    @property
    def enough(self) -> bool:
        """Whether there are readings enough to say anything."""
        return len(self.steps) >= FIRST_READINGS

    def now(self) -> np.ndarray:
        """Return the median of the last readings."""
        last = self.values[-recent(len(self.steps)) :]
        if not np.isnan(last).any():
            # NumPy's median that leaves NaN out takes thirty times as long for arrays this small.
            return np.asarray(np.median(last, axis=0))
        known = ~np.isnan(last).all(axis=0)
        # A layer with fewer heads than another has nothing there at any step.
        return np.where(known, np.nanmedian(np.where(known, last, 0.0), axis=0), np.nan)

    def until(self, step: int) -> Course:
        """Return the readings up to a step."""
        last = int(np.searchsorted(self.steps, step, side="right"))
        return Course(self.steps[:last], self.values[:last])

    def start(self) -> float:
        """Return the median of the first readings of a single number."""
        return float(np.median(self.values[:FIRST_READINGS]))

    def since(self, case: ArrayLike) -> int:
        """Return the step from which on something has been the case until now.

        Args:
            case: whether it was, for each reading.
        """
        last = np.flatnonzero(~np.asarray(case))
        first = int(last[-1]) + 1 if last.size else 0
        return int(self.steps[min(first, len(self.steps) - 1)])


def median(values: np.ndarray, axis: int, keepdims: bool = False) -> np.ndarray:
    """Return the median along an axis, without the entries that are NaN."""
    of = np.nanmedian if np.isnan(values).any() else np.median
    return np.asarray(of(values, axis=axis, keepdims=keepdims))


def recent(readings: int) -> int:
    """Return how many readings stand for "now"."""
    return max(3, round(RECENT * readings))


def course(tree: xr.DataTree, name: str, *dims: str) -> Course | None:
    """Return a variable of a watched run, or ``None`` if it was not recorded with such axes."""
    return course_of(array) if (array := variable(tree, name, *dims)) is not None else None


def variable(tree: xr.DataTree, name: str, *dims: str) -> xr.DataArray | None:
    """Return a variable of the only run, axes of time first, if it has exactly the other axes."""
    if "observables" not in tree.children or name not in tree["observables"].data_vars:
        return None
    array = tree["observables"].to_dataset()[name]
    if not has_axes(array, *dims):
        return None
    return array.isel(run=0)


def has_axes(array: xr.DataArray, *dims: str) -> bool:
    """Whether a variable has these axes behind those of run and time.

    An axis that is of another length than its namesakes is called after the variable, as in
    ``weight_norm[0]``.
    """
    found = array.dims[2:]
    return len(found) == len(dims) and all(
        name in (dim, f"{array.name}[{axis}]")
        for axis, (name, dim) in enumerate(zip(found, dims, strict=True))
    )


def clock(array: xr.DataArray) -> np.ndarray:
    """Return the numbers of steps at which a variable was read."""
    name = clock_name(str(array.dims[0]))
    if name not in array.coords:
        return np.arange(array.shape[0])
    return np.asarray(array[name].to_numpy(), dtype=float)


def course_of(array: xr.DataArray) -> Course | None:
    """Return the readings of a variable that hold a number; ``None`` if none does."""
    steps = clock(array)
    values = array.to_numpy().astype(float)
    known = np.isfinite(steps) & ~np.isnan(values).all(axis=tuple(range(1, values.ndim)))
    return Course(steps[known].astype(int), values[known]) if known.any() else None
