"""Intervals over seeds for curves and histograms."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit


def mean_interval(
    values: np.ndarray, axis: int = 0, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, lower and upper end of Student's interval of the mean along an axis.

    With a single value there is no spread to estimate, and the ends are not a number.

    Example:
        >>> mean, low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
        >>> float(mean), round(float(low), 3), round(float(high), 3)
        (2.0, -0.484, 4.484)
    """
    count = values.shape[axis]
    mean = values.mean(axis=axis)
    if count < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    error = values.std(axis=axis, ddof=1) / np.sqrt(count)
    half = stdtrit(count - 1, (1 + level) / 2) * error
    return mean, mean - half, mean + half


def histogram_interval(
    samples: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share of samples in each bin: mean over runs and its 95 % interval.

    Args:
        samples: shape ``(run, sample)``.
        edges: bin edges; samples outside are counted in the outermost bins.
    """
    clipped = np.clip(samples, edges[0], edges[-1])
    shares = np.stack([np.histogram(run, edges)[0] / run.size for run in clipped])
    mean, low, high = mean_interval(shares)
    return mean, np.clip(low, 0, None), high
