"""Score and embedding norm: how far a measured pair is from a predicted curve."""

from __future__ import annotations

import numpy as np


def relative_deviation(measured: np.ndarray, predicted: np.ndarray, above: float) -> np.ndarray:
    """Return |measured - predicted| / measured where ``measured`` exceeds ``above``, else NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.abs(measured - predicted) / measured
    return np.where(measured > above, deviation, np.nan)


def largest(values: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """Return the largest value that is a number, NaN where there is none."""
    top = np.where(np.isnan(values), -np.inf, values).max(axis=axis)
    return np.where(np.isinf(top), np.nan, top)


def average(values: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """Return the mean of the values that are numbers, NaN where there is none."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def rank_correlation(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return Spearman's correlation along an axis: 1 if y grows whenever x does.

    Equal values share their mean rank; against a constant there is no correlation, and it is NaN.
    """
    from scipy.stats import rankdata  # takes a second to import, and is seldom needed

    a, b = (rankdata(values, axis=axis) for values in (x, y))
    a -= a.mean(axis=axis, keepdims=True)
    b -= b.mean(axis=axis, keepdims=True)
    norm = np.sqrt((a**2).sum(axis=axis) * (b**2).sum(axis=axis))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(axis=axis) / norm)
