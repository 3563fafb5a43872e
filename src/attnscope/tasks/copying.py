"""The task of Snell 2021, sections 3.3 and 6.2: say the input again, or in another order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.sequence_pairs import END, SPECIALS, SequencePairs

_SAMPLE, _STREAM, _ORDER = 0xC0B1, 0xC0B2, 0xC0B3


@dataclass(frozen=True)
class Copying:
    """Sequences of distinct words, to be copied or put into one fixed other order.

    A sequence is drawn from one of ``sets`` disjoint sets, each equally likely: ``length`` distinct
    words of its ``types`` words, in random order. With ``types == length`` all sequences of a set
    are permutations of the same words, and which words occur together says nothing (Fig 4, 8).

    Args:
        length: L, words in a sequence.
        types: words in a set.
        sets: number of sets.
        reorder_seed: seed of the permutation π with y = (x_π(1), ..., x_π(L)), eq 26; ``None`` for
            y = x.
        end: append END to input and output, as the released code does.
    """

    length: int = 40
    types: int = 40
    sets: int = 1
    reorder_seed: int | None = None
    end: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("length", "types", "sets"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if self.types < self.length:
            raise AttnscopeError(
                f"types = {self.types} for sequences of length = {self.length}: expected "
                f"{self.length} or more, since no word occurs twice."
            )
        if self.types * self.sets == 1:
            raise AttnscopeError(
                "types = 1 and sets = 1: expected two words or more, or there is nothing to learn."
            )

    @property
    def vocabulary(self) -> int:
        """Size of the vocabulary, PAD, START and END included."""
        return SPECIALS + self.types * self.sets

    @cached_property
    def order(self) -> np.ndarray:
        """π, counted from 0: target position t holds source position π(t)."""
        if self.reorder_seed is None:
            return np.arange(self.length)
        return np.random.default_rng([self.reorder_seed, _ORDER]).permutation(self.length)

    @property
    def gold(self) -> Tensor:
        """Source position that each target position comes from; END comes from END."""
        gold = [*self.order, self.length] if self.end else self.order
        return torch.as_tensor(np.asarray(gold), dtype=torch.int64)

    def sample(self, count: int, seed: int) -> SequencePairs:
        """Draw pairs."""
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 pair or more.")
        return self.draw(np.random.default_rng([seed, _SAMPLE]), count)

    def stream(self, seed: int) -> CopyingStream:
        """Return pairs that are never seen twice."""
        return CopyingStream(self, seed)

    def draw(self, rng: np.random.Generator, count: int) -> SequencePairs:
        """Draw pairs with a generator of one's own."""
        # The order of random keys is a random order of all words of a set; its head is the draw.
        words = rng.random((count, self.types), dtype=np.float32).argsort(axis=1)[:, : self.length]
        words += SPECIALS + self.types * rng.integers(self.sets, size=(count, 1))
        target = words[:, self.order]
        if self.end:
            mark = np.full((count, 1), END)
            words, target = np.hstack([words, mark]), np.hstack([target, mark])
        # Fancy indexing leaves the axes in another order in memory; torch wants rows.
        return SequencePairs(
            torch.from_numpy(np.ascontiguousarray(words)),
            torch.from_numpy(np.ascontiguousarray(target)),
        )

    def counts(self) -> np.ndarray:
        """Return the expected count table of one pair, input word by output word.

        C_io = E Σ_l Σ_t (1/L) 1[x_l = i] 1[y_t = o] (eq 16), with L the length of the source, END
        included. A word occurs with probability p = length/(sets·types), two words of a set
        together with p (length - 1)/(types - 1), two of different sets never, END always. The order
        of the words is not in it: copying and any permutation of it have the same table.
        """
        word = self.length / (self.sets * self.types)
        together = word * (self.length - 1) / (self.types - 1) if self.types > 1 else 0.0
        one_set = np.full((self.types, self.types), together)
        np.fill_diagonal(one_set, word)
        table = np.zeros((self.vocabulary, self.vocabulary))
        table[SPECIALS:, SPECIALS:] = np.kron(np.eye(self.sets), one_set)
        if self.end:
            table[END, SPECIALS:] = table[SPECIALS:, END] = word
            table[END, END] = 1.0
        return table / (self.length + self.end)


@dataclass(frozen=True)
class CopyingStream:
    """Pairs that are never seen twice: drawn when asked for, not kept.

    Which ones is a function of the seed and of the row numbers, so training can be resumed.

    Args:
        task: what pairs look like.
        seed: of all batches.
    """

    task: Copying
    seed: int

    def batch(self, rows: Tensor) -> SequencePairs:
        """Return as many fresh pairs as there are row numbers."""
        return self.task.draw(
            np.random.default_rng([self.seed, _STREAM, *rows.tolist()]), len(rows)
        )
