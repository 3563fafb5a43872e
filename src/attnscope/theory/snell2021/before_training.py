"""What the training pairs alone say about attention, before any model is trained.

Section 4 of Snell 2021: the count table C (eq 16) is what a model under uniform attention learns
first (eq 15), and α^IBM (eq 19) is where IBM Model 1 looks. A class is a sentence of one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from attnscope.probes.lexicon import ibm1
from attnscope.probes.lexicon.agreement import mean_agreement
from attnscope.probes.lexicon.cells import Cells
from attnscope.probes.lexicon.counts import count_table, sentences, translation_table

Side = Sequence[NDArray[np.integer]] | Sequence[Sequence[int]]
"""Word ids of each source, or of what belongs to it."""
COUNTS, IBM, EM = "counts", "ibm", "em"
COUNTED = (COUNTS, IBM)
"""Predictions that are read off the count table."""
ITERATIONS = 5
"""Of the EM algorithm; the first gives eq 17."""


@dataclass(frozen=True, eq=False)
class AskedCells:
    """The cells that are asked about: a source word and a target word each.

    Pairs to learn from are word ids of each source, and of what belongs to it: its
    translation, or its class.

    Args:
        cells: the rows that they lie in.
        source: word of every cell.
        target: word of every row.
        vocabulary: source words that there are, whether they occur in the pairs or not.
        outputs: the same for target words.
    """

    cells: Cells
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    vocabulary: int
    outputs: int

    def predicted(self, source: Side, target: Side) -> dict[str, NDArray[np.float64]]:
        """Predict attention for every cell from pairs alone.

        Returns:
            ``counts``, the start of the log odds C_io - mean over o' of C_io' (eq 15); ``ibm`` and
            ``em``, α of IBM Model 1 after one iteration (eq 17 to 19) and after several: weights
            that sum to 1 over the positions of a row, or to 0 where no source word was ever seen
            with the target word.
        """
        one = sentences(source, vocabulary=self.vocabulary)
        other = sentences(target, vocabulary=self.outputs)
        em = ibm1.fit(one, other, ITERATIONS)
        return {**self._from(count_table(one, other)), EM: self._weights(em.translation)}

    def permuted(
        self,
        source: Side,
        target: Side,
        alpha: NDArray[np.float64],
        times: int,
    ) -> dict[str, list[float]]:
        """Return A(α, v) in percent, v from pairs put together at random, several times.

        Words that are rare have extreme counts by chance, and attention may prefer rare words:
        this, not random order, is what a prediction must exceed.

        Args:
            source: as for :meth:`predicted`.
            target: the same.
            alpha: attention, shape ``(row, position)``.
            times: how often.
        """
        one = sentences(source, vocabulary=self.vocabulary)
        agreed: dict[str, list[float]] = {name: [] for name in COUNTED}
        for seed in range(times):
            order = np.random.default_rng(seed).permutation(len(target))
            other = sentences([target[m] for m in order], vocabulary=self.outputs)
            for name, flat in self._from(count_table(one, other)).items():
                v = self.cells.padded(flat)
                agreed[name].append(100 * mean_agreement(alpha, v, self.cells.mask).value)
        return agreed

    def _from(self, counts: sparse.csr_array) -> dict[str, NDArray[np.float64]]:
        mean = counts.sum(axis=1) / self.outputs
        return {
            COUNTS: self._read(counts) - mean[self.source],
            IBM: self._weights(translation_table(counts)),
        }

    def _read(self, table: sparse.csr_array) -> NDArray[np.float64]:
        """Return the entry of every cell."""
        goals = np.repeat(self.target, self.cells.length)
        return np.asarray(table[self.source, goals], dtype=float)

    def _weights(self, table: sparse.csr_array) -> NDArray[np.float64]:
        """Return α^IBM of every cell (eq 19)."""
        beta = self._read(table)
        total = np.add.reduceat(beta, self.cells.ends - self.cells.length)
        return beta / np.repeat(np.where(total > 0, total, 1.0), self.cells.length)
