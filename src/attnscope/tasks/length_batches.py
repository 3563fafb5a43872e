"""Mini-batches of sequences of about one length, so that little of a batch is padding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnscope.errors import AttnscopeError

POOL = 100
"""Batches that are sorted by length together."""
_EPOCH = 0xBA7C


def passes(
    order: NDArray[np.int64], sizes: NDArray[np.int64], most: int
) -> list[NDArray[np.int64]]:
    """Cut sequences, sorted by length, into parts that are read in one pass.

    Args:
        order: numbers of the sequences.
        sizes: how much each sequence holds, by its number.
        most: about so much is in one part.

    >>> passes(np.array([2, 0, 1]), np.array([4, 5, 3]), 10)
    [array([2, 0]), array([1])]
    """
    cuts = np.flatnonzero(np.diff(sizes[order].cumsum() // most)) + 1
    return np.split(order, cuts) if len(order) else []


class LengthBatches:
    """An endless series of batches; number k is a function of the seed and of k alone.

    Every epoch the sequences are drawn without replacement into pools of ``pool`` batches; a pool
    is sorted by length, with ties in random order, and cut into batches, and all batches of the
    epoch are put into random order. So every sequence is seen once an epoch, as in plain
    shuffling, and a run can be taken up at any step.

    Args:
        lengths: words of each sequence.
        batch_size: sequences in a batch; the last one of an epoch may be smaller.
        seed: of all orders.
        pool: batches that are sorted together.
    """

    def __init__(self, lengths: ArrayLike, batch_size: int, seed: int, *, pool: int = POOL) -> None:
        self._lengths = np.asarray(lengths, dtype=np.int64)
        if self._lengths.ndim != 1 or not len(self._lengths):
            raise AttnscopeError(
                f"lengths of shape {self._lengths.shape}: expected one number for each sequence."
            )
        if not 1 <= batch_size <= len(self._lengths):
            raise AttnscopeError(
                f"batch_size = {batch_size}: expected 1 to {len(self._lengths)}, the number of "
                "sequences."
            )
        if pool < 1:
            raise AttnscopeError(f"pool = {pool}: expected 1 batch or more.")
        self.batch_size, self.seed, self.pool = batch_size, seed, pool
        self._epoch: tuple[int, list[NDArray[np.int64]]] = (-1, [])

    @property
    def per_epoch(self) -> int:
        """Number of batches in which every sequence is seen once."""
        return -(-len(self._lengths) // self.batch_size)

    def rows(self, step: int) -> NDArray[np.int64]:
        """Return the numbers of the sequences in batch ``step``."""
        if step < 0:
            raise AttnscopeError(f"step = {step}: expected 0 or more.")
        epoch, within = divmod(step, self.per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._cut(epoch))
        return self._epoch[1][within]

    def _cut(self, epoch: int) -> list[NDArray[np.int64]]:
        dice = np.random.default_rng([self.seed, _EPOCH, epoch])
        order = dice.permutation(len(self._lengths))
        size = self.batch_size * self.pool
        batches = []
        for start in range(0, len(order), size):
            drawn = order[start : start + size]
            drawn = drawn[np.argsort(self._lengths[drawn], kind="stable")]
            batches += [
                drawn[i : i + self.batch_size] for i in range(0, len(drawn), self.batch_size)
            ]
        return [batches[i] for i in dice.permutation(len(batches))]
