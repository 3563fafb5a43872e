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
    """Return when ‖W^Kᵀ W^Q‖₂ reached 1.

    NaN if it did not, or began there, or if record points are too far apart to say when.
    """

    def time(times: np.ndarray, curve: np.ndarray) -> float:
        known = np.isfinite(curve)
        if not known.any():
            return np.nan
        found = li2023.measured_onset(times[known], curve[known])
        return np.nan if found.coarse else found.time

    dims = [["step"], ["step"]]
    found: xr.DataArray = xr.apply_ufunc(
        time, norms["time"], norms, input_core_dims=dims, vectorize=True
    )
    return found


def too_coarse(norms: xr.DataArray) -> bool:
    """Say whether some onset lies between record points that are too far apart."""
    times = norms["time"].to_numpy()
    curves = norms.transpose(..., "step").to_numpy().reshape(-1, len(times))
    known = [np.isfinite(curve) for curve in curves]
    return any(
        li2023.measured_onset(times[here], curve[here]).coarse
        for curve, here in zip(curves, known, strict=True)
        if here.any()
    )


def error(run: Readings, kind: str) -> xr.DataArray:
    """Return |predicted / measured - 1| of a prediction: closed, expected, ahead or constant."""
    return abs(run.theory.get(f"onset_{kind}") / onset(run.score_norm) - 1)
