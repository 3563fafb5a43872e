"""Intervals over seeds for curves and histograms."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

MANY = 2000
"""Degrees of freedom above which Student's distribution is told from the normal one by a series."""


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
    half = student_quantile(count - 1, level) * error
    return mean, mean - half, mean + half


def student_quantile(freedom: int, level: float) -> float:
    """Return the t that Student's variable stays within on both sides of 0, of that probability.

    For a whole number ν of degrees of freedom that probability is a finite sum of θ = arctan(t/√ν)
    (Abramowitz and Stegun, 26.7.3 and 26.7.4), which is inverted by Newton's method, kept inside
    the interval in which the root is. For many degrees of freedom it is the expansion around the
    normal quantile (26.7.5), to 1e-13.

    >>> round(student_quantile(1, 0.95), 4), round(student_quantile(4, 0.95), 4)
    (12.7062, 2.7764)
    """
    if freedom > MANY:
        return _nearly_normal(NormalDist().inv_cdf((1 + level) / 2), freedom)
    low, high = 0.0, math.pi / 2
    angle = level * high
    for _ in range(100):
        if abs(miss := _within(angle, freedom) - level) < 1e-16:
            break
        low, high = (angle, high) if miss < 0 else (low, angle)
        slope = _density(angle, freedom)
        step = angle - miss / slope if slope > 0 else high
        before, angle = angle, step if low < step < high else (low + high) / 2
        if before == angle:
            break
    return math.sqrt(freedom) * math.tan(angle)


def _nearly_normal(x: float, freedom: int) -> float:
    """Return the quantile for many degrees of freedom from that of the normal distribution."""
    corrections = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / freedom ** (n + 1) for n, term in enumerate(corrections))


def _within(angle: float, freedom: int) -> float:
    """Return the probability of |t| below √ν tan θ."""
    sine, cosine = math.sin(angle), math.cos(angle)
    even = freedom % 2 == 0
    term = 1.0 if even else cosine
    total = term if freedom > 1 else 0.0
    for k in range(2 if even else 3, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    return sine * total if even else 2 / math.pi * (angle + sine * total)


def _density(angle: float, freedom: int) -> float:
    """Return how fast that probability grows with θ: 2 Γ((ν+1)/2)/(√π Γ(ν/2)) cos(θ)^(ν-1)."""
    log_ratio = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return 2 / math.sqrt(math.pi) * math.exp(log_ratio) * math.cos(angle) ** (freedom - 1)


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
