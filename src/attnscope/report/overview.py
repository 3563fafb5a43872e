"""The first screen of a watched run as data: its losses, what began when, and maps of readings.

A map has a row for every head of every layer (or every layer, matrix or block) and the steps of
training from left to right, below the loss and on the same axis.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Line

COLUMNS = 240
"""Readings of a map at most; a screen has few more pixels than three for each."""
FEWEST_COLUMNS = 30
MAPS_BYTES = 2 * 2**20
"""What the maps of all readings may take in the file."""


@dataclass(frozen=True)
class Event:
    """Something that began at a step.

    Args:
        step: the number of steps taken.
        text: what began and where, in words.
        kind: a fault, a stage that trainings pass through, or a good sign.
        anchor: link target with more about it, if there is one.
    """

    step: int
    text: str
    kind: Literal["fault", "stage", "good"] = "good"
    anchor: str = ""


@dataclass(frozen=True, eq=False)
class ReadingMap:
    """One reading over training.

    Args:
        name: as it was recorded.
        meaning: what it is, a phrase; may be empty.
        kind: what the rows are: ``"heads"``, ``"layers"``, ``"matrices"`` or ``"blocks"``.
        groups: name and number of rows of each group of rows, from the top; groups are layers.
        rows: name of each row within its group; empty if it is the whole group.
        steps: rising, shape ``(readings,)``.
        values: shape ``(rows, readings)``, NaN where there is none.
        log: colours are logarithmic.
    """

    name: str
    meaning: str
    kind: str
    groups: tuple[tuple[str, int], ...]
    rows: tuple[str, ...]
    steps: np.ndarray
    values: np.ndarray
    log: bool = False

    def __post_init__(self) -> None:
        rows = sum(count for _, count in self.groups)
        fitting = (len(self.rows), len(self.steps)) == self.values.shape and rows == len(self.rows)
        if not fitting or not self.values.size:
            raise AttnscopeError(
                f"ReadingMap '{self.name}': values has shape {self.values.shape}, with "
                f"{len(self.steps)} steps, {len(self.rows)} names of rows and {rows} rows in "
                "groups; expected (rows, steps) and one row at least."
            )

    def packed(self) -> str:
        """Return the values as little-endian float32, compressed (zlib), in base 64."""
        with np.errstate(over="ignore", under="ignore"):
            raw = np.ascontiguousarray(self.values, dtype="<f4").tobytes()
        return base64.b64encode(zlib.compress(raw, 6)).decode()

    def span(self) -> tuple[float, float]:
        """Return the values of the first and the last colour."""
        known = self.values[np.isfinite(self.values) & (~np.bool_(self.log) | (self.values > 0))]
        low, high = float(known.min()), float(known.max())
        if low < high:
            return low, high
        # One colour for all: a little room, so that it lies in the middle.
        return (low / 2, high * 2) if self.log else (low - 0.5, high + 0.5)


@dataclass(frozen=True, eq=False)
class Overview:
    """What a reader of a watched run sees first.

    Args:
        losses: curves of the loss over steps.
        events: in any order; they are shown by step.
        maps: readings to choose from, the first one is shown.
    """

    losses: tuple[Line, ...] = ()
    events: tuple[Event, ...] = ()
    maps: tuple[ReadingMap, ...] = ()


def uneven(steps: np.ndarray) -> bool:
    """Whether steps are so uneven that a logarithmic axis shows more, as 1, 2, 4, ..., 143000."""
    gaps = np.diff(np.unique(steps))
    return bool(gaps.size > 3 and gaps.max() > 50 * gaps.min())
