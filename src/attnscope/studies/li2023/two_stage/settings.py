"""The settings that ``li2023.two_stage`` compares, and when matrices start to move in them."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr

from attnscope.trajectory import Readings, crossing


class Setting(NamedTuple):
    """How one case is trained: learning rate, and spread of the initial W^K and W^Q.

    Its source is the case with frozen uniform attention that predicts this one. There is none for
    Adam, to which the theory does not apply.
    """

    rate: float
    noise: float
    source: str = ""
    adam: bool = False
    uniform: bool = False


UNIFORM, UNIFORM_FAST = "uniform, SGD 5", "uniform, SGD 20"
TWO_STAGES = "SGD 5"
FAST, FAST_QUIET = "SGD 20", "SGD 20, noise 1e-4"
SLOW, STILL = "SGD 1", "SGD 0.03"
ZERO = "SGD 5, noise 0"
ADAM, ADAM_QUIET, ADAM_SLOW = "Adam 0.01", "Adam 0.01, noise 1e-6", "Adam 0.003"

SETTINGS = {
    UNIFORM: Setting(5, 0, uniform=True),
    UNIFORM_FAST: Setting(20, 0, uniform=True),
    TWO_STAGES: Setting(5, 1e-2, UNIFORM),
    FAST: Setting(20, 1e-2, UNIFORM_FAST),
    FAST_QUIET: Setting(20, 1e-4, UNIFORM_FAST),
    SLOW: Setting(1, 1e-2, UNIFORM),
    STILL: Setting(0.03, 1e-2, UNIFORM),
    ZERO: Setting(5, 0),
    ADAM: Setting(0.01, 1e-3, adam=True),
    ADAM_QUIET: Setting(0.01, 1e-6, adam=True),
    ADAM_SLOW: Setting(0.003, 1e-3, adam=True),
}
MATRICES = ("K", "Q", "V")


def reaches(run: Readings, share: float = 0.1) -> xr.DataArray:
    """Return the step where the change of each matrix reaches a share of its maximum.

    Interpolated between record points; NaN for a matrix that never moves.
    """
    return crossing(run.change, share * run.change.max("step"))
