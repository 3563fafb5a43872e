"""Lines of equal height, computed once for both renderers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from contourpy import LineType, contour_generator
from matplotlib.ticker import MaxNLocator

from attnscope.report.figure import Contour, Panel

AUTOMATIC = 8
"""Levels, about, where none are given."""


@dataclass(frozen=True, eq=False)
class IsoLine:
    """One unbroken line of a level; the longest of each level carries the number."""

    level: float
    x: np.ndarray
    y: np.ndarray
    numbered: bool = False

    @property
    def middle(self) -> tuple[float, float]:
        """Where the number stands."""
        half = len(self.x) // 2
        return float(self.x[half]), float(self.y[half])


def levels_of(mark: Contour) -> list[float]:
    """Return the heights that get a line, in rising order."""
    if mark.levels:
        return sorted(set(map(float, mark.levels)))
    known = mark.values[np.isfinite(mark.values)]
    if known.size == 0 or known.min() == known.max():
        return []
    ticks = MaxNLocator(AUTOMATIC).tick_values(known.min(), known.max())
    return [float(tick) for tick in ticks if known.min() < tick < known.max()]


def iso_lines(mark: Contour, panel: Panel) -> list[IsoLine]:
    """Return the lines of a drawable contour; between points they are straight on the axes."""
    x = np.log(mark.x) if panel.xscale == "log" else mark.x
    y = np.log(mark.y) if panel.yscale == "log" else mark.y
    heights = np.ma.masked_invalid(mark.values)
    generator = contour_generator(x, y, heights, line_type=LineType.Separate)
    found = []
    for level in levels_of(mark):
        pieces = [np.asarray(piece) for piece in generator.lines(level)]
        longest = max(range(len(pieces)), key=lambda i: len(pieces[i]), default=-1)
        for i, piece in enumerate(pieces):
            xs, ys = piece.T
            xs = np.exp(xs) if panel.xscale == "log" else xs
            ys = np.exp(ys) if panel.yscale == "log" else ys
            found.append(IsoLine(level, xs, ys, i == longest))
    return found
