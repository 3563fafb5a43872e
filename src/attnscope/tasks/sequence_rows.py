"""Labelled sequences of tokens, read by rows: texts of bytes, images, and random labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from attnscope.tasks.byte_text import ByteRows
from attnscope.tasks.pathfinder import BalancedSet, PathfinderSet


@dataclass(frozen=True, eq=False)
class Batch:
    """Tokens ``(sequence, position)``, where they are (``None``: everywhere), and labels."""

    ids: Tensor
    mask: Tensor | None
    labels: Tensor


class Sequences(Protocol):
    """A labelled set, read by rows."""

    def __len__(self) -> int:
        """Return the number of sequences."""

    def batch(self, rows: Tensor) -> Batch:
        """Return some of them."""


@dataclass(frozen=True, eq=False)
class TextRows:
    """Texts of bytes; a batch is as long as its longest text, which changes no logit."""

    rows: ByteRows

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor) -> Batch:
        """Return some texts."""
        chosen = self.rows[rows]
        longest = chosen.ids.shape[1]
        if chosen.ids.device.type == "cpu":  # Elsewhere a look would wait for the device.
            longest = int(chosen.lengths.clamp(max=longest).max())
        ids = chosen.ids[:, :longest].long()
        return Batch(ids, ids != 0, chosen.labels)


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Images as rows of grey values; every pixel is a token, black ones too."""

    images: PathfinderSet | BalancedSet

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, rows: Tensor) -> Batch:
        """Return some images."""
        pixels, labels = self.images[rows.numpy()]
        return Batch(torch.from_numpy(pixels).long(), None, torch.from_numpy(labels))


class Mirrors:
    """The eight mirrored and turned forms of square images, one of them drawn for each image.

    It draws from PyTorch's global source.

    Args:
        window: pixels along a side.
    """

    def __init__(self, window: int) -> None:
        grid = torch.arange(window**2).view(window, window)
        forms = [turned for form in (grid, grid.T) for turned in (form, form.flip(1))]
        self._places = torch.stack([f.flatten() for form in forms for f in (form, form.flip(0))])

    def __call__(self, ids: Tensor) -> Tensor:
        """Return images ``(image, pixel)``, each in one of its forms."""
        which = torch.randint(len(self._places), (len(ids),))
        return ids.gather(1, self._places[which])


@dataclass(frozen=True, eq=False)
class RandomLabels:
    """The same sequences with labels drawn by a fair coin, so that nothing can be learned."""

    sequences: Sequences
    seed: int

    def __len__(self) -> int:
        return len(self.sequences)

    def batch(self, rows: Tensor) -> Batch:
        """Return some sequences, each with the label that the coin gave it."""
        true = self.sequences.batch(rows)
        coins = np.random.default_rng([self.seed, 0xC0]).integers(2, size=len(self))
        return Batch(true.ids, true.mask, torch.from_numpy(coins)[rows])


def fixed_rows(sequences: Sequences, count: int | None = None) -> Tensor:
    """Return ``count`` row numbers, the same at every call; all if there are fewer, or no count.

    A larger count begins with the rows of a smaller one.
    """
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(1))
    return order[:count]
