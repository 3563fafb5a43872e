"""From the pieces of a tokenizer to the words of a text.

The rule: words are those of :mod:`attnscope.topics.words`, runs of letters, found in the text with
their places; a piece belongs to the word that its own place in the text overlaps. Where the model's
tokenizer splits is of no matter, and special tokens, which have no place, belong to no word. A word
counts if all of its pieces were read. Its attention is the mean over its pieces, on the side of
queries and of keys, and its vector is the mean of the vectors of its pieces. By a sum instead, a
word of three pieces would get three times the attention of a word of one, were it uniform.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.topics.words import UNKNOWN, WORD

ESCAPES = ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."))
"""How WikiText writes hyphens and the marks inside of numbers."""


@dataclass(frozen=True, eq=False)
class Words:
    """The words of one text that matter, by the pieces they are made of.

    Args:
        words: in the order of the text, lower-case.
        pieces: positions of all pieces that belong to one of them, rising.
        owner: number of the word that each of these pieces belongs to.
    """

    words: tuple[str, ...]
    pieces: np.ndarray
    owner: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """Position of the first piece of each word."""
        _, index = np.unique(self.owner, return_index=True)
        return np.asarray(self.pieces[index])

    @property
    def pooling(self) -> np.ndarray:
        """The matrix that takes means over the pieces of a word, shape ``(word, piece)``."""
        matrix = np.zeros((len(self.words), len(self.pieces)), dtype=np.float32)
        matrix[self.owner, np.arange(len(self.pieces))] = 1
        return matrix / matrix.sum(axis=1, keepdims=True)


def readable(text: str, unknown: str = "") -> str:
    """Return WikiText as a model was taught to read: hyphens as such, its own unknown word.

    >>> readable("the 17th @-@ century <unk> of 1 @,@ 000 men", "[UNK]")
    'the 17th-century [UNK] of 1,000 men'
    """
    for escape, mark in ESCAPES:
        text = text.replace(escape, mark)
    return text.replace(UNKNOWN, unknown)


def find_words(
    text: str, places: Sequence[tuple[int, int]], known: Container[str], complete: bool = False
) -> Words:
    """Return the known words of a text and the pieces that they are made of.

    Args:
        text: as the tokenizer was given it.
        places: where each piece begins and ends in the text; nothing long for special tokens.
        known: words that matter.
        complete: whether the pieces go to the end of the text; if not, a word that may go on where
            they end is left out.
    """
    begins = np.array([begin for begin, end in places if end > begin], dtype=np.int64)
    ends = np.array([end for begin, end in places if end > begin], dtype=np.int64)
    numbers = np.array([n for n, (begin, end) in enumerate(places) if end > begin], dtype=np.int64)
    read = int(ends.max(initial=0))
    words: list[str] = []
    pieces: list[np.ndarray] = []
    for match in WORD.finditer(text, 0, min(len(text), read + 1)):
        word = match[0].lower()
        if word not in known or match.end() > read or (match.end() == read and not complete):
            continue
        # Places rise, so that the pieces of a word are the ones between two of them.
        low = int(np.searchsorted(ends, match.start(), side="right"))
        high = int(np.searchsorted(begins, match.end(), side="left"))
        if high > low:
            words.append(word)
            pieces.append(numbers[low:high])
    owner = np.repeat(np.arange(len(pieces)), [len(part) for part in pieces])
    joined = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
    return Words(tuple(words), joined, owner)
