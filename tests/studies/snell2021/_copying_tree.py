"""Made-up trajectories in the shape of ``snell2021.copying`` and ``snell2021.permutation``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from attnscope.studies.snell2021._copying_study import READINGS, CountTableStudy
from attnscope.trajectory import Readings

Curves = Mapping[tuple[str, int], Mapping[str, Sequence[float] | np.ndarray]]


def trajectory(steps: Sequence[float] | np.ndarray, curves: Curves) -> xr.DataTree:
    """Return a trajectory with given readings for each case and seed; others are 0."""
    values = np.zeros((len(curves), len(steps), len(READINGS)))
    for run, known in enumerate(curves.values()):
        for name, curve in known.items():
            values[run, :, list(READINGS).index(name)] = curve
    cases, seeds = zip(*curves, strict=True)
    runs = {"case": ("run", list(cases)), "seed": ("run", list(seeds))}
    clock = {"step": np.array(steps, dtype=int), "time": ("step", np.array(steps, dtype=float))}
    data = xr.Dataset({"reading": (("run", "step", "reading"), values)}, coords={**clock, **runs})
    return xr.DataTree.from_dict({"/observables": data, "/stats": xr.Dataset(coords=runs)})


def jumps(study: CountTableStudy, learned: Mapping[str, tuple[float, float, float]]) -> Readings:
    """Return readings whose knowledge, attention and accuracy jump to 1 at given steps."""
    steps = np.linspace(0, study.training.steps, study.points)
    curves = {
        (case, seed): {
            name: steps > at + 5 * seed
            for name, at in zip(("knowledge", "attention", "accuracy"), learned[case], strict=True)
        }
        for seed in range(3)
        for case in study.cases
    }
    return study.read(trajectory(steps, curves))
