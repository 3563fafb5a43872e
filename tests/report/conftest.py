from __future__ import annotations

import numpy as np
import pytest

from attnscope.report.figure import Band, Dots, Figure, Heat, Histogram, Line, Panel, Rule


@pytest.fixture
def every_mark() -> Figure:
    """Two panels, linear and log, with every kind of mark, and labels shared between them."""
    x = np.linspace(1.0, 5.0, 9)
    marks = (
        Line(x, x**2, "theory", theory=True),
        Line(x, x**2 + 0.1, "ours", color=1),
        Band(x, x**2 - 0.5, x**2 + 0.5, "ours", color=1),
        Line(x, x + 1, "word a", thin=True),
        Line(x, x + 2, "word b", color=2, thin=True),
        Histogram(np.arange(1.0, 5.0), np.array([3.0, 1.0, 2.0]), label="bars", color=3),
        Dots(x, x, x - 0.2, x + 0.2, "dots", color=4),
        Rule(4.0, "limit"),
        Rule(2.0, "start", vertical=True),
    )
    bars = Histogram(
        np.array([1.0, 2.0, 4.0]),
        np.array([0.0, 3.0]),
        np.array([0.0, 2.0]),
        np.array([0.5, 4.0]),
        "bars",
        color=3,
    )
    log = Panel("log", "x", "y", (Line(x, x, "ours", color=1), bars), "log", "log")
    ticks = ((1.0, "one"), (5.0, "five"))
    linear = Panel("linear", "x (s)", "y (m)", marks, xticks=ticks)
    return Figure("every-mark", "Every mark", "All kinds.", (linear, log), columns=2)


@pytest.fixture
def awkward() -> Figure:
    """Nothing, not-a-number, infinity, one point, and what a log axis cannot show."""
    none, one, gap = np.empty(0), np.array([2.0]), np.array([1.0, np.nan, -3.0, np.inf, 4.0])
    marks = (
        Line(none, none, "nothing"),
        Band(none, none, none, "nothing"),
        Dots(none, none, none, none, "nothing"),
        Histogram(none, none, none, none, "nothing"),
        Histogram(one, none, label="nothing"),
        Line(one, one, "one", thin=True),
        Band(one, one, one, "one"),
        Dots(one, one, one, one, "one"),
        Line(gap, gap, "gap"),
        Band(np.arange(5.0), gap - 1, gap, "gap"),
        Dots(gap, gap, gap - 9, gap, "gap"),
        Histogram(np.arange(6.0), gap, gap - 9, gap, "gap"),
        Rule(-1.0, "below"),
        Rule(np.nan, "nowhere"),
    )
    panels = [
        Panel(f"{xscale} {yscale}", "x", "y", marks, xscale, yscale)
        for xscale in ("linear", "log")
        for yscale in ("linear", "log")
    ]
    return Figure("awkward", "Awkward", "", (*panels, Panel("", "", "", (), "log", "log")))


@pytest.fixture
def heats() -> Figure:
    """A matrix with a hole on linear axes and a landscape on log axes, with marks over both."""
    cells = np.arange(4.0)
    matrix = np.array([[-1.0, 0.0, 1.0], [np.nan, 2.0, 3.0], [0.5, 0.25, -4.0]])
    marks = (
        Line(cells, cells, "over", theory=True),
        Dots(cells, cells, label="dots"),
        Rule(1.5, "rule"),
        Line(cells, cells / 2, "thin", thin=True),
        Heat(cells, cells, matrix, "weight", diverging=True),
    )
    edges = np.array([1.0, 10.0, 100.0])
    landscape = Heat(edges, edges, np.array([[1.0, 10.0], [0.0, 1000.0]]), "loss (nats)", log=True)
    panels = (
        Panel("matrix", "key", "query", marks),
        Panel("landscape", "alpha", "beta", (landscape, Line(edges, edges, "over")), "log", "log"),
    )
    return Figure("heats", "Heats", "Two heat maps.", panels, columns=2)
