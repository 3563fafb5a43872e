r"""IBM Model 2 with one number for where words stand: Dyer, Chahuneau and Smith (2013).

Model 1 does not know the order of words. Model 2 has a table of it that is too large to learn from
few pairs. Here it is a single number, the tension λ: target word t of T comes from source word l of
L with the probability

.. math::  \delta(l \mid t) = (1 - p_0) \, e^{\lambda h(t, l)} / Z_\lambda(t), \qquad
    h(t, l) = -\Bigl| \frac{t}{T} - \frac{l}{L} \Bigr|,

t and l counted from 1, and from the null word with the probability p_0. λ = 0 is Model 1 with a
null word of this share; with a large λ all words stand on the diagonal. EM as for Model 1: with

.. math::  q(l \mid t) \propto \delta(l \mid t) \, \theta(y_t \mid x_l)

counts n are summed and divided by their rows (or, with α above 0, θ = exp(ψ(n + α) - ψ(Σ(n + α))):
variational Bayes with a Dirichlet prior, which keeps rare words from collecting what has no other
origin), and λ climbs the slope of the expected log likelihood,

.. math::  \sum_t \sum_{l \ge 1} q(l \mid t) h(t, l) - \sum_t (1 - q(0 \mid t)) \, E_\delta[h],

a mean over target words, in :data:`CLIMBS` steps. It is concave in λ. Sums of Z depend on (t, T, L)
alone, so they are taken once for every shape of a pair, not for every pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.counts import Sentences, WordIds, paired
from attnscope.probes.lexicon.ibm1 import Ids, Model1

TENSION, NULL_SHARE = 4.0, 0.08
"""Where λ starts, and p_0; as in the authors' program."""
CLIMBS, RATE = 8, 20.0
"""Steps of λ in an iteration, and their size times the slope."""
BOUNDS = (0.1, 14.0)
"""λ stays between them."""
PIECE = 2**21
"""Cells that are gone through at once."""


@dataclass(frozen=True, eq=False)
class DiagonalModel(Model1):
    """A table of translation probabilities, and how strongly the diagonal pulls.

    Args:
        translation: as of :class:`~attnscope.probes.lexicon.ibm1.Model1`, with the null word's row
            last. With α above 0 rows sum to less than 1.
        null: always true.
        log_likelihoods: log Π Σ_l δ(l|t) θ(y_t|x_l) after 0, 1, 2, ... iterations.
        tension: λ.
        null_share: p_0.
    """

    tension: float = TENSION
    null_share: float = NULL_SHARE

    def alpha(self, x: Ids, y: Ids) -> NDArray[np.float64]:
        """Align: q(l|t), shape ``(t, l)``, the null word in the last column.

        Where no source word is known to give y_t, its row is 0.
        """
        beta = self.beta(x, y)
        weights = beta * diagonal_prior(len(y), len(x), self.tension, self.null_share)
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1.0)


def diagonal_prior(
    target: int, source: int, tension: float, null_share: float = NULL_SHARE
) -> NDArray[np.float64]:
    """Return δ(l|t) of a pair, shape ``(t, l + 1)``, the null word in the last column.

    >>> diagonal_prior(2, 2, 0.0, 0.5)
    array([[0.25, 0.25, 0.5 ],
           [0.25, 0.25, 0.5 ]])
    """
    t = np.arange(1, target + 1)[:, None] / max(target, 1)
    place = np.arange(1, source + 1) / max(source, 1)
    pull = np.exp(-tension * np.abs(t - place))
    null = np.full((target, 1), null_share)
    if not source:
        return null
    return np.hstack([(1 - null_share) * pull / pull.sum(axis=1, keepdims=True), null])


def fit(
    source: WordIds,
    target: WordIds,
    iterations: int = 5,
    *,
    tension: float = TENSION,
    null_share: float = NULL_SHARE,
    climb: bool = True,
    alpha: float = 0.0,
) -> DiagonalModel:
    """Run EM from the uniform table.

    Args:
        source: sentences that are translated.
        target: their translations.
        iterations: how often.
        tension: λ at the start.
        null_share: p_0, between 0 and 1.
        climb: whether λ is learned.
        alpha: of the Dirichlet prior; 0 for maximum likelihood, 0.01 in the authors' program.

    Raises:
        AttnscopeError: for a number out of its range, for sides of different length, when there is
            no target word at all, and when a target with words has an empty source.
    """
    for name, value, low, high in (
        ("iterations", iterations, 1, np.inf),
        ("tension", tension, 0, 100),
        ("alpha", alpha, 0, np.inf),
    ):
        if not low <= value <= high:
            raise AttnscopeError(f"{name} is {value}: expected {low} to {high}.")
    if not 0 < null_share < 1:
        raise AttnscopeError(f"null_share is {null_share}: expected a number between 0 and 1.")
    one, other = paired(source, target)
    if not len(other.ids):
        raise AttnscopeError(f"the {len(other)} target sentences hold no word: expected some.")
    cells = _Cells(one, other)
    table = np.full(len(cells.codes), 1 / other.vocabulary)
    likelihoods = []
    for step in range(iterations + 1):
        prior = cells.prior(tension, null_share)
        found = cells.expect(table, prior, counted=step < iterations)
        likelihoods.append(found.likelihood)
        if step == iterations:
            break
        row = cells.codes // other.vocabulary
        counts = found.counts + alpha
        total = np.bincount(row, weights=counts, minlength=one.vocabulary + 1)[row]
        table = counts / total if not alpha else np.exp(digamma(counts) - digamma(total))
        if climb:
            tension = cells.climb(tension, found.slope, found.kept)
    rows, columns = np.divmod(cells.codes, other.vocabulary)
    shape = (one.vocabulary + 1, other.vocabulary)
    translation = sparse.csr_array((table, (rows, columns)), shape=shape)
    return DiagonalModel(translation, True, np.array(likelihoods), tension, null_share)


@dataclass(frozen=True, eq=False)
class _Expected:
    """What one look at the data gives.

    Args:
        likelihood: log likelihood.
        counts: expected count of each pair of words.
        slope: Σ q h.
        kept: Σ (1 - q(0|t)), for each row of a shape.
    """

    likelihood: float
    counts: NDArray[np.float64]
    slope: float
    kept: NDArray[np.float64]


class _Cells:
    """All (t, l) of all pairs, row by row, the null word last in each row.

    Args:
        one: the sources.
        other: the targets.
    """

    def __init__(self, one: Sentences, other: Sentences) -> None:
        filled = np.flatnonzero(other.lengths > 0)
        sources, targets = one.lengths[filled], other.lengths[filled]
        # Rows of a shape, and where its cells lie in the one table of all shapes.
        shapes, shape = np.unique(np.stack([sources, targets]), axis=1, return_inverse=True)
        self.shape_rows = np.repeat(shapes[0] + 1, shapes[1])
        first_row = np.concatenate([[0], np.cumsum(shapes[1])])
        shape_starts = np.concatenate([[0], np.cumsum(self.shape_rows)])
        t = np.concatenate([np.arange(1, n + 1) / n for n in shapes[1]])
        place = np.concatenate(
            [np.tile([*(np.arange(1, n + 1) / n), np.nan], m) for n, m in shapes.T]
        )
        self.h = -np.abs(np.repeat(t, self.shape_rows) - place)
        self.null = np.isnan(self.h)
        self.h[self.null] = 0.0
        self.shape_starts = shape_starts[:-1]
        # Rows of the data, a target word each.
        pair = np.repeat(np.arange(len(filled)), targets)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(targets) - targets, targets)
        self.row = first_row[np.ravel(shape)[pair]] + within
        self.width = sources[pair] + 1
        self.starts = np.concatenate([[0], np.cumsum(self.width)])
        self.word = other.ids
        self.source, self.first = one.ids, one.starts[filled][pair]
        self.vocabulary, self.nothing = other.vocabulary, one.vocabulary
        codes = np.concatenate([self._codes(piece) for piece in self._pieces()])
        self.codes, inverse = np.unique(codes, return_inverse=True)
        self.cell = np.ravel(inverse).astype(np.int32)

    def _pieces(self) -> list[slice]:
        """Ranges of rows that hold about :data:`PIECE` cells."""
        bounds = [0]
        while bounds[-1] < len(self.width):
            upto = np.searchsorted(self.starts, self.starts[bounds[-1]] + PIECE, "right") - 1
            bounds.append(max(bounds[-1] + 1, int(upto)))
        return [slice(a, b) for a, b in pairwise(bounds)]

    def _along(self, rows: slice, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return first, first + 1, ... for each row, as many as it has cells."""
        starts = self.starts[rows] - self.starts[rows.start]
        size = int(self.starts[rows.stop] - self.starts[rows.start])
        return np.arange(size) + np.repeat(first - starts, self.width[rows])

    def _codes(self, rows: slice) -> NDArray[np.int64]:
        at = self._along(rows, self.first[rows])
        last = self.starts[rows.start + 1 : rows.stop + 1] - self.starts[rows.start] - 1
        # What stands behind a sentence is the next one's first word, or nothing at all.
        words = self.source[np.minimum(at, len(self.source) - 1)]
        words[last] = self.nothing
        return words * self.vocabulary + np.repeat(self.word[rows], self.width[rows])

    def prior(self, tension: float, null_share: float) -> NDArray[np.float64]:
        """Return δ of every shape, cell by cell."""
        pull = self._pull(tension)
        total = np.repeat(np.add.reduceat(pull, self.shape_starts), self.shape_rows)
        return np.where(self.null, null_share, (1 - null_share) * pull / total)

    def _pull(self, tension: float) -> NDArray[np.float64]:
        return np.where(self.null, 0.0, np.exp(tension * self.h))

    def expect(
        self, table: NDArray[np.float64], prior: NDArray[np.float64], *, counted: bool
    ) -> _Expected:
        """Go through the data once; without ``counted`` for the likelihood alone."""
        likelihood = slope = 0.0
        counts, kept = np.zeros(len(self.codes)), np.zeros(len(self.shape_rows))
        for rows in self._pieces():
            place = self._along(rows, self.shape_starts[self.row[rows]])
            cell = self.cell[self.starts[rows.start] : self.starts[rows.stop]]
            weight = prior[place] * table[cell]
            total = np.add.reduceat(weight, self.starts[rows] - self.starts[rows.start])
            likelihood += float(np.log(total).sum())
            if not counted:
                continue
            weight /= np.repeat(total, self.width[rows])
            counts += np.bincount(cell, weights=weight, minlength=len(counts))
            slope += float((weight * self.h[place]).sum())
            last = self.starts[rows.start + 1 : rows.stop + 1] - self.starts[rows.start] - 1
            kept += np.bincount(self.row[rows], weights=1 - weight[last], minlength=len(kept))
        return _Expected(likelihood, counts, slope, kept)

    def climb(self, tension: float, slope: float, kept: NDArray[np.float64]) -> float:
        """Return λ some steps further up."""
        for _ in range(CLIMBS):
            pull = self._pull(tension)
            mean = np.add.reduceat(pull * self.h, self.shape_starts)
            mean /= np.add.reduceat(pull, self.shape_starts)
            up = (slope - float((kept * mean).sum())) / len(self.word)
            tension = float(np.clip(tension + RATE * up, *BOUNDS))
        return tension
