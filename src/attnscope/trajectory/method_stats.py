"""What flows say of their methods, as labelled arrays for the group ``stats``."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr


def method_stats(states: list[dict[str, Any]]) -> xr.Dataset:
    """Return gradients by method, the largest eigenvalue over time, and why methods changed.

    ``sharpness`` and its times ``sharpness_time`` lie along ``look``, one entry for each time that
    a run looked at the largest eigenvalue of the Hessian; runs that looked less often end in NaN.
    Nothing is returned if no run is a flow.
    """
    methods = sorted({name for state in states for name in state.get("gradients", {})})
    if not methods:
        return xr.Dataset()
    looks = [np.array(state.get("sharpness", ())).reshape(-1, 2) for state in states]
    readings = np.full((len(states), max(map(len, looks)), 2), np.nan)
    for run, pairs in enumerate(looks):
        readings[run, : len(pairs)] = pairs
    gradients = [[state.get("gradients", {}).get(name, 0) for name in methods] for state in states]
    meaning = "largest eigenvalue of the Hessian, by power iteration, where the loss was sharp"
    return xr.Dataset(
        {
            "gradients": (("run", "solver"), gradients, {"meaning": "gradients computed"}),
            "sharpness": (("run", "look"), readings[..., 1], {"meaning": meaning}),
            "sharpness_time": (("run", "look"), readings[..., 0], {"meaning": "training time"}),
            "switches": ("run", ["; ".join(state.get("switches", ())) for state in states]),
            "kinks": ("run", [state.get("kinks", np.nan) for state in states]),
            "plain_error": ("run", [state.get("plain_error", np.nan) for state in states]),
        },
        coords={"solver": methods},
    )
