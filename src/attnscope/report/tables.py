"""Tables and the numbers behind figures as CSV files, exact to the last digit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from attnscope.files import write_bytes
from attnscope.report.drawable import cells
from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Heat,
    Histogram,
    Line,
    Mark,
    Rule,
    Surface,
)
from attnscope.report.page import Cell, Table

VALUE_COLUMNS = ("x", "y", "low", "high", "x_end", "y_end", "value")
"""``x_end`` is the right edge of a bar or a cell, ``y_end`` the upper edge of a cell. ``value`` is
a cell's colour, or the height of a contour, a surface or a path at a point."""
MARK_COLUMNS = ("panel", "series", "mark", "label", *VALUE_COLUMNS)
"""``series`` numbers the marks of a figure."""


def write_table(table: Table, folder: Path) -> Path:
    """Write ``<name>.csv`` into the folder."""
    return _write(folder / f"{table.name}.csv", table.columns, table.rows)


def write_marks(figure: Figure, folder: Path) -> Path:
    """Write what a figure draws as ``<name>.csv`` in long format, one row per point, bar or cell.

    A horizontal rule has an empty ``x``, a vertical one an empty ``y``. What a mark does not have
    stays empty; what it has but is not a number is ``nan``.
    """
    return _write(folder / f"{figure.name}.csv", MARK_COLUMNS, _rows(figure))


def _rows(figure: Figure) -> Iterator[tuple[Cell, ...]]:
    series = 0
    for surface in figure.surfaces:
        for kind, label, points in _points(surface):
            series += 1
            head = (surface.title, series, kind, label)
            for x, y, value in points.tolist():
                yield (*head, x, y, None, None, None, None, value)
    for panel in figure.panels:
        for mark in panel.marks:
            series += 1
            head = (panel.title, series, type(mark).__name__.lower(), mark.label)
            for values in zip(*_columns(mark), strict=True):
                yield (*head, *values)


def _points(surface: Surface) -> Iterator[tuple[str, str, np.ndarray]]:
    columns, rows = np.meshgrid(surface.x, surface.y)
    grid = np.stack([columns.ravel(), rows.ravel(), np.ravel(surface.values)], axis=1)
    yield "surface", surface.zlabel, grid
    if surface.path is not None:
        yield "path", surface.path_label, np.asarray(surface.path)


def _columns(mark: Mark) -> list[list[Cell]]:
    """Return the columns of one mark in the order of ``VALUE_COLUMNS``."""
    parts: dict[str, np.ndarray | None]
    match mark:
        case Line(x=x, y=y):
            parts = {"x": x, "y": y}
        case Band(x=x, low=low, high=high):
            parts = {"x": x, "low": low, "high": high}
        case Dots(x=x, y=y, low=low, high=high):
            parts = {"x": x, "y": y, "low": low, "high": high}
        case Histogram(edges=edges, heights=y, low=low, high=high):
            parts = {"x": edges[:-1], "y": y, "low": low, "high": high, "x_end": edges[1:]}
        case Rule(at=at, vertical=vertical):
            parts = {"x" if vertical else "y": np.array([at])}
        case Heat(values=values):
            left, right, bottom, top = cells(mark)
            parts = {"x": left, "y": bottom, "x_end": right, "y_end": top}
            parts["value"] = np.ravel(values)
        case Contour(x=x, y=y, values=values):
            columns, rows = np.meshgrid(x, y)
            parts = {"x": columns.ravel(), "y": rows.ravel(), "value": np.ravel(values)}
    size = next(len(part) for part in parts.values() if part is not None)
    return [
        [None] * size if (part := parts.get(name)) is None else np.asarray(part).tolist()
        for name in VALUE_COLUMNS
    ]


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return write_bytes(path, text.getvalue().encode())
