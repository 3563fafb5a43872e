"""IBM Model 1: which source word each target word comes from, learned by EM from pairs alone.

Brown et al. (1993); one iteration from uniform is the table of Snell 2021, eq 16 and 17.

Let s = (m, o) be a target word o of pair m, c_s times in it. With the table θ over the cells (i, o)
of words that go together at all, an iteration is

    Z_s = Σ_{l} θ(o | x_l^m),    n(i, o) = θ(o | i) Σ_{m, l: x_l^m = i} c_s / Z_s,    θ = n / Σ_o n.

With M the matrix (cell, s) that has an entry for each source word of each s, these are two sparse
products, Z = Mᵀθ and n = θ · M(c/Z). The cells of one target word need nothing of another's, except
the last sum, so M is kept in pieces, by ranges of target words; a piece fits the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.counts import WordIds, bags, paired

PIECE = 2**18
"""Entries of a piece; a target word is not split."""
Ids = Sequence[int] | NDArray[np.integer]
"""Words of a sentence as numbers."""
KEPT = 2**27
"""Entries that are kept, at 4 bytes; with more, pieces are built anew each time."""


@dataclass(frozen=True, eq=False)
class Model1:
    """A table of translation probabilities.

    Args:
        translation: Trans(o|i), ``(source word, target word)``; rows sum to 1, or to 0 for a word
            that occurs with no target. With a null word its row is the last.
        null: whether there is a null word, which stands in every source sentence.
        log_likelihoods: log Π_m Π_t (1/L^m) Σ_l Trans(y_t|x_l) of the training pairs, after 0, 1,
            2, ... iterations; the null word counts in L. The first is under the uniform table.
    """

    translation: sparse.csr_array
    null: bool
    log_likelihoods: NDArray[np.float64]

    def beta(self, x: Ids, y: Ids) -> NDArray[np.float64]:
        """Read off β_{t,l} = Trans(y_t|x_l) (Snell 2021 eq 18), 0 for words never seen together.

        Returns:
            Shape ``(t, l)``; with a null word it is one more column, the last.
        """
        words, vocabulary = self.translation.shape
        source = _numbers("source", x, words - self.null)
        target = _numbers("target", y, vocabulary)
        if self.null:
            source = np.append(source, words - 1)
        if not len(source) or not len(target):
            return np.zeros((len(target), len(source)))
        return np.ascontiguousarray(self.translation[source][:, target].toarray().T)

    def alpha(self, x: Ids, y: Ids) -> NDArray[np.float64]:
        """Align: α(t, l) = β_{t,l} / Σ_l' β_{t,l'} (Snell 2021 eq 19).

        Returns:
            Shape ``(t, l)``, a column for the null word as in :meth:`beta`. Where no source word
            is known to give y_t, its row is 0.
        """
        beta = self.beta(x, y)
        total = beta.sum(axis=1, keepdims=True)
        return beta / np.where(total > 0, total, 1.0)


def fit(source: WordIds, target: WordIds, iterations: int = 5, null: bool = False) -> Model1:
    """Run EM from the uniform table.

    A pair with an empty target adds nothing.

    Args:
        source: sentences that are translated; see :data:`~attnscope.probes.counts.Words`.
        target: their translations.
        iterations: how often; 1 is eq 17 of Snell 2021.
        null: put a null word into every source sentence, which target words may come from that
            have no other origin.

    Raises:
        AttnscopeError: for fewer than one iteration, for sides of different length, when there is
            no target word at all, and when a target with words has an empty source and ``null`` is
            false.
    """
    if iterations < 1:
        raise AttnscopeError(f"iterations is {iterations}: expected 1 or more.")
    one, other = paired(source, target, null=null)
    if not len(other.ids):
        raise AttnscopeError(f"the {len(other)} target sentences hold no word: expected some.")
    words, starts, count = one.ids, one.starts, one.vocabulary
    if null:
        words = np.insert(words, starts[1:], count)
        starts, count = starts + np.arange(len(starts)), count + 1
    built = _Pieces(words.astype(np.int32), starts, count, bags(other).tocsc())
    pieces: Iterable[_Piece] = list(built) if built.entries <= KEPT else built
    counted: list[NDArray[np.float64]] = []
    blocks, likelihoods, total = [], [], np.zeros(count)
    for step in range(iterations + 1):
        likelihood, before, total = 0.0, total, np.zeros(count)
        for number, piece in enumerate(pieces):
            if step:
                table = counted[number] / np.repeat(before[piece.rows], piece.row_sizes)
                z = piece.by_cell.T @ table
            else:
                table = np.full(piece.cells, 1 / other.vocabulary)
                z = piece.length / other.vocabulary
                counted.append(table)
            # Not by @, which wakes the threads of BLAS for a sum this short.
            likelihood += float((piece.weight * np.log(z / piece.length)).sum())
            if step == iterations:
                blocks.append(piece.block(table, count))
            else:
                counted[number] = table * (piece.by_cell @ (piece.weight / z))
                total[piece.rows] += np.add.reduceat(counted[number], piece.row_starts)
        likelihoods.append(likelihood)
    return Model1(sparse.hstack(blocks, format="csr"), null, np.array(likelihoods))


@dataclass(frozen=True, eq=False)
class _Piece:
    """A range of target words: their cells, sorted by source word and then by target word.

    Args:
        by_cell: M of the module's text, ``(cell, s)``.
        weight: c_s, how often the target word stands in its pair.
        length: L of that pair.
        targets: the target word of each cell, counted from the first of the range.
        rows: the source words that have cells.
        row_starts: the first cell of each of them.
        width: number of target words.
    """

    by_cell: sparse.csr_array
    weight: NDArray[np.float64]
    length: NDArray[np.int64]
    targets: NDArray[np.int32]
    rows: NDArray[np.int64]
    row_starts: NDArray[np.int64]
    width: int

    @property
    def cells(self) -> int:
        return len(self.targets)

    @property
    def row_sizes(self) -> NDArray[np.int64]:
        return np.diff(self.row_starts, append=self.cells)

    def block(self, table: NDArray[np.float64], count: int) -> sparse.csr_array:
        """Return the table as the columns of these target words."""
        sizes = np.zeros(count + 1, dtype=np.int32)
        sizes[self.rows + 1] = self.row_sizes
        return sparse.csr_array((table, self.targets, np.cumsum(sizes)), shape=(count, self.width))


class _Pieces:
    """All pieces, built when they are asked for.

    Repeated words of a target are one s with a weight. Repeated words of a source stay apart: to
    add them up takes as long as to go through the few entries more.

    Args:
        words: source words of all pairs, end to end.
        starts: where each pair's begin.
        count: source words there are.
        targets: how often each target word stands in each pair, ``(pair, word)``.
    """

    def __init__(
        self,
        words: NDArray[np.int32],
        starts: NDArray[np.int64],
        count: int,
        targets: sparse.csc_array,
    ) -> None:
        self.words, self.starts, self.count, self.targets = words, starts, count, targets
        self.lengths = np.diff(starts)[targets.indices]
        self.ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])
        self.by_word = self.ends[targets.indptr]
        self.bounds = [0]
        while self.bounds[-1] < len(self.by_word) - 1:
            low = self.bounds[-1]
            fits = int(np.searchsorted(self.by_word, self.by_word[low] + PIECE, "right")) - 1
            self.bounds.append(max(low + 1, fits))
        # All pieces look at one array of ones: the entries of M take no memory of their own.
        self.ones = np.ones(int(np.diff(self.by_word[self.bounds]).max()))

    @property
    def entries(self) -> int:
        return int(self.by_word[-1])

    def __iter__(self) -> Iterator[_Piece]:
        for low, high in zip(self.bounds, self.bounds[1:], strict=False):
            yield self._build(low, high)

    def _build(self, low: int, high: int) -> _Piece:
        here = slice(self.targets.indptr[low], self.targets.indptr[high])
        length, offsets = self.lengths[here], self.ends[here] - self.by_word[low]
        size = int(self.by_word[high] - self.by_word[low])
        first = self.starts[self.targets.indices[here]]
        source = self.words[np.arange(size) + np.repeat(first - offsets, length)]
        number = np.repeat(np.arange(len(length), dtype=np.int32), length)
        # Entries come by target word; to transpose is to sort them by source word, in linear time,
        # and keeps the order of the target words. What is carried along is the number of s.
        indptr = (self.by_word[low : high + 1] - self.by_word[low]).astype(np.int32)
        shape = (high - low, self.count)
        entries = sparse.csr_array((number, source, indptr), shape=shape).tocsc()
        rows = np.flatnonzero(np.diff(entries.indptr))
        new = np.ones(size, dtype=bool)
        np.not_equal(entries.indices[1:], entries.indices[:-1], out=new[1:])
        new[entries.indptr[rows]] = True
        cells = np.flatnonzero(new)
        ends = np.append(cells, size).astype(np.int32)
        by_cell = sparse.csr_array(
            (self.ones[:size], entries.data, ends), shape=(len(cells), len(length))
        )
        return _Piece(
            by_cell,
            self.targets.data[here],
            length,
            entries.indices[cells],
            rows,
            np.searchsorted(cells, entries.indptr[rows]),
            high - low,
        )


def _numbers(side: str, words: Ids, vocabulary: int) -> NDArray[np.int64]:
    found = np.asarray(words)
    if found.ndim != 1 or (len(found) and not np.issubdtype(found.dtype, np.integer)):
        raise AttnscopeError(
            f"the {side} is {found.dtype} of shape {found.shape}: expected a list of word ids."
        )
    if len(found) and (found.min() < 0 or found.max() >= vocabulary):
        bad = found[(found < 0) | (found >= vocabulary)][0]
        raise AttnscopeError(
            f"the {side} holds word {bad}: expected 0 to {vocabulary - 1}, the model's words."
        )
    return found.astype(np.int64)
