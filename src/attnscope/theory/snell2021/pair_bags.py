"""What the proxy of Snell 2021 sees of a pair: which words went in, which came out.

The proxy (eq 5) averages the embeddings of the input and predicts every output word from that. So
a pair m is B_mi = (how often i is in the input)/L^m and Y_mo = how often o is in the output, and
the count table is C = Bᵀ Y (eq 16). No order is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, word_numbers

Sequences: TypeAlias = Sequence[Numbers] | np.ndarray
"""Word ids of several texts: a list of arrays, or one array with a text a row."""


@dataclass(frozen=True, eq=False)
class PairBags:
    """The pairs of a corpus without their order.

    Args:
        source: B, shares of input words, sparse of shape ``(pair, input word)``; rows sum to 1.
        target: Y, counts of output words, sparse of shape ``(pair, output word)``.
    """

    source: sparse.csr_array
    target: sparse.csr_array

    @cached_property
    def counts(self) -> sparse.csr_array:
        """C_io = Σ_m Σ_l Σ_t (1/L^m) 1[x_l = i] 1[y_t = o], eq 16; repeated words count."""
        return sparse.csr_array(self.source.T @ self.target)

    @cached_property
    def lengths(self) -> np.ndarray:
        """T^m, words in each output."""
        return np.asarray(self.target.sum(axis=1))


def pair_bags(
    sources: Sequences,
    targets: Sequences,
    source_vocabulary: int,
    target_vocabulary: int | None = None,
) -> PairBags:
    """Count the words of every pair.

    Args:
        sources: word ids of each input.
        targets: word ids of each output, as many as inputs.
        source_vocabulary: number of input words.
        target_vocabulary: number of output words |O|; that of the inputs when left out.

    >>> pair_bags([[0, 1]], [[1, 1]], 2).counts.toarray().tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    if len(sources) != len(targets) or len(sources) == 0:
        raise AttnscopeError(
            f"{len(sources)} sources and {len(targets)} targets: expected pairs, one or more."
        )
    if target_vocabulary is None:
        target_vocabulary = source_vocabulary
    source = _counts("source", sources, source_vocabulary)
    share = sparse.diags_array(1 / source.sum(axis=1)) @ source
    return PairBags(
        sparse.csr_array(share),
        _counts("target", targets, target_vocabulary),
    )


def _counts(name: str, sequences: Sequences, vocabulary: int) -> sparse.csr_array:
    rows = [word_numbers(sequence) for sequence in sequences]
    lengths = np.array([len(row) for row in rows])
    if not lengths.all():
        raise AttnscopeError(f"{name} {int(lengths.argmin())} is empty: expected one word or more.")
    words = np.concatenate(rows)
    if words.min() < 0 or words.max() >= vocabulary:
        raise AttnscopeError(
            f"{name}s hold word ids from {words.min()} to {words.max()}: expected 0 to "
            f"{vocabulary - 1}."
        )
    pairs = np.repeat(np.arange(len(rows)), lengths)
    shape = (len(rows), vocabulary)
    return sparse.coo_array((np.ones(len(words)), (pairs, words)), shape=shape).tocsr()
