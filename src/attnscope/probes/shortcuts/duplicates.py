"""Texts that are there twice: across splits, where they leak, and with contradicting labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"\w+")
GRAM = 5
"""Words of a piece that near-duplicates share."""
SKETCH = 4
"""Pieces of a text, those of the smallest hash, by which candidates are found."""
CROWD = 20
"""A piece that more texts share is a phrase and finds nothing."""
NEAR = 0.7
"""Share of pieces in common (Jaccard) from which on two texts are nearly the same."""


@dataclass(frozen=True)
class Duplicates:
    """What was found twice.

    Args:
        repeated: training texts that are word for word those of an earlier one.
        contradicting: pairs of training texts with the same words and another label.
        leaked: texts of another split that are in training word for word, by split.
        near: texts of another split that are nearly in training, by split.
        examples: (row of one, row of the other, where the other is), a few of each.
    """

    repeated: int
    contradicting: tuple[tuple[int, int], ...]
    leaked: Mapping[str, int]
    near: Mapping[str, int]
    examples: Mapping[str, tuple[tuple[int, int], ...]]


def find_duplicates(
    train: Sequence[str], labels: NDArray[np.int64], others: Mapping[str, Sequence[str]]
) -> Duplicates:
    """Find texts that are there twice: in training, and in training and another split.

    Two texts are the same if their words are, whatever their case and marks; nearly the same if
    they share :data:`NEAR` of their pieces of :data:`GRAM` words.
    """
    first: dict[tuple[str, ...], int] = {}
    sketched: dict[int, list[int]] = {}
    repeated, contradicting = 0, []
    for row, text in enumerate(train):
        words = tuple(_WORDS.findall(text.lower()))
        earlier = first.setdefault(words, row) if words else row
        if earlier != row:
            repeated += 1
            if labels[earlier] != labels[row]:
                contradicting.append((earlier, row))
            continue
        for piece in sorted(_pieces(words))[:SKETCH]:
            sketched.setdefault(piece, []).append(row)
    leaked, near, examples = {}, {}, {}
    for split, texts in others.items():
        same, alike = [], []
        for row, text in enumerate(texts):
            words = tuple(_WORDS.findall(text.lower()))
            if words in first:
                same.append((row, first[words]))
                continue
            own = _pieces(words)
            for candidate in _candidates(own, sketched):
                other = _pieces(tuple(_WORDS.findall(train[candidate].lower())))
                if len(own & other) >= NEAR * len(own | other):
                    alike.append((row, candidate))
                    break
        leaked[split], near[split] = len(same), len(alike)
        examples[split] = tuple((*same[:2], *alike[:2]))
    return Duplicates(repeated, tuple(contradicting), leaked, near, examples)


def _candidates(own: set[int], sketched: Mapping[int, list[int]]) -> list[int]:
    found = (sketched.get(piece, ()) for piece in sorted(own)[:SKETCH])
    return list(dict.fromkeys(row for rows in found if len(rows) <= CROWD for row in rows))


def _pieces(words: tuple[str, ...]) -> set[int]:
    return {
        crc32(" ".join(words[i : i + GRAM]).encode()) for i in range(max(0, len(words) - GRAM + 1))
    }
