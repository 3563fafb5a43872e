"""Labelled text as sequences of bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.errors import AttnscopeError

PAD = 0
"""The token of padding."""
VOCABULARY = 257
"""Padding, and 256 bytes."""


@dataclass(frozen=True, eq=False)
class ByteRows:
    """Texts as rows of bytes: byte b is the token b + 1, and 0 is padding at the end.

    Args:
        ids: shape ``(text, position)``, int16.
        labels: shape ``(text,)``.
        lengths: bytes of each text before it was cut.
    """

    ids: Tensor
    labels: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: Tensor) -> ByteRows:
        return ByteRows(self.ids[rows], self.labels[rows], self.lengths[rows])

    @property
    def mask(self) -> Tensor:
        """True where there is a byte."""
        return self.ids != PAD


@dataclass(frozen=True, eq=False)
class ByteText:
    """The splits ``train`` and ``test`` of a labelled set, as bytes."""

    name: str
    classes: tuple[str, ...]
    train: ByteRows
    test: ByteRows


def byte_text(text: LabelledText, length: int) -> ByteText:
    """Turn labelled text into bytes (UTF-8), each text cut after ``length`` of them.

    Raises:
        AttnscopeError: the set has no training or no test split, or nothing is left of a text.
    """
    if length < 1:
        raise AttnscopeError(f"length = {length}: expected 1 byte or more.")
    for split in ("train", "test"):
        if split not in text.splits:
            raise AttnscopeError(
                f"'{text.name}' has no split {split}: expected train and test, as imdb has."
            )
    return ByteText(
        text.name,
        text.classes,
        _rows(text.splits["train"], length),
        _rows(text.splits["test"], length),
    )


def _rows(split: Split, length: int) -> ByteRows:
    ids = np.full((len(split), length), PAD, dtype=np.int16)
    lengths = np.empty(len(split), dtype=np.int64)
    for row, text in enumerate(split.texts):
        encoded = text.encode()
        lengths[row] = len(encoded)
        part = np.frombuffer(encoded[:length], dtype=np.uint8)
        ids[row, : len(part)] = part.astype(np.int16) + 1
    labels = torch.from_numpy(np.asarray(split.labels).copy())
    return ByteRows(torch.from_numpy(ids), labels, torch.from_numpy(lengths))
