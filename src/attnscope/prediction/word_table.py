"""The training texts of a set as words, counted: what every section on labelled text reads."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Tell
from attnscope.probes.evidence.bags import LabelledBags, flat_bags
from attnscope.tasks.word_sequences import LEAST, RULES, UNSPACED, Rule

STRIDE = 2000
"""Texts between two reports of progress."""
UNKNOWN = "<unk>"


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words of the training texts.

    Args:
        words: the vocabulary; the first one stands for all words that are too rare to be counted.
        bags: how often each stands in each text.
        split: turns a text into its words, those to be left out taken out already.
        tokens: words of all texts.
        rare: how many of them stand for a word that occurs fewer than :data:`LEAST` times.
        taken_out: how many were left out on demand, by word.
        unspaced: texts in a script that has no spaces between words.
        wordless: texts without a single word.
    """

    words: tuple[str, ...]
    bags: LabelledBags
    split: Callable[[str], list[str]]
    tokens: int
    rare: int
    taken_out: dict[str, int]
    unspaced: int
    wordless: int

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of words, 0 for those that are not in the vocabulary."""
        return np.array([self.numbers.get(word, 0) for word in words], dtype=np.int64)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}


def word_table(
    texts: Sequence[str],
    labels: NDArray[np.int64],
    classes: int,
    *,
    name: str = "",
    without: tuple[str, ...] = (),
    tell: Tell,
) -> WordTable:
    """Split texts into words, in lower case, and count them.

    Args:
        texts: one text a row.
        labels: the class of each.
        classes: how many classes there are.
        name: of the set; some are split in a way of their own, as for training.
        without: words that are taken out.
        tell: hears how far it is.

    Raises:
        AttnscopeError: no word occurs often enough, or a word to be left out is in no text.
    """
    rule = RULES.get(name, Rule())
    removed: Counter[str] = Counter()

    def split(text: str) -> list[str]:
        words = rule.words(text)
        if without:
            gone = [word in without for word in words]
            removed.update(compress(words, gone))
            words = [word for word, out in zip(words, gone, strict=True) if not out]
        return words

    seen: dict[str, int] = {}
    ids, starts = array("i"), array("q", [0])
    unspaced = wordless = 0
    for number, text in enumerate(texts):
        if number % STRIDE == 0:
            tell("counting words", number, len(texts))
        words = split(text)
        wordless += not words
        unspaced += not text.isascii() and UNSPACED.search(text) is not None
        ids.extend([seen.setdefault(word, len(seen)) for word in words])
        starts.append(len(ids))
    tell("counting words", len(texts), len(texts))
    missing = [word for word in without if not removed[word]]
    if missing:
        raise AttnscopeError(
            f"--without {' '.join(missing)}: no text of '{name}' holds it as a word of its own. "
            "Expected words in the form in which the table of words lists them."
        )
    flat = np.frombuffer(ids, dtype=np.intc) if len(ids) else np.zeros(0, dtype=np.intc)
    often = np.bincount(flat, minlength=len(seen))
    kept = np.flatnonzero(often >= LEAST)
    if not len(kept):
        raise AttnscopeError(
            f"cannot tell: no word occurs {LEAST} times in the {len(texts):,} texts of '{name}'. "
            f"Expected more text: some hundred texts of each class."
        )
    place = np.zeros(len(seen), dtype=np.int64)
    place[kept] = np.arange(1, len(kept) + 1)
    spelled = list(seen)
    bags = flat_bags(
        place[flat], np.frombuffer(starts, dtype=np.int64), labels, len(kept) + 1, classes
    )
    return WordTable(
        (UNKNOWN, *(spelled[i] for i in kept)),
        bags,
        split,
        len(flat),
        int(len(flat) - often[kept].sum()),
        dict(removed),
        unspaced,
        wordless,
    )
