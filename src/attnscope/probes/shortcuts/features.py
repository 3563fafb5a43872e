"""What a text has that might give its label away: one table of (feature, text) for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnscope.probes.shortcuts.tokens import MARK, MARKUP, RATING, SOURCE, WORD, Tokens

Kind = Literal["word", "mark", "markup", "source", "rating", "boiler-plate", "position", "length"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLACES = 3
"""Places from the beginning and from the end that are looked at."""
TAILS = (0.02, 0.05, 0.1, 0.25)
"""Shares of the shortest and of the longest texts that are looked at."""
FRAME = 8
"""Tokens at the beginning, or at the end, that are boiler-plate if many texts share them."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of one kind, and the texts that have them.

    Args:
        kind: what they are.
        keys: what each feature is, sorted; a token's id, or what :attr:`names` says.
        starts: texts of feature i are ``texts[starts[i]:starts[i + 1]]``.
        texts: numbers of texts, rising within a feature, none twice.
        names: how each feature is shown, in the order of ``keys``.
    """

    kind: Kind
    keys: NDArray[np.int64]
    starts: NDArray[np.int64]
    texts: NDArray[np.int64]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many texts have each feature."""
        return np.diff(self.starts)

    def of(self, index: int) -> NDArray[np.int64]:
        """Return the texts that have a feature."""
        return self.texts[self.starts[index] : self.starts[index + 1]]

    def by_class(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Count the texts of each class that have each feature, ``(feature, class)``."""
        row = np.repeat(np.arange(len(self)), self.counts)
        flat = np.bincount(row * classes + labels[self.texts], minlength=len(self) * classes)
        return flat.reshape(len(self), classes)


def from_tokens(read: Tokens) -> dict[Kind, Features]:
    """Return the features of every kind.

    A *word*, a *mark*, a piece of *markup*, a *source* or a *rating* is there or not. A *position*
    is a token at one of the first or last :data:`PLACES` places, *boiler-plate* the same
    :data:`FRAME` tokens at the beginning or at the end; a *length* is an exact number of tokens, or
    one among the longest or the shortest texts.

    The same token in another dress may be another thing: reviews begin with "So", and one that
    begins with "so" was not written so. Where a token at a place is written in both ways, each is a
    feature too; so is a mark that stands once in a text, by itself between spaces, where there are
    other texts that have it otherwise.
    """
    text, forms = read.text, read.forms[read.ids]
    found: dict[Kind, Features] = {}
    kinds: tuple[tuple[Kind, int], ...] = (
        ("word", WORD),
        ("markup", MARKUP),
        ("source", SOURCE),
        ("rating", RATING),
    )
    for kind, form in kinds:
        own = forms == form
        found[kind] = _grouped(kind, read.ids[own], text[own], _Named(read.names))
    found["mark"] = _marks(read)
    found["position"] = _positions(read)
    found["boiler-plate"] = _frames(read)
    found["length"] = _lengths(read)
    return found


def position_key(place: int, token: int, vocabulary: int) -> int:
    """Number a token at a place: places 0, 1, ... from the beginning, -1, -2, ... from the end."""
    return (place % (2 * PLACES)) * vocabulary + token


def placed(key: int, vocabulary: int) -> tuple[int, int]:
    """Return place and token of a key, see :func:`position_key`."""
    place, token = divmod(key % (2 * PLACES * vocabulary), vocabulary)
    return (place if place < PLACES else place - 2 * PLACES), token


def undressed(kind: Kind, key: int, vocabulary: int) -> int | None:
    """Return the feature of which a key is one way of writing; ``None`` if it is no such key."""
    keys = {"mark": vocabulary, "position": 2 * PLACES * vocabulary}.get(kind, key + 1)
    return key % keys if key >= keys else None


class _Named(Sequence[str]):
    """Names of chosen tokens, looked up when they are shown."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        return self.names[int(key)]


class _Marked(_Named):
    """A mark, however it is written."""

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        return self.names[int(key) % len(self.names)]


class _Long(_Named):
    """A length put into words: exact, at most, or at least."""

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        length, way = divmod(int(key), 3)
        said = ("exactly {} tokens", "{} tokens or fewer", "{} tokens or more")
        return said[way].format(length)


class _Placed(_Named):
    """A token at a place put into words."""

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        place, token = placed(int(key), len(self.names))
        ends = ("first", "second", "third")
        where = ends[place] if place >= 0 else ("last", "last but one", "last but two")[-place - 1]
        way = int(key) // (2 * PLACES * len(self.names))
        written = ("", " in small letters", " with a capital")[way]
        return f"'{self.names[token]}'{written} as the {where} token"


class _Framed(_Named):
    """Tokens of a text's beginning or end."""

    def __init__(self, read: Tokens, where: dict[int, tuple[int, bool]]) -> None:
        self.read, self.where = read, where

    def __len__(self) -> int:
        return len(self.where)

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        text, begins = self.where[int(key)]
        row = self.read.row(text)
        shown = " ".join(row[:FRAME] if begins else row[-FRAME:])
        return f"{'begins' if begins else 'ends'} with '{shown}'"


def _grouped(
    kind: Kind, keys: NDArray[np.int64], texts: NDArray[np.int64], names: Sequence[str]
) -> Features:
    size = int(texts.max(initial=0)) + 1
    pairs = np.unique(keys * size + texts)
    key, text = np.divmod(pairs, size)
    own, starts = np.unique(key, return_index=True)
    return Features(kind, own, np.append(starts, len(key)), text, names)


def _marks(read: Tokens) -> Features:
    words, size = len(read.names), len(read) + 1
    own = read.forms[read.ids] == MARK
    every, alone = read.ids[own] * size + read.text[own], read.marked[own]
    pairs, where, times = np.unique(every, return_inverse=True, return_counts=True)
    once = (times == 1) & (np.bincount(np.ravel(where), alone, len(pairs)) > 0)
    key, text = np.divmod(pairs, size)
    part = once & (_times(key[once], words) < _times(key, words))[key]
    keys = np.concatenate([key, key[part] + words])
    return _grouped("mark", keys, np.concatenate([text, text[part]]), _Marked(read.names))


def _times(ids: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(ids, minlength=size)


def _positions(read: Tokens) -> Features:
    keys, texts, words = [], [], len(read.names)
    for place in (*range(PLACES), *range(-PLACES, 0)):
        # A text that is too short has its places from the beginning alone.
        needed = place + 1 if place >= 0 else PLACES - place
        rows = np.flatnonzero(read.lengths >= needed)
        at = read.starts[rows] + place if place >= 0 else read.starts[rows + 1] + place
        ids, code = read.ids[at], (place % (2 * PLACES)) * words
        keys.append(code + ids)
        texts.append(rows)
        count = _times(ids, words)
        for way in (1, 2):
            own = (read.marked[at] == (way == 2)) & (read.forms[ids] == WORD)
            # A way that all of them are written in would be the same test again.
            own &= _times(ids[own], words)[ids] < count[ids]
            keys.append(way * 2 * PLACES * words + code + ids[own])
            texts.append(rows[own])
    return _grouped("position", np.concatenate(keys), np.concatenate(texts), _Placed(read.names))


def exact_length(key: int) -> int | None:
    """Return the length that a key of the kind stands for, ``None`` for a bound."""
    return None if key % 3 else key // 3


def _lengths(read: Tokens) -> Features:
    numbers, lengths = np.arange(len(read)), read.lengths
    keys, texts = [3 * lengths], [numbers]
    for way, shares in ((1, TAILS), (2, tuple(1 - share for share in TAILS))):
        for bound in np.unique(np.quantile(lengths, shares).round().astype(np.int64)):
            held = numbers[lengths <= bound if way == 1 else lengths >= bound]
            if len(held) <= len(read) / 2:
                keys.append(np.full(len(held), 3 * bound + way))
                texts.append(held)
    return _grouped("length", np.concatenate(keys), np.concatenate(texts), _Long(()))


def _frames(read: Tokens) -> Features:
    rows = np.flatnonzero(read.lengths > FRAME)
    places = np.arange(FRAME)
    where: dict[int, tuple[int, bool]] = {}
    keys, texts = [], []
    for begins in (True, False):
        start = read.starts[rows] if begins else read.starts[rows + 1] - FRAME
        grams = read.ids[start[:, None] + places]
        _, first, inverse = np.unique(grams, axis=0, return_index=True, return_inverse=True)
        numbers = np.ravel(inverse) * 2 + begins
        counts = np.bincount(np.ravel(inverse))
        shared = counts[np.ravel(inverse)] > 1
        for number in np.unique(numbers[shared]):
            where[int(number)] = (int(rows[first[number // 2]]), begins)
        keys.append(numbers[shared])
        texts.append(rows[shared])
    return _grouped(
        "boiler-plate", np.concatenate(keys), np.concatenate(texts), _Framed(read, where)
    )
