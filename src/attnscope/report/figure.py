"""A figure as data: what is drawn, before any library draws it.

Studies return these values; :mod:`attnscope.report` draws each of them twice, interactively with
Bokeh and for print with Matplotlib, and tests look at the numbers themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Scale = Literal["linear", "log"]


@dataclass(frozen=True, eq=False)
class Line:
    """A curve. ``theory`` curves are drawn dashed, dark and on top of everything else."""

    x: np.ndarray
    y: np.ndarray
    label: str = ""
    color: int = 0
    theory: bool = False
    thin: bool = False


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two curves, such as a confidence interval."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    label: str = ""
    color: int = 0


@dataclass(frozen=True, eq=False)
class Histogram:
    """Bars between edges, with an interval around each height if ``low`` and ``high`` are given."""

    edges: np.ndarray
    heights: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    label: str = ""
    color: int = 0


@dataclass(frozen=True, eq=False)
class Dots:
    """Points, with a vertical interval at each if ``low`` and ``high`` are given."""

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    label: str = ""
    color: int = 0


@dataclass(frozen=True)
class Rule:
    """A straight line across the panel at ``at``."""

    at: float
    label: str = ""
    vertical: bool = False


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix or a landscape as colours; other marks of the panel lie over it.

    Args:
        x: edges of the columns, rising, shape ``(columns + 1,)``.
        y: edges of the rows, rising, shape ``(rows + 1,)``.
        values: shape ``(rows, columns)``, the first row lowest; NaN is drawn as empty.
        label: what the colours stand for, with its unit; it stands beside the colour bar.
        diverging: colours are symmetric about zero.
        log: colours are logarithmic; what is not positive is drawn as empty.
        reach: with diverging colours, the value of the strongest ones, so that panels can share
            it; the largest value here unless given.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    label: str = ""
    diverging: bool = False
    log: bool = False
    reach: float | None = None


@dataclass(frozen=True, eq=False)
class Contour:
    """Lines of equal height, each level with its number; they may lie over a heat map.

    Args:
        x: columns, rising, shape ``(columns,)``.
        y: rows, rising, shape ``(rows,)``.
        values: heights at the points, shape ``(rows, columns)``; lines leave NaN out.
        levels: heights that get a line; about eight round ones unless given.
        label: what the lines stand for, with its unit.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    levels: tuple[float, ...] = ()
    label: str = ""


Listed = Line | Band | Histogram | Dots | Rule | Contour
"""Marks that the legend lists by their label; a heat map has a colour bar."""
Mark = Listed | Heat


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes. Labels name the quantity and its unit."""

    title: str
    xlabel: str
    ylabel: str
    marks: tuple[Mark, ...]
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xticks: tuple[tuple[float, str], ...] = ()
    yticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Surface:
    """Heights over a grid in three dimensions, and a path; it takes the place of a panel.

    Args:
        title: stands above it.
        xlabel: quantity and unit of the columns.
        ylabel: of the rows.
        zlabel: of the heights; it stands beside the colour bar as well.
        x: columns, rising, shape ``(columns,)``.
        y: rows, rising, shape ``(rows,)``.
        values: heights, shape ``(rows, columns)``; NaN leaves a hole.
        path: points ``(x, y, height)`` joined by a line, shape ``(points, 3)``.
        path_label: what the path is.
        zrange: lowest and highest height shown, for surfaces that are compared; what lies beyond
            is drawn at the end of the range. Their own range unless given.
    """

    title: str
    xlabel: str
    ylabel: str
    zlabel: str
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    path: np.ndarray | None = None
    path_label: str = ""
    zrange: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Figure:
    """Panels side by side, with a caption that can stand alone.

    Args:
        name: file name without ending, such as ``"fig2-sen"``.
        title: a short heading.
        caption: what is drawn, from which runs, and what one should see.
        panels: read row by row.
        columns: panels in a row.
        surfaces: stand before the panels, row by row as well.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 3
    surfaces: tuple[Surface, ...] = ()

    def __repr__(self) -> str:
        count = len(self.panels) + len(self.surfaces)
        return f"Figure({self.name!r}, {count} panel{'s' * (count != 1)}: {self.title})"

    def _repr_png_(self) -> bytes | None:
        """Draw it, for notebooks; without Matplotlib its line of text has to do."""
        from attnscope.needs import there

        if not (there("matplotlib") and there("contourpy")):
            return None
        from io import BytesIO

        from attnscope.report.static import draw

        file = BytesIO()
        draw(self).savefig(file, format="png", dpi=90)
        return file.getvalue()
