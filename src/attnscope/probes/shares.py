"""Shares of runs, such as of those that have learned, with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class Share:
    """A share of runs and its interval."""

    share: float
    low: float
    high: float


def share_interval(hits: int, count: int, level: float = 0.95) -> Share:
    """Return hits/count with the interval of Clopper and Pearson (1934).

    Its ends are the probabilities at which so many hits or more, or so many or fewer, would be seen
    in a share (1 - level)/2 of all experiments: quantiles of Beta(hits, count - hits + 1) and of
    Beta(hits + 1, count - hits). No hit at all gives 0 as the lower end, all hits 1 as the upper.

    >>> share = share_interval(0, 20)
    >>> share.low, round(share.high, 3)
    (0.0, 0.168)
    """
    if count < 1 or not 0 <= hits <= count:
        raise AttnscopeError(
            f"{hits} hits of {count} runs: expected one run or more and from 0 to as many hits."
        )
    if not 0 < level < 1:
        raise AttnscopeError(f"level = {level}: expected a probability above 0 and below 1.")
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return Share(hits / count, low, high)


def share_curve(hits: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return share, lower and upper end at each step, from booleans of shape ``(run, step)``."""
    shares = [share_interval(int(found), len(hits), level) for found in hits.sum(axis=0)]
    share, low, high = (
        np.array([getattr(each, name) for each in shares]) for name in ("share", "low", "high")
    )
    return share, low, high
