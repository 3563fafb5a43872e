"""How far two recordings of one reading are apart, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.trajectory.readings import record_dim

BLOCK = 2**22
"""Numbers that are looked at together, so that recorded maps need little memory."""


@dataclass(frozen=True, eq=False)
class Difference:
    """One reading in both runs.

    The relative difference at a step is ``max |a - b| / max(max |a|, max |b|)``, maxima over all
    numbers that were read at that step, case by case and seed by seed; the largest of those counts.
    It is infinite where one of the two is not a number and the other is.

    Args:
        name: of the reading.
        steps: those that both have, rising; one entry, -1, for what was read once.
        relative: the relative difference at each of them.
        place: where the largest difference is at the first step beyond the threshold, or else at
            the first step with any; in words, empty for a single number.
        first: the first step at which some number differs in its last bit; ``None`` if none does.
        beyond: the first step with a relative difference above the threshold.
        a: the first run's readings at those steps, run and step first.
        b: the second run's.
    """

    name: str
    steps: np.ndarray
    relative: np.ndarray
    place: str
    first: int | None
    beyond: int | None
    a: xr.DataArray
    b: xr.DataArray

    @property
    def largest(self) -> float:
        """The largest relative difference of all steps."""
        return float(self.relative.max())

    @property
    def largest_step(self) -> int:
        """Where that is."""
        return int(self.steps[int(self.relative.argmax())])


def difference(a: xr.DataArray, b: xr.DataArray, threshold: float) -> Difference | str:
    """Return how far a reading is apart in two runs; if it cannot be compared, why not.

    Args:
        a: dimensions ``run``, one that was recorded along if it has one, and others.
        b: the same of the other run, with the same entries of ``run``.
        threshold: of the relative difference.
    """
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return "it is not numbers"
    sides = [_by_step(a), _by_step(b)]
    (first, clock), (second, other) = sides
    if first.dims[2:] != second.dims[2:] or first.shape[2:] != second.shape[2:]:
        return f"it has the axes {_axes(first)} in A and {_axes(second)} in B"
    steps, at, beside = np.intersect1d(clock, other, return_indices=True)
    if not len(steps):
        return f"A was read at {_span(clock)} and B at {_span(other)}, at no step both"
    one, two = first[:, at], second[:, beside]
    unlike, relative = _compared(one.to_numpy(), two.to_numpy())
    apart = np.flatnonzero(unlike)
    far = np.flatnonzero(relative > threshold)
    shown = far if far.size else apart
    return Difference(
        str(a.name),
        steps,
        relative,
        _place(one[:, shown[0]], two[:, shown[0]]) if shown.size else "",
        int(steps[apart[0]]) if apart.size else None,
        int(steps[far[0]]) if far.size else None,
        one,
        two,
    )


def _by_step(reading: xr.DataArray) -> tuple[xr.DataArray, np.ndarray]:
    """Return a reading with run and step in front, and the steps at which there is something."""
    try:
        dim = record_dim(reading)
    except AttnscopeError:
        dim = ""
    if dim not in reading.dims:
        return reading.expand_dims("step", 1), np.array([-1])
    ordered = reading.transpose("run", dim, ...)
    clock = ordered[dim].to_numpy() if dim in ordered.coords else np.arange(ordered.sizes[dim])
    known = np.isfinite(clock.astype(float))
    return ordered[:, np.flatnonzero(known)], clock[known].astype(int)


def _compared(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each step whether anything differs, and the relative difference."""
    runs, steps = a.shape[:2]
    width = max(1, BLOCK // max(1, a[:, :1].size))
    unlike, relative = np.zeros(steps, bool), np.zeros(steps)
    for start in range(0, steps, width):
        part = slice(start, start + width)
        one = a[:, part].astype(float).reshape(runs, -1 if a.size == 0 else len(a[0, part]), -1)
        two = b[:, part].astype(float).reshape(one.shape)
        lost = np.isnan(one) != np.isnan(two)
        same = (one == two) | (np.isnan(one) & np.isnan(two))
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.where(same, 0.0, np.abs(one - two))
            scale = np.fmax(_largest(np.abs(one)), _largest(np.abs(two)))
            share = _largest(gap) / np.where(scale > 0, scale, 1.0)
        # Infinity minus infinity, and infinity over infinity, are no numbers; they are not equal.
        share = np.where(lost.any(axis=2) | np.isnan(share), np.inf, share)
        unlike[part] = (~same).any(axis=(0, 2))
        relative[part] = np.where(unlike[part], share.max(axis=0), 0.0)
    return unlike, relative


def _largest(values: np.ndarray) -> np.ndarray:
    known = np.where(np.isnan(values), 0.0, values)
    return np.asarray(known.max(axis=2, initial=0.0))


def _place(a: xr.DataArray, b: xr.DataArray) -> str:
    """Say where two readings at one step are farthest apart."""
    one, two = a.to_numpy().astype(float), b.to_numpy().astype(float)
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - two)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    gap = np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))
    at = np.unravel_index(int(gap.argmax()), gap.shape)
    parts = []
    for dim, index in zip(a.dims, at, strict=True):
        if dim == "run":
            if a.sizes["run"] > 1:
                parts.append(f"{a['case'].to_numpy()[index]}, seed {a['seed'].to_numpy()[index]}")
        elif a.sizes[dim] > 1:
            parts.append(f"{str(dim).split('[')[0]} {_label(a, str(dim), int(index))}")
    return ", ".join(parts)


def _label(reading: xr.DataArray, dim: str, index: int) -> str:
    # Layers, heads and positions are counted everywhere; a path would fill the table.
    if dim in reading.coords and dim not in ("layer", "head", "block"):
        return str(reading[dim].to_numpy()[index])
    return str(index)


def _axes(reading: xr.DataArray) -> str:
    sizes: Sequence[str] = [f"{dim} {reading.sizes[dim]}" for dim in reading.dims[2:]]
    return f"({', '.join(sizes)})"


def _span(steps: np.ndarray) -> str:
    if not len(steps):
        return "no step"
    return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
