"""Two letters of a word are marked: are they the same? A cheap task that a transformer learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import Several, check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.sequence_rows import Batch

_SAMPLE = 0x1E77


@dataclass(frozen=True)
class MarkedLetters:
    """Random letters, two of them marked; the label is 1 if these two are equal, else 0.

    What Pathfinder asks of contours, without the contours: two places are marked, and the label
    says whether what stands there belongs together. Letters are uniform, the two places too, and
    the label is a fair coin. A marked letter is a token of its own, so that there are twice as many
    tokens as letters. Each letter is marked equally often with either label: counts of tokens tell
    nothing if they are only added up.

    Args:
        tokens: letters in a word.
        letters: letters in the alphabet.
    """

    tokens: Several = 12
    """Letters in a word."""
    letters: Several = 8
    """Letters in the alphabet."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def vocabulary(self) -> int:
        """Letters, and letters that are marked."""
        return 2 * self.letters

    def sample(self, count: int, seed: int) -> MarkedWords:
        """Draw labelled words.

        Example:
            >>> words = MarkedLetters(tokens=4, letters=3).sample(2, seed=0)
            >>> words.ids.shape, bool(((words.ids >= 3).sum(1) == 2).all())
            (torch.Size([2, 4]), True)
        """
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 word or more.")
        chance = np.random.default_rng([seed, _SAMPLE])
        ids = chance.integers(self.letters, size=(count, self.tokens))
        labels = chance.integers(2, size=count)
        places = np.argsort(chance.random((count, self.tokens)), axis=1)[:, :2]
        every = np.arange(count)
        first = ids[every, places[:, 0]]
        other = (first + chance.integers(1, self.letters, size=count)) % self.letters
        ids[every, places[:, 1]] = np.where(labels == 1, first, other)
        ids[every[:, None], places] += self.letters
        return MarkedWords(torch.from_numpy(ids), torch.from_numpy(labels))


@dataclass(frozen=True, eq=False)
class MarkedWords:
    """Labelled words, read by rows."""

    ids: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Tensor) -> Batch:
        """Return some words."""
        return Batch(self.ids[rows], None, self.labels[rows])
