"""Labelled text as bags of words: real sentences for the models of Lu 2021."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attnscope.datasets.kinds import LabelledText
from attnscope.errors import AttnscopeError
from attnscope.tasks.bags import Bags

SPLITS = ("train", "dev", "test")
PAD = "$PAD$"
_MARKS = re.compile(r"[^\w\s]")


def bag_words(text: str) -> list[str]:
    """Return the words of a text: punctuation removed, split at white space (Lu 2021, code).

    >>> bag_words("it 's a charming , well-made film .")
    ['it', 's', 'a', 'charming', 'wellmade', 'film']
    """
    return _MARKS.sub("", text).split()


@dataclass(frozen=True, eq=False)
class TextBags:
    """The three splits of a labelled set as bags over one dictionary.

    Args:
        name: the set.
        classes: names of the labels.
        words: the dictionary; its last word is the padding symbol.
        train: sentences to learn from.
        dev: sentences that decide when to stop.
        test: sentences that nothing is decided by.
        wordless: texts of each split without a single word, which were left out.
    """

    name: str
    classes: tuple[str, ...]
    words: tuple[str, ...]
    train: Bags
    dev: Bags
    test: Bags
    wordless: dict[str, int]

    def number(self, word: str) -> int:
        """Return the number of a word.

        Raises:
            AttnscopeError: no training sentence holds it.
        """
        try:
            number = self.words.index(word)
        except ValueError:
            number = -1
        if number < 0 or not self.train.occurrences[number]:
            raise AttnscopeError(
                f"no training sentence of {self.name} holds the word '{word}': expected a word as "
                "it stands in the text, without punctuation."
            )
        return number

    def unseen(self, split: str) -> int:
        """Return how many sentences of a split hold no word of the training sentences."""
        bags: Bags = getattr(self, split)
        known = self.train.occurrences > 0
        seen = torch.zeros(len(bags), dtype=torch.bool)
        seen[bags.sentences[known[bags.words]]] = True
        return int((~seen).sum())


def text_bags(text: LabelledText, *, padded: bool = False) -> TextBags:
    """Turn labelled text into bags; the dictionary holds the words of all three splits.

    A set without a dev or a test split gives up a tenth of its training texts for each that is
    missing, drawn once and for all, so that every run sees the same sentences.

    Args:
        text: the set.
        padded: fill every sentence up to the longest with the padding symbol as if it were a
            word, as the released code of Lu 2021 does. Otherwise padding is masked, as the paper
            says.
    """
    tokens, labels = _divided(text)
    wordless = {}
    for split in SPLITS:
        full = [i for i, words in enumerate(tokens[split]) if words]
        wordless[split] = len(tokens[split]) - len(full)
        tokens[split] = [tokens[split][i] for i in full]
        labels[split] = labels[split][full]
        if not full:
            raise AttnscopeError(
                f"the {split} texts of {text.name} hold no word, only punctuation: expected text."
            )
    words = (*sorted({word for split in SPLITS for row in tokens[split] for word in row}), PAD)
    numbers = {word: i for i, word in enumerate(words)}
    longest = max(len(row) for split in SPLITS for row in tokens[split])
    bags = {
        split: _bags(
            [[numbers[word] for word in row] for row in tokens[split]],
            labels[split],
            len(words),
            longest if padded else 0,
        )
        for split in SPLITS
    }
    return TextBags(text.name, text.classes, words, **bags, wordless=wordless)


def _divided(text: LabelledText) -> tuple[dict[str, list[list[str]]], dict[str, np.ndarray]]:
    tokens = {name: [bag_words(t) for t in split.texts] for name, split in text.splits.items()}
    labels = {name: split.labels for name, split in text.splits.items()}
    if "train" not in tokens:
        raise AttnscopeError(f"{text.name} has no training split: expected one to learn from.")
    missing = [split for split in SPLITS if split not in tokens]
    order = np.random.default_rng(0).permutation(len(tokens["train"]))
    share = max(1, len(order) // 10)
    if len(order) <= share * len(missing):
        raise AttnscopeError(
            f"{text.name} has {len(order)} training texts and no {' and no '.join(missing)} "
            "split: expected enough to set some apart."
        )
    rows, targets = tokens["train"], labels["train"]
    for split in missing:
        taken, order = np.sort(order[:share]), order[share:]
        tokens[split], labels[split] = [rows[i] for i in taken], targets[taken]
    if missing:
        kept = np.sort(order)
        tokens["train"], labels["train"] = [rows[i] for i in kept], targets[kept]
    return tokens, labels


def _bags(rows: Sequence[Sequence[int]], labels: np.ndarray, vocabulary: int, pad_to: int) -> Bags:
    lengths = torch.tensor([len(row) for row in rows])
    width = max(pad_to, int(lengths.max()))
    ids = torch.full((len(rows), width), vocabulary - 1)
    mask = torch.arange(width) < lengths[:, None]
    ids[mask] = torch.tensor([number for row in rows for number in row])
    return Bags(ids, torch.from_numpy(labels.copy()), vocabulary, None if pad_to else mask)
