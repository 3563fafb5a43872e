"""The synthetic text of Aoyama 2025: how often words return, and what they foretell then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import Count, Fraction, Several, check_fields
from attnscope.errors import AttnscopeError

_STREAM = 0xA025
PEAKED = 0.3
"""Concentration of the base's rows: words prefer some successors, as in text."""


@dataclass(frozen=True)
class Repetition:
    """Sequences whose second half comes back to words of the first.

    The first half repeats no word. In the second half, after a word that has occurred before, one
    of its old successors follows again with probability ``reliability``. Otherwise, with
    probability frequency/(1 + reliability), a word that has been seen comes back, else one that has
    not. Words that are not copied are drawn by a fixed table of transitions.

    Args:
        words: V, at least as many as there are positions.
        length: C.
        frequency: how often the present word has occurred before, P(AB...A).
        reliability: how often its old successor then follows again, P(B | AB...A).
        local: draw by a table in which words prefer some successors; otherwise all alike.
    """

    words: Several = 1000
    length: Count = 64
    frequency: Fraction = 0.9
    reliability: Fraction = 0.9
    local: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.length < 8 or self.length % 2:
            raise AttnscopeError(
                f"length = {self.length}: expected an even number of 8 or more, two halves."
            )
        if self.words < self.length:
            raise AttnscopeError(
                f"words = {self.words} for a length of {self.length}: expected as many words as "
                "positions or more, since the first half repeats none."
            )

    def table(self) -> np.ndarray:
        """Return the transitions that words are drawn by, the same for all seeds."""
        if not self.local:
            return np.full((self.words, self.words), 1 / self.words)
        chance = np.random.default_rng(0)
        return np.asarray(chance.dirichlet(np.full(self.words, PEAKED), size=self.words))

    def stream(self, seed: int) -> RepetitionStream:
        """Return sequences that are never seen twice."""
        return RepetitionStream(self, seed, self.table())

    def draw(self, rng: np.random.Generator, count: int, table: np.ndarray) -> Tensor:
        """Draw sequences, int64 of shape ``(sequence, position)``."""
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 sequence or more.")
        rows, half = np.arange(count), self.length // 2
        tokens = np.empty((count, self.length), dtype=np.int64)
        seen = np.zeros((count, self.words), dtype=bool)
        # The last successor of every word; where there are several it stands for all of them.
        after = np.full((count, self.words), -1)
        returns = self.frequency / (1 + self.reliability)
        before = rng.integers(0, self.words, size=count)
        for t in range(self.length):
            weights = table[before]
            fresh = (
                np.ones(count, dtype=bool) if t < half else rng.random(count) >= returns
            ) | ~seen.any(axis=1)
            allowed = np.where(fresh[:, None], ~seen, seen)
            if t:
                allowed[rows, before] = False
            # Gumbel's trick draws from all rows at once.
            scores = np.log(weights + 1e-30) + rng.gumbel(size=weights.shape)
            word = np.where(allowed, scores, -np.inf).argmax(axis=1)
            if t >= half:
                known = after[rows, before]
                copied = (known >= 0) & (rng.random(count) < self.reliability)
                word = np.where(copied, known, word)
            if t:
                after[rows, before] = word
            tokens[:, t], before = word, word
            seen[rows, word] = True
        return torch.from_numpy(tokens)


@dataclass(frozen=True, eq=False)
class RepetitionStream:
    """Sequences that are never seen twice, a function of the seed and of the row numbers.

    Args:
        task: what sequences look like.
        seed: of all batches.
        table: the transitions.
    """

    task: Repetition
    seed: int
    table: np.ndarray

    def batch(self, rows: Tensor) -> Tensor:
        """Return as many fresh sequences as there are row numbers."""
        rng = np.random.default_rng([self.seed, _STREAM, int(rows[0])])
        return self.task.draw(rng, len(rows), self.table)
