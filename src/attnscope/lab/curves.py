"""Curves of whatever was recorded, for runs that are not finished and for runs side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.report.figure import Line

POINTS = 200
"""Points of a curve: no screen shows more."""


@dataclass(frozen=True, eq=False)
class Course:
    """One observable over training time.

    Args:
        name: the observable.
        label: quantity and unit.
        time: shape ``(points,)``.
        axis: what ``time`` counts.
        values: shape ``(runs, points)``; NaN where a run has not come to.
        averaged: the dimensions that were averaged over, in words.
    """

    name: str
    label: str
    time: np.ndarray
    axis: str
    values: np.ndarray
    averaged: str


def courses(tree: xr.DataTree) -> dict[str, Course]:
    """Return every observable as one curve per run: single numbers first, the loss before them.

    Observables with further dimensions, such as words or heads, are averaged over those.
    """
    if "observables" not in tree.children:
        return {}
    data = tree["observables"].to_dataset()
    found: dict[str, Course] = {}
    for key, array in data.data_vars.items():
        name = str(key)
        if array.ndim < 2 or array.dims[0] != "run" or not np.issubdtype(array.dtype, np.number):
            continue
        dim = str(array.dims[1])
        clock = "epoch" if dim == "step" else f"epoch_{dim}"
        axis = "step"
        if clock not in data.coords:
            clock, axis = clock.replace("epoch", "time"), "time (learning rate × steps)"
        if clock not in data.coords:
            continue
        further = [str(each) for each in array.dims[2:]]
        values = array.values.astype(float)
        if further:
            values = _mean(values.reshape(*values.shape[:2], -1))
        unit = str(array.attrs.get("unit", ""))
        averaged = f", mean over {' and '.join(further)}" if further else ""
        label = f"{name.replace('_', ' ')}{averaged}" + (f" ({unit})" if unit else "")
        times = np.asarray(data.coords[clock].values, dtype=float)
        found[name] = Course(name, label, times, axis, values, averaged)
    order = sorted(found, key=lambda name: ("loss" not in name, bool(found[name].averaged)))
    return {name: found[name] for name in order}


def case_names(tree: xr.DataTree) -> list[str]:
    """Return the case of every run."""
    return [str(case) for case in tree["stats"].to_dataset()["case"].values]


def _mean(values: np.ndarray) -> np.ndarray:
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def line(course: Course, run: int, label: str, color: int, thin: bool = False) -> Line:
    """Return the curve of one run, as far as it has come."""
    values = course.values[run]
    reached = np.flatnonzero(np.isfinite(values))
    stop = int(reached[-1]) + 1 if reached.size else 0
    picked = np.unique(np.linspace(0, stop - 1, min(stop, POINTS)).round().astype(int))
    return Line(course.time[picked], values[picked], label, color, thin=thin)
