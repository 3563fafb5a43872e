"""Labelled text as sequences of words of two classes, as Snell 2021 prepares it (A.5, A.8).

Texts are split into words; words that occur fewer than three times in the training texts are
``<unk>``; ``<bos>`` and ``<eos>`` are put around every text, as in the released code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.errors import AttnscopeError
from attnscope.tasks.host import padding
from attnscope.tasks.keyword import LabelledSequences
from attnscope.tasks.sequence_pairs import END, PAD, START

UNKNOWN = 3
"""Number of ``<unk>``; words are numbered from 4."""
SPECIAL_WORDS = ("<pad>", "<bos>", "<eos>", "<unk>")
SET_APART = "a tenth of the training texts, set apart"
"""Where validation texts are from if a set has none of its own."""
LEAST = 3
"""How often a word must occur in the training texts to be in the vocabulary (A.8)."""
_WORDS = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
    "[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]*"
)
"""A letter, with its marks, of a script that has no spaces between words: Han, Kana, Thai, Lao,
Burmese, Khmer. Each counts as a word, for where words end is not written."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBER = re.compile(r"\d{2,}")


@dataclass(frozen=True)
class Rule:
    """How the texts of a set become words (A.5, A.8).

    Args:
        classes: the two classes that are told apart, the negative one first; ``None`` when the
            set has just two.
        spaced: words stand between spaces already, as in a treebank.
        numbers: integers of two digits or more are unknown words.
        underscores: words are split at ``_``.
        shorter: only texts of fewer words are taken.
        tested: validation texts are those of the test split where there is one, as for every set
            of the paper (A.8); a set of your own is validated on its dev split first.
    """

    classes: tuple[str, str] | None = None
    spaced: bool = False
    numbers: bool = False
    underscores: bool = False
    shorter: int | None = None
    tested: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text, in lower case.

        >>> Rule().words("Well-made,<br />but it's 2 hours!")
        ['well-made', ',', 'but', "it's", '2', 'hours', '!']
        >>> Rule(numbers=True, underscores=True).words("top_10 of 1993, 7 new")
        ['top', '<unk>', 'of', '<unk>', ',', '7', 'new']
        >>> Rule().words("很好 ok")
        ['很', '好', 'ok']
        """
        text = _BREAK.sub(" ", text).lower()
        if not self.spaced and not text.isascii():
            text = UNSPACED.sub(r" \g<0> ", text)
        if self.underscores:
            text = text.replace("_", " ")
        words = text.split() if self.spaced else _WORDS.findall(text)
        if self.numbers:
            words = [SPECIAL_WORDS[UNKNOWN] if _NUMBER.fullmatch(w) else w for w in words]
        return words


RULES: dict[str, Rule] = {
    "sst2": Rule(spaced=True, tested=True),
    "imdb": Rule(tested=True),
    "ag_news": Rule(classes=("World", "Business"), numbers=True, tested=True),
    "newsgroups": Rule(
        classes=("rec.sport.baseball", "rec.sport.hockey"),
        numbers=True,
        underscores=True,
        tested=True,
    ),
    "amazon": Rule(shorter=400, tested=True),
    "yelp": Rule(tested=True),
}
"""The sets that A.5 and A.8 treat in a way of their own."""


@dataclass(frozen=True, eq=False)
class WordSequences:
    """Texts of two classes as word ids, to learn from and to look at.

    Args:
        name: the set.
        classes: names of the labels 0 and 1.
        words: the vocabulary; the first four are special.
        train: word ids of every training text, and its label.
        dev: the same for validation.
        dev_from: which texts those are, in words.
        truncated: texts that were cut to the limit, by split.
        left_out: texts that were not taken, by reason.
        unknown: share of the validation words that are ``<unk>``.
    """

    name: str
    classes: tuple[str, str]
    words: tuple[str, ...]
    train: Texts
    dev: Texts
    dev_from: str
    truncated: dict[str, int]
    left_out: dict[str, int]
    unknown: float

    @property
    def facts(self) -> dict[str, object]:
        """What was read, in words and numbers."""
        return {
            "training texts": len(self.train),
            "validation texts": len(self.dev),
            "validation texts are": self.dev_from,
            "words in the vocabulary": len(self.words),
            "unknown words in validation": f"{self.unknown:.1%}",
            "cut to the limit": sum(self.truncated.values()),
            "left out": self.left_out,
            "median length in training": float(np.median(self.train.lengths)),
        }


@dataclass(frozen=True, eq=False)
class Texts:
    """Word ids of texts and their labels."""

    ids: list[NDArray[np.int64]]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of every text."""
        return np.array([len(row) for row in self.ids])

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> LabelledSequences:
        """Return some texts side by side; the mask is ``None`` where none is filled up."""
        picked = [self.ids[i] for i in rows]
        longest = max(map(len, picked))
        ids = np.full((len(picked), longest), PAD)
        for row, words in zip(ids, picked, strict=True):
            row[: len(words)] = words
        mask = padding(ids != PAD)
        label = torch.from_numpy(self.labels[np.asarray(rows)].astype(np.float32))
        return LabelledSequences(torch.from_numpy(ids), label, torch.full((len(picked),), -1), mask)

    @property
    def sides(self) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """The words of every text, and its label as a sentence of one word."""
        return self.ids, list(self.labels[:, None])

    def rows(self, numbers: Sequence[int] | NDArray[np.int64]) -> Texts:
        """Return some of the texts."""
        return Texts([self.ids[i] for i in numbers], self.labels[np.asarray(numbers)])


def word_sequences(
    text: LabelledText,
    *,
    classes: tuple[str, str] | None = None,
    most: int = 4000,
    limit: int = 1000,
    train_most: int | None = None,
) -> WordSequences:
    """Prepare a labelled set.

    Validation texts are at most ``most`` of the test split for the sets of the paper (A.8), and of
    the dev split for others; of the other one of the two where there is none; or, where there is
    neither, a tenth of the training texts. They are drawn once and for all, so that every run sees
    the same ones.

    Args:
        text: the set.
        classes: the two classes to tell apart, the negative one first; the rule of the set, or
            its only two, unless given.
        most: validation texts at most.
        limit: words of a text at most, ``<bos>`` and ``<eos>`` not counted; longer texts are cut.
        train_most: training texts at most; all unless given.

    Raises:
        AttnscopeError: the set has more than two classes and none were named, or a split lacks
            one of the two.
    """
    rule = RULES.get(text.name, Rule())
    if classes is not None:
        rule = replace(rule, classes=classes)
    if limit < 1:
        raise AttnscopeError(f"limit = {limit}: expected 1 word or more.")
    pair = _pair(text, rule.classes)
    order = ("test", "dev") if rule.tested else ("dev", "test")
    splits, dev_from = _splits(text, pair, order, most, train_most)
    left_out: Counter[str] = Counter()
    truncated = {"train": 0, "dev": 0}
    rows: dict[str, tuple[list[list[str]], NDArray[np.int64]]] = {}
    for split, (texts, labels) in splits.items():
        tokens = [rule.words(one) for one in texts]
        keep = _kept(tokens, rule, left_out)
        tokens, labels = [tokens[i] for i in keep], labels[keep]
        truncated[split] = sum(len(row) > limit for row in tokens)
        rows[split] = ([row[:limit] for row in tokens], labels)
        _both_classes(text, split, labels, pair, dev_from)
    words = _vocabulary(rows["train"][0])
    numbers = {word: i for i, word in enumerate(words)}
    train, dev = (
        Texts([_ids(row, numbers) for row in rows[split][0]], rows[split][1])
        for split in ("train", "dev")
    )
    inside = np.concatenate([row[1:-1] for row in dev.ids])
    names = (text.classes[pair[0]], text.classes[pair[1]])
    unknown = float((inside == UNKNOWN).mean())
    return WordSequences(
        text.name, names, words, train, dev, dev_from, truncated, dict(left_out), unknown
    )


def _pair(text: LabelledText, classes: tuple[str, str] | None) -> tuple[int, int]:
    if classes is None:
        if len(text.classes) != 2:
            raise AttnscopeError(
                f"'{text.name}' has {len(text.classes)} classes ({', '.join(text.classes)}): "
                "expected the names of the two to tell apart, the negative one first, as in "
                f"`--classes '{text.classes[0]}' '{text.classes[1]}'`."
            )
        return 0, 1
    unknown = [name for name in classes if name not in text.classes]
    if unknown or len(classes) != 2 or classes[0] == classes[1]:
        raise AttnscopeError(
            f"classes {', '.join(map(repr, classes))} of '{text.name}': expected two of "
            f"{', '.join(text.classes)}."
        )
    return text.classes.index(classes[0]), text.classes.index(classes[1])


def _splits(
    text: LabelledText,
    pair: tuple[int, int],
    validation: tuple[str, str],
    most: int,
    train_most: int | None,
) -> tuple[dict[str, tuple[list[str], NDArray[np.int64]]], str]:
    """Return texts and labels 0 and 1 to learn from and to validate on, and where from."""
    if most < 1:
        raise AttnscopeError(f"most = {most}: expected 1 validation text or more.")
    if "train" not in text.splits:
        raise AttnscopeError(f"'{text.name}' has no training texts: expected some to learn from.")
    dice = np.random.default_rng(0)
    train = _of_pair(text.splits["train"], pair)
    for name in validation:
        if name in text.splits:
            dev, source = _of_pair(text.splits[name], pair), f"the {name} split"
            break
    else:
        order = dice.permutation(len(train[0]))
        share = max(1, min(most, len(order) // 10))
        dev, train = _rows(train, np.sort(order[:share])), _rows(train, np.sort(order[share:]))
        source = SET_APART
    if len(dev[0]) > most:
        source = f"{most:,} of {source}, drawn at random"
    # In random order: files are often sorted by class, and some readings are of the first texts.
    dev = _rows(dev, dice.permutation(len(dev[0]))[:most])
    if train_most is not None and len(train[0]) > train_most:
        train = _rows(train, np.sort(dice.permutation(len(train[0]))[:train_most]))
    return {"train": train, "dev": dev}, source


def _of_pair(split: Split, pair: tuple[int, int]) -> tuple[list[str], NDArray[np.int64]]:
    rows = np.flatnonzero(np.isin(split.labels, pair))
    return [split.texts[i] for i in rows], (split.labels[rows] == pair[1]).astype(np.int64)


def _rows(
    texts: tuple[list[str], NDArray[np.int64]], rows: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    return [texts[0][i] for i in rows], texts[1][rows]


def _kept(tokens: list[list[str]], rule: Rule, left_out: Counter[str]) -> NDArray[np.int64]:
    reasons: tuple[tuple[str, Callable[[list[str]], bool]], ...] = (
        ("no word", lambda row: not row),
        (f"{rule.shorter} words or more", lambda row: len(row) >= (rule.shorter or len(row) + 1)),
    )
    keep = []
    for index, row in enumerate(tokens):
        reason = next((said for said, holds in reasons if holds(row)), None)
        if reason is None:
            keep.append(index)
        else:
            left_out[reason] += 1
    return np.array(keep, dtype=np.int64)


def _both_classes(
    text: LabelledText,
    split: str,
    labels: NDArray[np.int64],
    pair: tuple[int, int],
    dev_from: str,
) -> None:
    missing = [text.classes[pair[k]] for k in (0, 1) if not (labels == k).any()]
    if missing and SET_APART in dev_from:
        # The split is ours, so it is the number of examples that has to be spoken of.
        index = text.classes.index(missing[0])
        had = int((text.splits["train"].labels == index).sum())
        raise AttnscopeError(
            f"'{text.name}' has {had} {'text' if had == 1 else 'texts'} of the class "
            f"'{missing[0]}', and none was left to {'learn from' if split == 'train' else 'check'} "
            "when a tenth of all texts was set apart to validate on: expected ten texts of each "
            "class at least, or a file of its own for validation (dev or test)."
        )
    if missing:
        raise AttnscopeError(
            f"none of the {len(labels)} {split} texts of '{text.name}' is of the class "
            f"'{missing[0]}': expected texts of both classes in every split."
        )


def _vocabulary(rows: list[list[str]]) -> tuple[str, ...]:
    counts = Counter(word for row in rows for word in row)
    known = sorted(w for w, count in counts.items() if count >= LEAST and w not in SPECIAL_WORDS)
    if not known:
        raise AttnscopeError(
            f"no word occurs {LEAST} times in the training texts: expected more text."
        )
    return (*SPECIAL_WORDS, *known)


def _ids(row: list[str], numbers: dict[str, int]) -> NDArray[np.int64]:
    return np.array([START, *(numbers.get(word, UNKNOWN) for word in row), END])
