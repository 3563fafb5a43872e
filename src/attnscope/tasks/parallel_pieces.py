"""Parallel text as pairs of pieces of words, as Snell 2021 prepares it (A.5, A.8)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnscope.datasets.kinds import ParallelText
from attnscope.errors import AttnscopeError
from attnscope.tasks.host import padding
from attnscope.tasks.pieces import UNKNOWN, Pieces, trained_pieces
from attnscope.tasks.sequence_pairs import END, PAD, SequencePairs

VOCABULARY = 8000
NUMERICAL = ("news_commentary",)
"""Sets whose purely numerical pairs are left out (A.5)."""
_NUMERICAL = re.compile(r"[\W\d_]*")


@dataclass(frozen=True, eq=False)
class PiecePairs:
    """Piece numbers of sentences and of their translations; both end with END."""

    source: list[NDArray[np.int64]]
    target: list[NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        """Pieces of every source, END included."""
        return np.array([len(row) for row in self.source])

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        """Pieces of every target, END included."""
        return np.array([len(row) for row in self.target])

    @property
    def sides(self) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """The pieces of every source and of every target."""
        return self.source, self.target

    @property
    def cells(self) -> NDArray[np.int64]:
        """T · L of every pair, END included."""
        return self.source_lengths * self.target_lengths

    def batch(self, rows: Sequence[int] | NDArray[np.int64] | Tensor) -> SequencePairs:
        """Return some pairs side by side; a mask is ``None`` where nothing is filled up."""
        numbers = [int(row) for row in rows]
        source, source_mask = _side_by_side([self.source[row] for row in numbers])
        target, target_mask = _side_by_side([self.target[row] for row in numbers])
        return SequencePairs(source, target, source_mask, target_mask)

    def rows(self, numbers: Sequence[int] | NDArray[np.int64]) -> PiecePairs:
        """Return some of the pairs."""
        return PiecePairs([self.source[i] for i in numbers], [self.target[i] for i in numbers])


@dataclass(frozen=True, eq=False)
class ParallelPieces:
    """A set for translation, to learn from and to look at.

    Args:
        name: the set.
        languages: of source and target.
        pieces: how texts become pieces and pieces texts.
        train: pairs to learn from.
        dev: pairs to validate on.
        dev_texts: the targets of these as published, which translations are scored against.
        dev_from: which pairs those are, in words.
        truncated: pairs of which a side was cut to the limit, by split.
        left_out: pairs that were not taken, by reason.
    """

    name: str
    languages: tuple[str, str]
    pieces: Pieces
    train: PiecePairs
    dev: PiecePairs
    dev_texts: list[str]
    dev_from: str
    truncated: dict[str, int]
    left_out: dict[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary of both languages."""
        return self.pieces.words

    @property
    def unknown(self) -> float:
        """Share of the validation pieces that are ``<unk>``, END not counted."""
        inside = np.concatenate([row[:-1] for row in (*self.dev.source, *self.dev.target)])
        return float((inside == UNKNOWN).mean())

    @property
    def facts(self) -> dict[str, object]:
        """What was read, in words and numbers."""
        return {
            "translation": f"{self.languages[0]} to {self.languages[1]}",
            "training pairs": len(self.train),
            "validation pairs": len(self.dev),
            "validation pairs are": self.dev_from,
            "pieces in the vocabulary": len(self.words),
            "unknown pieces in validation": f"{self.unknown:.2%}",
            "cut to the limit": sum(self.truncated.values()),
            "left out": self.left_out,
            "median length in training": [
                float(np.median(self.train.source_lengths)),
                float(np.median(self.train.target_lengths)),
            ],
        }


def parallel_pieces(
    text: ParallelText,
    *,
    source: str = "",
    vocabulary: int = VOCABULARY,
    most: int = 4000,
    limit: int = 1000,
    train_most: int | None = None,
    model: str | Path = "",
    folder: Path | None = None,
) -> ParallelPieces:
    """Prepare a set for translation.

    Validation pairs are at most ``most`` of the set's dev split, or, where it has none, of its
    test split, or, where it has neither, a tenth of the training pairs (A.8). They are drawn once
    and for all, so that every run sees the same ones. Pieces are learned from the training texts
    alone.

    Args:
        text: the set.
        source: the language that is translated from; the first of the set unless given.
        vocabulary: pieces of both languages, special ones included.
        most: validation pairs at most.
        limit: pieces of a sentence at most, END not counted; longer ones are cut.
        train_most: training pairs at most; all unless given.
        model: a SentencePiece model file in place of one that is trained.
        folder: where trained models are kept, as for
            :func:`~attnscope.tasks.pieces.trained_pieces`.

    Raises:
        AttnscopeError: there is no such language, no training pair is left, or the model file has
            another number of pieces than ``vocabulary``.
    """
    if limit < 1:
        raise AttnscopeError(f"limit = {limit}: expected 1 piece or more.")
    if source not in ("", *text.languages):
        raise AttnscopeError(
            f"source = '{source}': expected a language of '{text.name}', "
            f"{text.languages[0]} or {text.languages[1]}."
        )
    turned = source == text.languages[1] != text.languages[0]
    left_out: Counter[str] = Counter()
    splits, dev_from = _splits(text, most, train_most, left_out)
    if turned:
        splits = {split: [(two, one) for one, two in pairs] for split, pairs in splits.items()}
    if model:
        pieces = Pieces.read(Path(model))
        if len(pieces.words) != vocabulary:
            raise AttnscopeError(
                f"{pieces.name} has {len(pieces.words)} pieces: expected {vocabulary}, the size of "
                "the vocabulary."
            )
    else:
        # In the order of the set, so that both directions share the model.
        sides = zip(*(pair[::-1] if turned else pair for pair in splits["train"]), strict=True)
        pieces = trained_pieces([one for side in sides for one in side], vocabulary, folder=folder)
    truncated = {}
    read: dict[str, PiecePairs] = {}
    texts: dict[str, list[str]] = {}
    for split, pairs in splits.items():
        one, two = (pieces.encode(side) for side in zip(*pairs, strict=True))
        keep = [row for row in range(len(pairs)) if len(one[row]) and len(two[row])]
        if len(keep) < len(pairs):
            left_out["no piece on a side"] += len(pairs) - len(keep)
        truncated[split] = sum(max(len(one[row]), len(two[row])) > limit for row in keep)
        read[split] = PiecePairs(
            *([np.append(side[row][:limit], END) for row in keep] for side in (one, two))
        )
        texts[split] = [pairs[row][1] for row in keep]
        if not keep:
            raise AttnscopeError(
                f"no {split} pair of '{text.name}' has pieces on both sides: expected one at least."
            )
    return ParallelPieces(
        text.name,
        (text.languages[1], text.languages[0]) if turned else text.languages,
        pieces,
        read["train"],
        read["dev"],
        texts["dev"],
        dev_from,
        truncated,
        dict(left_out),
    )


_Pairs = list[tuple[str, str]]


def _splits(
    text: ParallelText, most: int, train_most: int | None, left_out: Counter[str]
) -> tuple[dict[str, _Pairs], str]:
    """Return pairs to learn from and to validate on, and where the latter are from."""
    if most < 1:
        raise AttnscopeError(f"most = {most}: expected 1 validation pair or more.")
    if train_most is not None and train_most < 1:
        raise AttnscopeError(f"train_most = {train_most}: expected 1 training pair or more.")
    if "train" not in text.splits:
        raise AttnscopeError(f"'{text.name}' has no training pairs: expected some to learn from.")
    dice = np.random.default_rng(0)
    found = {split: list(zip(*sides, strict=True)) for split, sides in text.splits.items()}
    if text.name in NUMERICAL:
        for split, pairs in found.items():
            found[split] = [p for p in pairs if not all(_NUMERICAL.fullmatch(side) for side in p)]
            left_out["purely numerical"] += len(pairs) - len(found[split])
    train = found["train"]
    for name in ("dev", "test"):
        if name in found:
            dev, said = found[name], f"the {name} split"
            break
    else:
        if len(train) < 2:
            raise AttnscopeError(
                f"'{text.name}' has {len(train)} pair: expected 2 or more, some to validate on."
            )
        order = dice.permutation(len(train))
        share = max(1, len(order) // 10)
        dev, train = _drawn(train, order[:share]), _drawn(train, order[share:])
        said = "a tenth of the training pairs, set apart"
    if len(dev) > most:
        dev, said = _drawn(dev, dice.permutation(len(dev))[:most]), f"{most:,} of {said}, at random"
    if train_most is not None and len(train) > train_most:
        train = _drawn(train, dice.permutation(len(train))[:train_most])
    return {"train": train, "dev": dev}, said


def _drawn(pairs: _Pairs, rows: NDArray[np.int64]) -> _Pairs:
    return [pairs[row] for row in np.sort(rows)]


def _side_by_side(rows: list[NDArray[np.int64]]) -> tuple[Tensor, Tensor | None]:
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), PAD)
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids), padding(mask)
