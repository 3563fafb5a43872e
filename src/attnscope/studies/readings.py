"""Readings of a trajectory, case by case."""

from __future__ import annotations

import numpy as np
import xarray as xr


def select(tree: xr.DataTree, name: str, case: str, group: str = "observables") -> xr.DataArray:
    """Return a variable of the runs of one case, ordered by seed."""
    data: xr.DataArray = tree[f"{group}/{name}"]  # type: ignore[assignment]
    return data.isel(run=np.flatnonzero(data["case"].to_numpy() == case))
