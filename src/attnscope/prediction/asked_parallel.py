"""A question about parallel text: its words, its aligners, and gold links if there are some."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.kinds import Alignments, ParallelText
from attnscope.datasets.readers.gold_links import Gold
from attnscope.prediction.asked import Asked
from attnscope.probes.lexicon.aligners import CHOSEN, IBM1
from attnscope.probes.lexicon.association import Association, association
from attnscope.probes.lexicon.counts import Sentences, number_words
from attnscope.probes.lexicon.ibm1 import Model1

CELLS = 16_000_000
"""Pairs of a source and a target position that are counted at most; about 30,000 long pairs or
100,000 short ones. With more, pairs are drawn at random."""
_WORDS = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
Row = tuple[list[str], list[str]]


def words_of(sentence: str) -> list[str]:
    """Return words and marks, in lower case."""
    return _WORDS.findall(sentence.lower())


@dataclass(frozen=True, eq=False)
class AskedParallel(Asked[ParallelText]):
    """A question about parallel text; what several sections need is computed once.

    Args:
        gold: links that people made, to be compared with.
    """

    gold: Gold | None = None

    @cached_property
    def _drawn(self) -> tuple[list[Row], int]:
        source, target = self.data.splits["train"]
        order = np.random.default_rng(self.seed).permutation(len(source))
        held = 0
        if self.gold and not self.gold.own_text:
            # Gold links of the corpus' own lines: those lines are counted in any case.
            held = len(self.gold.alignments.sure)
            order = np.concatenate([np.arange(held), order[order >= held]])
        kept: list[tuple[int, Row]] = []
        cells = empty = 0
        for n, i in enumerate(order):
            if n % 5000 == 0:
                self.tell("splitting pairs", n, len(order))
            row = (words_of(source[i]), words_of(target[i]))
            if not (row[0] and row[1]):
                empty += 1
                continue
            cells += (len(row[0]) + 1) * len(row[1])
            if cells > CELLS and n >= held:
                break
            kept.append((int(i), row))
        return [row for _, row in sorted(kept, key=lambda one: one[0])], empty

    @property
    def rows(self) -> list[Row]:
        """Words of the pairs that are counted, in the order of the corpus."""
        return self._drawn[0]

    @property
    def empty(self) -> int:
        """Pairs without a word on one side, of those that were looked at."""
        return self._drawn[1]

    @cached_property
    def gold_pieces(self) -> tuple[list[_Pieces], list[_Pieces]]:
        """Words of the gold pairs, cut as the corpus is."""
        made: Alignments | None = self.gold.alignments if self.gold else None
        return (
            [_pieces(words) for words in made.source] if made else [],
            [_pieces(words) for words in made.target] if made else [],
        )

    @cached_property
    def _numbered(self) -> tuple[Sentences, tuple[str, ...], Sentences, tuple[str, ...]]:
        one, other = self.gold_pieces
        sources = [x for x, _ in self.rows] + [piece.words for piece in one]
        targets = [y for _, y in self.rows] + [piece.words for piece in other]
        return *number_words(sources), *number_words(targets)

    @property
    def source_words(self) -> tuple[str, ...]:
        """Words of the source side by their numbers."""
        return self._numbered[1]

    @property
    def target_words(self) -> tuple[str, ...]:
        """Words of the target side by their numbers."""
        return self._numbered[3]

    @cached_property
    def counted(self) -> tuple[Sentences, Sentences]:
        """Both sides as numbers, as aligners see them: gold texts of their own are among them."""
        one, _, other, _ = self._numbered
        pairs = len(one) if self.gold and self.gold.own_text else len(self.rows)
        return _first(one, pairs), _first(other, pairs)

    def ids(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the words of a pair as numbers; gold pairs come after all others."""
        one, _, other, _ = self._numbered
        return (
            one.ids[one.starts[number] : one.starts[number + 1]],
            other.ids[other.starts[number] : other.starts[number + 1]],
        )

    @cached_property
    def model(self) -> Model1:
        """The aligner that was chosen."""
        self.tell(f"aligning words: {CHOSEN.name}", 0, 0)
        return CHOSEN.fit(*self.counted)

    @cached_property
    def ibm1(self) -> Model1:
        """IBM Model 1, which does not know the order."""
        self.tell(f"aligning words: {IBM1.name}", 0, 0)
        return IBM1.fit(*self.counted)

    @cached_property
    def association(self) -> Association:
        """Evidence that words go together."""
        self.tell("counting words that stand together", 0, 0)
        return association(*self.counted)

    @property
    def told(self) -> bool:
        """Whether a single pair of words is beyond chance."""
        found = self.association
        return bool(found.evidence.data.max(initial=0.0) > found.bound)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Words of a gold sentence, and which of its words each belongs to."""

    words: list[str]
    of: NDArray[np.int64]


def _pieces(words: Sequence[str]) -> _Pieces:
    parts = [words_of(word) for word in words]
    of = np.repeat(np.arange(len(words)), [len(part) for part in parts])
    return _Pieces([piece for part in parts for piece in part], of)


def _first(side: Sentences, count: int) -> Sentences:
    return Sentences(side.ids[: side.starts[count]], side.starts[: count + 1], side.vocabulary)
