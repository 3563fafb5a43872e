"""What the studies of Snell 2021 share: where the paper is, sequences drawn anew, and curves."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.engines import Steps
from attnscope.errors import AttnscopeError
from attnscope.report import Band, Line, Mark

CITATION = (
    "Snell, Zhong, Klein, Steinhardt. Approximating How Single Head Attention Learns. "
    "arXiv:2103.07601, 2021."
)
HELD_OUT = 1_000_003
"""Seed of the held-out sequences, which are read; runs have small seeds."""


def fresh_rows(training: Steps) -> int:
    """Return the number of rows of which none is needed twice: every step has fresh sequences."""
    if training.batch is None:
        raise AttnscopeError("batch = None: expected the number of fresh sequences in a step.")
    return training.batch * (training.steps + 1)


def first_step(reading: xr.DataArray, level: float) -> xr.DataArray:
    """Return the first recorded step at which a curve has reached a level; NaN if it never has.

    Unlike :func:`attnscope.trajectory.crossing`, nothing is interpolated.
    """
    return reading["step"].where(reading >= level).min("step")


def extent(reading: xr.DataArray, over: str = "seed") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, least and largest over seeds, or over another dimension."""
    mean, low, high = (reading.reduce(each, over) for each in (np.mean, np.min, np.max))
    return mean.to_numpy(), low.to_numpy(), high.to_numpy()


def ranged(reading: xr.DataArray, label: str, color: int) -> list[Mark]:
    """Return the mean over seeds along time, with the range of the seeds."""
    time, (mean, low, high) = reading["time"].to_numpy(), extent(reading)
    return [Band(time, low, high, color=color), Line(time, mean, label, color)]
