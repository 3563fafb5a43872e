r"""Which words go together beyond chance: evidence for every pair of words of two languages.

Of n pairs of sentences a hold the source word, b the target word and c both. If the one had nothing
to do with the other, c would be hypergeometric, and c or more would come with a probability of at
most

.. math::  P(X \ge c) \le \exp(-E), \qquad
    E = \max\bigl\{ b \, D(c/b \,\|\, a/n),\ a \, D(c/a \,\|\, b/n) \bigr\},

D the Kullback-Leibler divergence of two coins (Hoeffding 1963, Theorem 4: drawing without
replacement has no heavier tail than drawing with it). E is in nats, grows with the number of pairs
while shares stay, and is small for words that were seen once or twice however well they fit (Moore
2004). All words of one language are looked at with all of the other, so a pair is beyond chance
where E is above log(words × words / level).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import xlogy

from attnscope.probes.lexicon.counts import Sentences, bags

LEVEL = 0.05
"""Probability of one false pair or more."""


@dataclass(frozen=True, eq=False)
class Association:
    """Evidence for pairs of words that stand together at least once.

    Args:
        evidence: E of each pair, ``(source word, target word)``; what is not above chance has 0.
        together: c of each pair, of the same shape.
        bound: E from which on a pair is beyond chance.
        pairs: n.
    """

    evidence: sparse.csr_array
    together: sparse.csr_array
    bound: float
    pairs: int

    @property
    def best(self) -> NDArray[np.float64]:
        """The largest evidence of each source word."""
        if not self.evidence.shape[0]:
            return np.zeros(0)
        return np.asarray(self.evidence.max(axis=1).todense(), dtype=float).ravel()

    def pairs_needed(self) -> int:
        """Return how many pairs of this kind would put the best pair of words beyond chance."""
        best = float(self.evidence.data.max(initial=0.0))
        return int(np.ceil(self.pairs * self.bound / best)) if best > 0 else 2 * self.pairs


def evidence(c: ArrayLike, a: ArrayLike, b: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return E of pairs of words; 0 where they stand together no more often than by chance.

    >>> evidence([10, 1], 10, 10, 100).round(2)
    array([23.03,  0.  ])
    """
    both, one, other = (np.asarray(value, dtype=float) for value in (c, a, b))
    by_target = other * _divergence(both / other, one / n)
    by_source = one * _divergence(both / one, other / n)
    return np.where(both * n > one * other, np.maximum(by_target, by_source), 0.0)


def association(source: Sentences, target: Sentences, level: float = LEVEL) -> Association:
    """Weigh every pair of words that stand together.

    Args:
        source: sentences.
        target: their translations, as many.
        level: probability of one false pair or more.
    """
    one, other = bags(source), bags(target)
    for table in (one, other):
        table.data[:] = 1.0
    a, b = (np.asarray(table.sum(axis=0)).ravel() for table in (one, other))
    together = (one.T @ other).tocsr()
    together.sort_indices()
    row = np.repeat(np.arange(together.shape[0]), np.diff(together.indptr))
    found = evidence(together.data, a[row], b[together.indices], len(source))
    weighed = sparse.csr_array((found, together.indices, together.indptr), shape=together.shape)
    words = int((a > 0).sum()) * int((b > 0).sum())
    return Association(weighed, together, float(np.log(max(words, 1) / level)), len(source))


def _divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p log(p/q) + (1-p) log((1-p)/(1-q))."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(p < 1, xlogy(1 - p, (1 - p) / (1 - q)), 0.0)
        return np.asarray(xlogy(p, p / q) + rest)
