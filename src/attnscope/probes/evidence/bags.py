"""Labelled texts as bags of words, and what is counted in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from attnscope.errors import AttnscopeError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelledBags:
    """How often each word stands in each text, and the class of each text.

    Args:
        counts: shape ``(text, word)``, float64 CSR.
        labels: the class of each text, from 0; int64.
        classes: how many classes there are.
    """

    counts: sparse.csr_array
    labels: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        if self.counts.shape[0] != len(self.labels):
            raise AttnscopeError(
                f"{self.counts.shape[0]} texts and {len(self.labels)} labels: expected as many."
            )
        low, high = self.labels.min(initial=0), self.labels.max(initial=0)
        if low < 0 or high >= self.classes:
            raise AttnscopeError(
                f"labels go from {low} to {high}: expected 0 to "
                f"{self.classes - 1}, for {self.classes} classes."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def words(self) -> int:
        """How many words there are."""
        return int(self.counts.shape[1])

    @cached_property
    def present(self) -> sparse.csr_array:
        """1 where a text holds a word, however often."""
        return sparse.csr_array(
            (np.ones(self.counts.nnz), self.counts.indices, self.counts.indptr), self.counts.shape
        )

    @cached_property
    def one_hot(self) -> Floats:
        """1 at the class of each text, shape ``(text, class)``."""
        return np.eye(self.classes)[self.labels]

    @cached_property
    def by_class(self) -> Floats:
        """n_wc: texts of class c that hold word w, shape ``(word, class)``."""
        return np.asarray(self.present.T @ self.one_hot)

    @cached_property
    def texts_with(self) -> Floats:
        """n_w: texts that hold word w."""
        return self.by_class.sum(axis=1)

    @cached_property
    def prior(self) -> Floats:
        """π_c: the share of each class."""
        return self.one_hot.mean(axis=0)

    def relabelled(self, labels: NDArray[np.int64]) -> LabelledBags:
        """Return the same texts with other labels, such as shuffled ones."""
        return LabelledBags(self.counts, labels, self.classes)

    def rows(self, which: NDArray[np.int64]) -> LabelledBags:
        """Return some of the texts."""
        return LabelledBags(self.counts[which], self.labels[which], self.classes)


def labelled_bags(
    rows: Sequence[NDArray[np.integer]], labels: NDArray[np.int64], words: int, classes: int
) -> LabelledBags:
    """Count words.

    Args:
        rows: word ids of each text, below ``words``.
        labels: the class of each text.
        words: how many words there are.
        classes: how many classes there are.
    """
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    flat = np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int64)
    return flat_bags(flat, np.r_[0, np.cumsum(lengths)], labels, words, classes)


def flat_bags(
    ids: NDArray[np.integer],
    starts: NDArray[np.int64],
    labels: NDArray[np.int64],
    words: int,
    classes: int,
) -> LabelledBags:
    """Count words of texts that are laid end to end; text m is ``ids[starts[m]:starts[m + 1]]``.

    >>> ids = np.array([0, 1, 1, 2])
    >>> bags = flat_bags(ids, np.array([0, 3, 4]), np.array([0, 1]), 3, 2)
    >>> bags.counts.toarray().tolist(), bags.by_class.tolist()
    ([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    """
    ones = np.ones(len(ids))
    # A copy of the ids: summing duplicates works in place.
    counts = sparse.csr_array((ones, ids.copy(), starts), shape=(len(labels), words))
    counts.sum_duplicates()
    return LabelledBags(counts, np.asarray(labels, dtype=np.int64), classes)
