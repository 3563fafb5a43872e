"""Knowledge first, attention second: how many steps later attention is half way.

Knowledge is the mean over rows of max_l β_l, concentration the mean of 1 - H(α)/log L. Both are
counted from step 0 to their maximum, and half way is where they first reach one half of that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STILL = 1e-4
"""A rise below this is none; readings have single precision."""


def half_step(steps: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the step where a curve first is half way from its start to its maximum.

    Between checkpoints it is interpolated. A curve that does not rise is half way at the last step
    at the earliest, so that step is returned; NaN for a curve with gaps.

    >>> half_step(np.array([0.0, 10.0, 50.0]), np.array([0.2, 0.2, 0.6]))
    30.0
    >>> half_step(np.array([0.0, 10.0, 50.0]), np.array([0.2, 0.2, 0.1]))
    50.0
    """
    if np.isnan(values).any():
        return float("nan")
    share = risen(values)
    if share is None:
        return float(steps[-1])
    at = int(np.flatnonzero(share >= 0.5)[0])
    part = (0.5 - share[at - 1]) / (share[at] - share[at - 1])
    return float(steps[at - 1] + part * (steps[at] - steps[at - 1]))


def risen(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a curve as shares of the way from its start to its maximum; none if it stays."""
    way = values.max() - values[0]
    return (values - values[0]) / way if way > STILL else None
