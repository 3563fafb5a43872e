r"""Does a feature go with a class, beyond chance and for all features looked at together?

A feature stands in n texts, k of them of class c, which has the share b of all texts. If it had
nothing to do with the class, so many or more would be of it with the probability

.. math::  P(X \ge k) = I_b(k, n - k + 1),

and the smallest share of the class that k of n could come from is the one at which that is as small
as the level. Many features are looked at, so the level is divided by their number (Bonferroni);
those that are too rare to reach it even if all their texts were of one class are not counted
(Tarone 1990).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

LEVEL = 0.05
"""Probability of one false finding or more among all features of a kind."""


@dataclass(frozen=True, eq=False)
class Dependence:
    """How features of one kind go with classes; arrays have an entry for each feature.

    Args:
        best: the class that it speaks for most.
        count: texts that have it.
        share: share of them that are of that class.
        low: lower end of that share, for all features together.
        lift: how far it is from the class's share to certainty, (share - b)/(1 - b).
        certain: whether the lower end is above the class's share.
        tested: how many features were tested.
        least: texts that a feature must have to be told from chance at all.
    """

    best: NDArray[np.int64]
    count: NDArray[np.int64]
    share: NDArray[np.float64]
    low: NDArray[np.float64]
    lift: NDArray[np.float64]
    certain: NDArray[np.bool_]
    tested: int
    least: int


def least_texts(base: float, tests: int, level: float = LEVEL) -> int:
    """Return how many texts, all of one class, tell a feature from chance.

    >>> least_texts(0.5, 1), least_texts(0.5, 10_000)
    (5, 18)
    """
    return int(np.ceil(np.log(level / max(tests, 1)) / np.log(base)))


def dependence(
    by_class: NDArray[np.int64], totals: NDArray[np.int64], level: float = LEVEL
) -> Dependence:
    """Test every feature against every class.

    Args:
        by_class: texts of each class that have each feature, ``(feature, class)``.
        totals: texts of each class.
        level: see :data:`LEVEL`.
    """
    base = totals / totals.sum()
    count = by_class.sum(axis=1)
    rarest = float(base[base > 0].min())
    # The rarer the features that are tested, the more there are, and the more each must have.
    for least in range(1, int(count.max(initial=0)) + 2):
        tests = max(1, int((count >= least).sum()) * len(base))
        if least_texts(rarest, tests, level) <= least:
            break
    share = by_class / np.maximum(count, 1)[:, None]
    chance = betainc(np.maximum(by_class, 1), count[:, None] - by_class + 1, base)
    chance = np.where(by_class == 0, 1.0, chance)
    best = (share - base).argmax(axis=1)
    rows = np.arange(len(count))
    hits = by_class[rows, best]
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), count - hits + 1, level / tests), 0.0)
    lift = (share[rows, best] - base[best]) / (1 - base[best])
    certain = (chance[rows, best] < level / tests) & (count >= least)
    return Dependence(best, count, share[rows, best], low, lift, certain, tests, least)
