"""Which words occur together: the count table that early training reads off the data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from attnscope.errors import AttnscopeError


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences of different lengths, laid end to end.

    Args:
        ids: word ids from 0, all sentences one after the other; int64.
        starts: sentence m is ``ids[starts[m]:starts[m + 1]]``; one entry more than sentences.
        vocabulary: how many words there are; every number is below it.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    vocabulary: int

    def __post_init__(self) -> None:
        if not len(self.ids):
            return
        low, high = int(self.ids.min()), int(self.ids.max())
        if low < 0 or high >= self.vocabulary:
            raise AttnscopeError(
                f"word ids go from {low} to {high}: expected 0 to {self.vocabulary - 1}, for "
                f"{self.vocabulary} words."
            )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each sentence, repeated ones counted as often as they stand there."""
        return np.diff(self.starts)


WordIds = Sentences | Sequence[Sequence[int]] | Sequence[NDArray[np.integer]] | NDArray[np.integer]
"""Sentences as such, as lists of word ids, or as an array with a row for each."""


def sentences(
    words: WordIds, mask: NDArray[np.bool_] | None = None, vocabulary: int | None = None
) -> Sentences:
    """Lay sentences end to end.

    Args:
        words: a list of word ids for each sentence, or an array ``(sentence, position)``.
        mask: for an array, true where there is a word; without it there is one everywhere.
        vocabulary: how many words there are; by default one more than the largest number.

    Raises:
        AttnscopeError: if a number is not an integer or is out of range, or if the mask does not
            have the array's shape.
    """
    if isinstance(words, Sentences):
        return words
    if isinstance(words, np.ndarray):
        if words.ndim != 2:
            raise AttnscopeError(f"word ids of shape {words.shape}: expected (sentence, position).")
        kept = np.ones(words.shape, dtype=bool) if mask is None else np.asarray(mask)
        if kept.dtype != bool or kept.shape != words.shape:
            raise AttnscopeError(
                f"the mask is {kept.dtype} of shape {kept.shape}: expected bool of the word "
                f"numbers' shape, {words.shape}."
            )
        flat, lengths = words[kept], kept.sum(axis=1)
    else:
        if mask is not None:
            raise AttnscopeError("lists of word ids came with a mask: expected an array then.")
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        arrays = len(words) > 0 and isinstance(words[0], np.ndarray)
        flat = np.concatenate(words) if arrays else np.array(list(chain.from_iterable(words)))
    if len(flat) and not np.issubdtype(flat.dtype, np.integer):
        raise AttnscopeError(f"the words are {flat.dtype}: expected word ids, integers.")
    ids = flat.astype(np.int64)
    largest = int(ids.max()) if len(ids) else -1
    return Sentences(ids, _starts(lengths), largest + 1 if vocabulary is None else vocabulary)


def number_words(texts: Sequence[Sequence[str]]) -> tuple[Sentences, tuple[str, ...]]:
    """Number the words in the order they first occur; return the sentences and the words.

    >>> found, words = number_words([["a", "dog"], ["a", "cat"]])
    >>> found.ids.tolist(), words
    ([0, 1, 0, 2], ('a', 'dog', 'cat'))
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    looked_up: Iterable[int] = map(numbers.__getitem__, chain.from_iterable(texts))
    ids = np.fromiter(looked_up, np.int64, int(lengths.sum()))
    return Sentences(ids, _starts(lengths), len(numbers)), tuple(numbers)


def paired(source: WordIds, target: WordIds, *, null: bool = False) -> tuple[Sentences, Sentences]:
    """Lay both sides end to end and see that they belong together.

    Raises:
        AttnscopeError: if one side has more sentences, or if a target has words and its source
            has none (with ``null`` it has one always).
    """
    one, other = sentences(source), sentences(target)
    if len(one) != len(other):
        raise AttnscopeError(
            f"there are {len(one)} source and {len(other)} target sentences: expected as many."
        )
    orphans = np.flatnonzero((one.lengths == 0) & (other.lengths > 0))
    if len(orphans) and not null:
        raise AttnscopeError(
            f"the source sentence of pair {orphans[0]} is empty and its target is not "
            f"({len(orphans)} such pairs): expected a source word that the target can come from."
        )
    return one, other


def bags(words: Sentences) -> sparse.csr_array:
    """How often each sentence holds each word, ``(sentence, word)``, sorted by word."""
    ones = np.ones(len(words.ids))
    shape = (len(words), words.vocabulary)
    table = sparse.csr_array((ones, *_narrow(words.ids, words.starts)), shape=shape)
    table.sum_duplicates()
    return table


def count_table(source: WordIds, target: WordIds) -> sparse.csr_array:
    """Count how often words go together, Snell 2021 eq 16.

    C_{i,o} = Σ_m Σ_l Σ_t (1/L^m) 1[x_l^m = i] 1[y_t^m = o], repeated words counted each time. It is
    the count table of IBM Model 1 after one look at the data with uniform alignments.

    Args:
        source: the sentences x; sentence m has L^m words.
        target: the sentences y. An empty one adds nothing.

    Returns:
        C, shape ``(source word, target word)``.

    Raises:
        AttnscopeError: for sides of different length, and for a target without a source.
    """
    one, other = paired(source, target)
    share = bags(one)
    share.data /= np.repeat(one.lengths, np.diff(share.indptr))
    table = (share.T @ bags(other)).tocsr()
    table.sort_indices()
    return table


def translation_table(counts: sparse.csr_array) -> sparse.csr_array:
    """Estimate how words translate, Trans(o|i) = C_{i,o} / Σ_o' C_{i,o'} (Snell 2021 eq 17).

    A source word that no target word was counted for has a row of zeros.
    """
    table = sparse.csr_array(counts, dtype=np.float64, copy=True)
    table.sum_duplicates()
    if table.nnz and not (np.isfinite(table.data).all() and table.data.min() >= 0):
        bad = table.data[~(np.isfinite(table.data) & (table.data >= 0))][0]
        raise AttnscopeError(f"the count table holds {bad}: expected counts, 0 or more.")
    total = table.sum(axis=1)
    table.data /= np.repeat(np.where(total > 0, total, 1.0), np.diff(table.indptr))
    return table


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _narrow(*arrays: NDArray[np.int64]) -> tuple[NDArray[np.integer], ...]:
    # Sparse products run on one integer type; 32 bits are half the memory to go through.
    fits = all(not len(array) or array.max() < 2**31 for array in arrays)
    return tuple(array.astype(np.int32 if fits else np.int64) for array in arrays)
