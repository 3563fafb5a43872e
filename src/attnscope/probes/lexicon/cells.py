"""Rows of positions of different lengths, kept one after another."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Cells:
    """Where the rows of a flat array of cells begin and end.

    A row is what one target word has to say about the L positions of its source: attention, the
    lexical probe, saliency. In classification a row is a sentence.

    Args:
        length: L of each row.
    """

    def __init__(self, length: ArrayLike) -> None:
        self.length = np.asarray(length, dtype=np.int64)
        self.ends = self.length.cumsum()

    def __len__(self) -> int:
        return len(self.length)

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.ends[-1]) if len(self) else 0

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Where there is a position, shape ``(row, longest)``."""
        return np.arange(self.length.max(initial=0)) < self.length[:, None]

    def padded(self, values: ArrayLike) -> NDArray[np.float64]:
        """Lay cells out as rows, shape ``(..., row, longest)``; NaN where there is no position."""
        flat = np.asarray(values, dtype=np.float64)
        out = np.full((*flat.shape[:-1], *self.mask.shape), np.nan)
        out[..., self.mask] = flat
        return out

    def prefix(self, cells: int) -> Cells:
        """Return the rows that the first ``cells`` cells hold, whole ones only."""
        return Cells(self.length[: int(np.searchsorted(self.ends, cells, side="right"))])

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the cells of some rows lie, row after row.

        >>> Cells([2, 3, 1]).places(np.array([2, 0]))
        array([5, 0, 1])
        """
        length = self.length[rows]
        place = (self.ends[rows] - length)[:, None] + np.arange(length.max(initial=0))
        return place[place < self.ends[rows][:, None]]

    def row(self, number: int) -> slice:
        """Return where the cells of a row lie."""
        return slice(int(self.ends[number] - self.length[number]), int(self.ends[number]))
