"""Labels that follow from which words are in a sequence.

:class:`Keyword` is the task of Snell 2021, section 6.1: is the keyword there? :class:`WordParity`
asks whether exactly one of two words is there, of which no single word says anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.sequence_pairs import SPECIALS

FIRST = SPECIALS
"""Word number of the keyword."""
SECOND = FIRST + 1
"""Word number of the other of two words."""


@dataclass(frozen=True)
class WordTask(ABC):
    """Sequences of random words of two classes.

    Args:
        length: L, words in a sequence.
        types: number of words, those that decide included.
    """

    length: int
    types: int
    sample_key: ClassVar[int]
    stream_key: ClassVar[int]

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> LabelledSequences:
        """Draw labelled sequences with a generator of one's own."""

    @property
    def vocabulary(self) -> int:
        """Size of the vocabulary, PAD, START and END included."""
        return SPECIALS + self.types

    def sample(self, count: int, seed: int) -> LabelledSequences:
        """Draw labelled sequences."""
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 sequence or more.")
        return self.draw(np.random.default_rng([seed, self.sample_key]), count)

    def stream(self, seed: int) -> WordStream:
        """Return sequences that are never seen twice."""
        return WordStream(self, seed)


@dataclass(frozen=True)
class Keyword(WordTask):
    """Random words; a sequence is positive if the keyword is among them, where it stands once.

    The paper draws words uniformly and rejects sequences until both classes are equally likely and
    no keyword occurs twice. That is the same as what is drawn here: a fair coin for the class, a
    uniform position for the keyword of a positive sequence, and words other than the keyword,
    uniformly, everywhere else.

    Args:
        length: L, words in a sequence.
        types: number of words, the keyword included.
    """

    length: int = 40
    types: int = 40
    sample_key, stream_key = 0xC0B4, 0xC0B5

    def __post_init__(self) -> None:
        check_fields(self)
        if self.length < 1:
            raise AttnscopeError(f"length = {self.length}: expected 1 or more.")
        if self.types < 2:
            raise AttnscopeError(
                f"types = {self.types}: expected 2 or more, the keyword and a word that is not."
            )

    def draw(self, rng: np.random.Generator, count: int) -> LabelledSequences:
        """Draw labelled sequences with a generator of one's own."""
        words = rng.integers(FIRST + 1, self.vocabulary, size=(count, self.length))
        positive = rng.integers(2, size=count) == 1
        position = np.where(positive, rng.integers(self.length, size=count), -1)
        words[positive, position[positive]] = FIRST
        return LabelledSequences(
            torch.from_numpy(words),
            torch.from_numpy(positive.astype(np.float32)),
            torch.from_numpy(position),
        )


@dataclass(frozen=True, eq=False)
class LabelledSequences:
    """Sequences of two classes.

    Args:
        source: word ids, int64 of shape ``(sequence, position)``.
        label: 1 for positive and 0 for negative sequences.
        position: where the keyword stands, -1 where there is none.
        mask: true where there is a word; ``None`` when all sequences are of one length.
    """

    source: Tensor
    label: Tensor
    position: Tensor
    mask: Tensor | None = None

    def __len__(self) -> int:
        return len(self.source)

    def rows(self, index: Tensor) -> LabelledSequences:
        """Return some of the sequences, by number."""
        mask = None if self.mask is None else self.mask[index]
        return LabelledSequences(self.source[index], self.label[index], self.position[index], mask)


@dataclass(frozen=True)
class WordStream:
    """Sequences that are never seen twice: drawn when asked for, not kept.

    Which ones is a function of the seed and of the row numbers, so training can be resumed.

    Args:
        task: what sequences look like.
        seed: of all batches.
    """

    task: WordTask
    seed: int

    def batch(self, rows: Tensor) -> LabelledSequences:
        """Return as many fresh sequences as there are row numbers."""
        return self.task.draw(
            np.random.default_rng([self.seed, self.task.stream_key, *rows.tolist()]), len(rows)
        )


@dataclass(frozen=True)
class WordParity(WordTask):
    """Random words; a sequence is positive if it holds exactly one of two words (XOR).

    Each of the two is there with probability 1/2, once, at a random place. Either of them is in
    half of the positive and in half of the negative sequences: alone it says nothing.

    Args:
        length: L, words in a sequence.
        types: number of words, the two included.
    """

    length: int = 12
    types: int = 30
    sample_key, stream_key = 0xC0B8, 0xC0B9

    def __post_init__(self) -> None:
        check_fields(self)
        if self.length < 2:
            raise AttnscopeError(f"length = {self.length}: expected 2 or more, for both words.")
        if self.types < 3:
            raise AttnscopeError(
                f"types = {self.types}: expected 3 or more, the two words and one that is neither."
            )

    def draw(self, rng: np.random.Generator, count: int) -> LabelledSequences:
        """Draw labelled sequences with a generator of one's own; ``position`` is of no word."""
        words = rng.integers(SECOND + 1, self.vocabulary, size=(count, self.length))
        there = rng.integers(2, size=(2, count)) == 1
        places = rng.random((count, self.length)).argsort(axis=1)[:, :2]
        for word, held, place in zip((FIRST, SECOND), there, places.T, strict=True):
            words[held, place[held]] = word
        label = (there[0] ^ there[1]).astype(np.float32)
        return LabelledSequences(
            torch.from_numpy(words), torch.from_numpy(label), torch.full((count,), -1)
        )
