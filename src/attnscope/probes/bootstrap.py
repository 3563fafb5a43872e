"""The bootstrap over documents: means over what documents hold, and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnscope.errors import AttnscopeError


def resample(groups: np.ndarray, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """Return how often each document is drawn, shape ``(draws, document)``.

    Documents of one group are drawn together. If every document is a group of its own this is the
    bootstrap over documents. A random twin has other weights for every group: its resampled groups
    speak of documents and of weights.

    Args:
        groups: a number a document.
        draws: number of bootstrap samples.
        seed: of the draws.
    """
    names, index = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise AttnscopeError(
            f"{len(names)} group of documents to draw from: expected two or more for an interval."
        )
    generator = np.random.default_rng(seed)
    shares = np.full(len(names), 1 / len(names))
    counts = generator.multinomial(len(names), shares, size=draws)
    return counts[:, index].astype(np.float64)


def pooled_mean(
    sums: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the mean over all pairs of all documents; NaN without any.

    Args:
        sums: shape ``(document, ...)``.
        counts: number of pairs, of a shape that broadcasts against it.
        weights: how often each document is drawn, shape ``(draws, document)``; once unless given.

    Returns:
        Shape ``(...)``, or ``(draws, ...)`` with weights.
    """
    if weights is None:
        total, number = sums.sum(axis=0), counts.sum(axis=0)
    else:
        total, number = np.tensordot(weights, sums, 1), np.tensordot(weights, counts, 1)
    number = np.broadcast_to(number, total.shape)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic of all documents and of every bootstrap sample; quotients and differences too.

    Args:
        value: from all documents.
        drawn: the same from every bootstrap sample, along the first axis.
        level: of the interval.
    """

    value: np.ndarray
    drawn: np.ndarray
    level: float = 0.95

    @classmethod
    def of(
        cls,
        statistic: Callable[..., np.ndarray],
        sums: np.ndarray,
        counts: np.ndarray,
        weights: np.ndarray,
        level: float = 0.95,
    ) -> Estimate:
        """Evaluate a statistic such as :func:`pooled_mean` on all documents and on every sample."""
        return cls(statistic(sums, counts), statistic(sums, counts, weights), level)

    def __truediv__(self, other: Estimate) -> Estimate:
        return Estimate(self.value / other.value, self.drawn / other.drawn, self.level)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.drawn - other.drawn, self.level)

    @property
    def low(self) -> np.ndarray:
        """Lower end of the interval."""
        return self._ends[0]

    @property
    def high(self) -> np.ndarray:
        """Upper end of the interval."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> np.ndarray:
        """The outer quantiles of what was drawn; NaN where a sample has no value."""
        ends = np.full((2, *np.shape(self.value)), np.nan)
        fit = ~np.isnan(self.drawn).any(axis=0)
        tails = ((1 - self.level) / 2, (1 + self.level) / 2)
        ends[:, fit] = np.quantile(self.drawn[:, fit], tails, axis=0)
        return ends
