"""Cases of ``li2023.onset``, and onsets read off its trajectory."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.theory import li2023
from attnscope.trajectory import Readings

UNIFORM = "uniform"
"""The case whose attention is frozen; every prediction is made from it."""


def engine_name(rate: float | None, word: str = "rate ") -> str:
    """Return what a learning rate is called, None for the flow."""
    return "flow" if rate is None else f"{word}{rate:g}"


def case_name(rate: float | None, noise: float) -> str:
    """Return the name of the case at a learning rate, None for the flow, and a noise."""
    return f"{engine_name(rate, 'lr ')}, noise {noise:g}"


def onset(norms: xr.DataArray) -> xr.DataArray:
    """Return when ‖W^Kᵀ W^Q‖₂ reached 1; NaN if it did not, or began there."""

    def time(times: np.ndarray, curve: np.ndarray) -> float:
        known = np.isfinite(curve)
        return li2023.measured_onset(times[known], curve[known]).time if known.any() else np.nan

    dims = [["step"], ["step"]]
    found: xr.DataArray = xr.apply_ufunc(
        time, norms["time"], norms, input_core_dims=dims, vectorize=True
    )
    return found


def error(run: Readings, kind: str) -> xr.DataArray:
    """Return |predicted / measured - 1| of ``"closed"``, ``"ahead"`` or ``"constant"``."""
    return abs(run.theory.get(f"onset_{kind}") / onset(run.score_norm) - 1)
