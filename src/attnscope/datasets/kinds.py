"""What the readers give: labelled text, parallel text, documents, alignments and word vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.text import Place
from attnscope.errors import AttnscopeError

EMPTY_TEXT = "empty text"


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one split.

    Args:
        texts: one text a row, as published.
        labels: the class of each row, an index into the classes of the set; int64.
        skipped: how many rows were left out on purpose, by reason.
    """

    texts: list[str]
    labels: NDArray[np.int64]
    skipped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise AttnscopeError(
                f"there are {len(self.texts)} texts and {len(self.labels)} labels: expected as "
                "many labels as texts."
            )

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class LabelledText:
    """A set for classification; it has a split ``"train"``, often ``"dev"`` and ``"test"``."""

    name: str
    classes: tuple[str, ...]
    splits: dict[str, Split]

    def __post_init__(self) -> None:
        for name, split in self.splits.items():
            _not_empty(self.name, name, len(split), split.skipped)
            low, high = int(split.labels.min()), int(split.labels.max())
            if low < 0 or high >= len(self.classes):
                raise AttnscopeError(
                    f"labels of '{self.name}', split {name}, go from {low} to {high}: expected 0 "
                    f"to {len(self.classes) - 1}, for {len(self.classes)} classes."
                )
        train = self.splits.get("train")
        if train is not None and (train.labels == train.labels[0]).all():
            raise AttnscopeError(
                f"all {len(train)} training texts of '{self.name}' have the label "
                f"'{self.classes[int(train.labels[0])]}': expected two classes at least."
            )


@dataclass(frozen=True, eq=False)
class ParallelText:
    """Sentences in two languages, aligned; ``splits`` holds ``(source, target)`` by split."""

    name: str
    languages: tuple[str, str]
    splits: dict[str, tuple[list[str], list[str]]]
    skipped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (source, target) in self.splits.items():
            _not_empty(self.name, name, len(source), self.skipped)
            if len(source) != len(target):
                raise AttnscopeError(
                    f"'{self.name}', split {name}, has {len(source)} sentences in "
                    f"{self.languages[0]} and {len(target)} in {self.languages[1]}: expected as "
                    "many."
                )


@dataclass(frozen=True, eq=False)
class DocumentSet:
    """Running text; one string a document."""

    name: str
    splits: dict[str, list[str]]
    skipped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, texts in self.splits.items():
            _not_empty(self.name, name, len(texts), self.skipped)


@dataclass(frozen=True, eq=False)
class Alignments:
    """Gold word alignments of sentence pairs.

    Args:
        source: the words of each source sentence.
        target: the words of each target sentence.
        sure: for each pair the links ``(i, j)`` from source word i to target word j, from 0.
        possible: the links that are possible but not sure. (The alignment error rate of Och and
            Ney counts sure links among the possible ones: take the union for it.)
    """

    source: list[list[str]]
    target: list[list[str]]
    sure: list[frozenset[tuple[int, int]]]
    possible: list[frozenset[tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of the words asked for that the file has.

    Args:
        words: the words found, in the order they were asked for.
        vectors: their vectors, shape ``(word, dimension)``.
        missing: the words asked for that the file does not have.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    missing: tuple[str, ...]


class Rows:
    """Rows of a labelled split while they are read.

    Args:
        written: the labels as they are written in the file, in the order of the classes.
    """

    def __init__(self, written: Sequence[str]) -> None:
        self.numbers = {label: number for number, label in enumerate(written)}
        self.texts: list[str] = []
        self.labels: list[int] = []
        self.skipped: Counter[str] = Counter()

    def add(self, text: str, label: str, place: Place) -> None:
        """Add a row; white space at its ends goes, and a text of nothing else is skipped."""
        number = self.numbers.get(label)
        if number is None:
            known = ", ".join(f"'{known}'" for known in self.numbers)
            raise place.error(
                f"the label {label[:80]!r} is not in the set. Expected one of {known}."
            )
        text = text.strip()
        if not text:
            self.skipped[EMPTY_TEXT] += 1
            return
        self.texts.append(text)
        self.labels.append(number)

    def split(self) -> Split:
        """Return what was read."""
        return Split(self.texts, np.array(self.labels, dtype=np.int64), dict(self.skipped))


def _not_empty(name: str, split: str, rows: int, skipped: Mapping[str, int]) -> None:
    if rows:
        return
    said = ", ".join(f"{count} with {reason}" for reason, count in skipped.items())
    raise AttnscopeError(
        f"'{name}', split {split}, holds no text{f' (skipped: {said})' if said else ''}: expected "
        "one row at least."
    )
