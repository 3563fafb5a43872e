"""Tables and the numbers behind figures as CSV files, exact to the last digit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from attnscope.files import write_bytes
from attnscope.report.figure import Band, Dots, Figure, Histogram, Line, Mark, Rule
from attnscope.report.page import Cell, Table

MARK_COLUMNS = ("panel", "series", "mark", "label", "x", "y", "low", "high", "x_end")
"""``series`` numbers the marks of a figure; ``x_end`` is the right edge of a bar."""


def write_table(table: Table, folder: Path) -> Path:
    """Write ``<name>.csv`` into the folder."""
    return _write(folder / f"{table.name}.csv", table.columns, table.rows)


def write_marks(figure: Figure, folder: Path) -> Path:
    """Write what a figure draws as ``<name>.csv`` in long format, one row per point or bar.

    A horizontal rule has an empty ``x``, a vertical one an empty ``y``. What a mark does not have
    stays empty; what it has but is not a number is ``nan``.
    """
    return _write(folder / f"{figure.name}.csv", MARK_COLUMNS, _rows(figure))


def _rows(figure: Figure) -> Iterator[tuple[Cell, ...]]:
    series = 0
    for panel in figure.panels:
        for mark in panel.marks:
            series += 1
            head = (panel.title, series, type(mark).__name__.lower(), mark.label)
            for values in zip(*_columns(mark), strict=True):
                yield (*head, *values)


def _columns(mark: Mark) -> list[list[Cell]]:
    """Return the columns x, y, low, high, x_end of one mark."""
    match mark:
        case Line(x=x, y=y):
            parts: tuple[np.ndarray | None, ...] = (x, y, None, None, None)
        case Band(x=x, low=low, high=high):
            parts = (x, None, low, high, None)
        case Dots(x=x, y=y, low=low, high=high):
            parts = (x, y, low, high, None)
        case Histogram(edges=edges, heights=heights, low=low, high=high):
            parts = (edges[:-1], heights, low, high, edges[1:])
        case Rule(at=at, vertical=vertical):
            place = np.array([at])
            parts = (place if vertical else None, None if vertical else place, None, None, None)
    size = next(len(part) for part in parts if part is not None)
    return [[None] * size if part is None else np.asarray(part).tolist() for part in parts]


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return write_bytes(path, text.getvalue().encode())
