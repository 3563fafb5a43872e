"""Onsets read off the trajectory of ``li2023.onset``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.trajectory import select
from attnscope.theory import li2023

UNIFORM = "uniform"
"""The case whose attention is frozen; every prediction is made from it."""


def case_name(rate: float | None, noise: float) -> str:
    """Return the name of the case at a learning rate, None for the flow, and a noise."""
    return f"{'flow' if rate is None else f'lr {rate:g}'}, noise {noise:g}"


def measured(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return when ‖W^Kᵀ W^Q‖₂ reached 1, seed by seed; NaN if it did not, or began there."""
    norms = select(tree, "score_norm", case)
    times = norms["time"].to_numpy()
    return np.array([li2023.measured_onset(times, run).time for run in norms.to_numpy()])


def predicted(tree: xr.DataTree, case: str, kind: str) -> np.ndarray:
    """Return the onset that theory predicts, ``"closed"``, ``"ahead"`` or ``"constant"``."""
    return select(tree, f"onset_{kind}", case, "theory").to_numpy()


def error(tree: xr.DataTree, case: str, kind: str) -> np.ndarray:
    """Return |predicted / measured - 1|, seed by seed."""
    return np.abs(predicted(tree, case, kind) / measured(tree, case) - 1)


def uniform_readings(tree: xr.DataTree, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return σ, u and w over time, of the run of one seed without attention."""
    sigma, left, right = (
        select(tree, name, UNIFORM).isel(run=seed).to_numpy() for name in ("sigma", "left", "right")
    )
    return sigma[:, 0], left, right
