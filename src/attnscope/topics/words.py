"""Words of a text, and the vocabulary of a corpus by document frequency."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attnscope.topics.stop_words import STOP_WORDS

ROOM = 200_000
"""How many different words are counted at a time while a vocabulary is made."""

WORD = re.compile(r"[^\W\d_]+")
"""A word is a run of letters: an apostrophe, a hyphen, a digit or a mark ends it."""

UNKNOWN = "<unk>"
"""What WikiText has in the place of a rare word."""

SHORTEST = 3
"""Fewer letters than that are units, initials and pieces of names."""


def content_words(text: str) -> list[str]:
    """Return the words that a topic may be made of, in their order, lower-case.

    Left out: stop words (:mod:`attnscope.topics.stop_words`), words of fewer than three letters,
    numbers, and the ``<unk>`` of WikiText.

    >>> content_words("The 17th @-@ place <unk> wasn't the ships' first.")
    ['place', 'ships']
    """
    found = WORD.findall(text.replace(UNKNOWN, " ").lower())
    return [word for word in found if len(word) >= SHORTEST and word not in STOP_WORDS]


class DocumentFrequency:
    """In how many documents each word stands, in bounded memory.

    Lossy counting (Manku and Motwani, VLDB 2002): when there are more than ``room`` words, those
    of the lowest count go, and a word that comes later starts from that count, so that a count is
    never too low, and too high by ``slack`` at most. With fewer words than ``room``, counts are
    exact.

    Args:
        room: how many words are kept at most between documents.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.documents = 0
        self.slack = 0
        self.counts: dict[str, int] = {}

    def add(self, document: Iterable[str]) -> None:
        """Count the different words of a document."""
        self.documents += 1
        counts, slack = self.counts, self.slack
        for word in set(document):
            counts[word] = counts.get(word, slack) + 1
        # A quarter is made free at once, since every cleaning looks at all words.
        if len(counts) > self.room:
            kept = sorted(counts.values(), reverse=True)[: self.room * 3 // 4]
            self.slack = kept[-1]
            self.counts = {word: n for word, n in counts.items() if n > self.slack}

    def vocabulary(self, size: int, rarest: int, commonest: float) -> tuple[str, ...]:
        """Return the words to model, the most frequent first, then by alphabet.

        Args:
            size: how many words at most.
            rarest: a word must stand in that many documents.
            commonest: a word may stand in that share of the documents at most.
        """
        most = commonest * self.documents
        fit = [(-n, word) for word, n in self.counts.items() if rarest <= n <= most]
        return tuple(word for _, word in sorted(fit)[:size])


def numbers(documents: Iterable[str], vocabulary: tuple[str, ...]) -> Iterator[list[int]]:
    """Yield the words of each document as places in the vocabulary; other words are left out."""
    place = {word: number for number, word in enumerate(vocabulary)}
    for text in documents:
        yield [number for word in content_words(text) if (number := place.get(word)) is not None]
