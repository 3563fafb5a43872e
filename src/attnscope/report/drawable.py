"""What of a figure can be drawn: finite numbers, positive on log axes, in drawing order.

Both renderers draw what these functions return, so that they cannot disagree about a zero on a log
axis, about which mark covers which, or about what the legend lists.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Heat,
    Histogram,
    Line,
    Listed,
    Mark,
    Panel,
    Rule,
)

LEGEND_LIMIT = 14
"""With more labels than this, thin lines keep theirs for the hover and leave the legend."""


def drawable(panel: Panel) -> Panel:
    """Return the panel with float64 arrays in which whatever cannot be drawn is not a number.

    On a log y axis the lower end of a band or an interval that is not positive moves to the
    panel's floor (:func:`floor`), since the interval does reach below everything shown.
    """
    bottom = floor(panel)
    marks = [_drawable(mark, panel, bottom) for mark in panel.marks]
    shown = [
        mark
        for mark in marks
        if not (isinstance(mark, Rule) and np.isnan(_rule_position(mark, panel)))
    ]
    return replace(panel, marks=tuple(sorted(shown, key=_height)))


def floor(panel: Panel) -> float:
    """Return where bars stand: 0, or on a log axis half of the smallest positive height."""
    if panel.yscale == "linear":
        return 0.0
    values = [np.ravel(part) for mark in panel.marks for part in _heights(mark)]
    everything = np.concatenate(values).astype(float) if values else np.empty(0)
    positive = everything[np.isfinite(everything) & (everything > 0)]
    return float(positive.min()) / 2 if positive.size else 0.5


def interval_positions(panel: Panel) -> dict[int, np.ndarray]:
    """Return where each histogram's intervals stand within its bars, by index of the mark.

    Histograms that share bins get their intervals side by side: number ``k`` of ``n`` stands at
    the fraction ``(k + 1) / (n + 1)`` of the bar's width, on the axis's own scale.
    """
    bars = [
        (index, mark)
        for index, mark in enumerate(panel.marks)
        if isinstance(mark, Histogram) and mark.low is not None
    ]
    positions = {}
    for rank, (index, mark) in enumerate(bars, start=1):
        share = rank / (len(bars) + 1)
        edges = np.log(mark.edges) if panel.xscale == "log" else mark.edges
        inside = edges[:-1] + share * np.diff(edges)
        positions[index] = np.exp(inside) if panel.xscale == "log" else inside
    return positions


def legend(figure: Figure) -> dict[str, list[Listed]]:
    """Return the labels of the legend in order of appearance, each with one mark of a kind."""
    every: dict[str, list[Listed]] = {}
    thick: dict[str, list[Listed]] = {}
    for panel in figure.panels:
        for mark in panel.marks:
            if not mark.label or isinstance(mark, Heat):  # its colour bar is its legend
                continue
            _once(every, mark)
            if not (isinstance(mark, Line) and mark.thin and not mark.theory):
                _once(thick, mark)
    return every if len(every) <= LEGEND_LIMIT else thick


def rule_numbers(figure: Figure) -> dict[str, int]:
    """Number the labels of the figure's rules, so that each gets its own dash pattern."""
    labels = [mark.label for p in figure.panels for mark in p.marks if isinstance(mark, Rule)]
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}


def bare(panel: Panel) -> bool:
    """Whether nothing of the panel can be drawn, so that its axes have no range."""
    shown = drawable(panel).marks
    return not any(
        isinstance(mark, Rule) or any(np.isfinite(part).any() for part in _heights(mark))
        for mark in shown
    )


def crowded(panel: Panel) -> bool:
    """Whether the panel's own tick labels need to be slanted to stand side by side."""
    return sum(len(text) + 2 for _, text in panel.xticks) > 36


def has_heat(panel: Panel) -> bool:
    """Whether colours fill the panel, so that what lies over them needs a halo."""
    return any(isinstance(mark, Heat) for mark in panel.marks)


def color_range(mark: Heat) -> tuple[float, float]:
    """Return the values of the first and the last colour of a drawable heat map."""
    low, high = float(np.nanmin(mark.values)), float(np.nanmax(mark.values))
    if mark.diverging:
        high = max(abs(low), abs(high)) if mark.reach is None else mark.reach
        low = -high
    if low < high:
        return low, high
    # One value has the colour in the middle.
    return (low / 2, low * 2) if mark.log else (low - 0.5, high + 0.5)


def cells(mark: Heat) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return left, right, bottom and top of every cell, row after row."""
    rows, columns = np.shape(mark.values)
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    return (
        np.tile(x[:-1], rows),
        np.tile(x[1:], rows),
        np.repeat(y[:-1], columns),
        np.repeat(y[1:], columns),
    )


def _once(entries: dict[str, list[Listed]], mark: Listed) -> None:
    marks = entries.setdefault(mark.label, [])
    if not any(type(known) is type(mark) for known in marks):
        marks.append(mark)


def _height(mark: Mark) -> int:
    """Order of drawing: areas below lines, lines below dots, theory above all."""
    match mark:
        case Heat():
            return -1
        case Band():
            return 0
        case Histogram():
            return 1
        case Rule() | Contour():
            return 2
        case Line(theory=True):
            return 6
        case Line(thin=True):
            return 3
        case Line():
            return 4
        case Dots():
            return 5


def _heights(mark: Mark) -> list[np.ndarray]:
    match mark:
        case Band(low=low, high=high):
            return [low, high]
        case Histogram(heights=y, low=low, high=high) | Dots(y=y, low=low, high=high):
            return [part for part in (y, low, high) if part is not None]
        case Line(y=y) | Heat(y=y) | Contour(y=y):
            return [y]
        case Rule():
            return []


def _rule_position(mark: Rule, panel: Panel) -> float:
    scale = panel.xscale if mark.vertical else panel.yscale
    return float(_clean(np.array([mark.at]), scale == "log")[0])


def _drawable(mark: Mark, panel: Panel, bottom: float) -> Mark:
    xlog, ylog = panel.xscale == "log", panel.yscale == "log"

    def ends(low: np.ndarray | None, high: np.ndarray | None) -> dict[str, Any]:
        if low is None or high is None:
            return {}
        reached = np.where(np.asarray(low) <= 0, bottom, low) if ylog else low
        return {"low": _clean(reached, ylog), "high": _clean(high, ylog)}

    match mark:
        case Rule():
            return mark
        case Line(x=x, y=y):
            _same_length(mark, panel, x=x, y=y)
            return replace(mark, x=_clean(x, xlog), y=_clean(y, ylog))
        case Band(x=x, low=low, high=high):
            _same_length(mark, panel, x=x, low=low, high=high)
            return replace(mark, x=_clean(x, xlog), **ends(low, high))
        case Dots(x=x, y=y, low=low, high=high):
            _same_length(mark, panel, x=x, y=y, low=low, high=high)
            return replace(mark, x=_clean(x, xlog), y=_clean(y, ylog), **ends(low, high))
        case Histogram(edges=edges, heights=heights, low=low, high=high):
            _same_length(mark, panel, right_edges=edges[1:], heights=heights, low=low, high=high)
            bars = replace(mark, edges=_clean(edges, xlog), heights=_clean(heights, ylog))
            return replace(bars, **ends(low, high))
        case Heat(x=x, y=y, values=values):
            _check_heat(mark, panel)
            shown = replace(mark, x=_clean(x, xlog), y=_clean(y, ylog))
            return replace(shown, values=_clean(values, mark.log))
        case Contour(x=x, y=y, values=values):
            _check_contour(mark, panel)
            kept = _clean(values, False)
            return replace(mark, x=_clean(x, xlog), y=_clean(y, ylog), values=kept)


def _clean(values: np.ndarray, log: bool) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    keep = np.isfinite(array)
    if log:
        keep &= array > 0
    return np.where(keep, array, np.nan)


def _same_length(mark: Mark, panel: Panel, **arrays: np.ndarray | None) -> None:
    sizes = {name: np.shape(part) for name, part in arrays.items() if part is not None}
    one_sided = ("low" in sizes) != ("high" in sizes)
    if len(set(sizes.values())) > 1 or any(len(shape) != 1 for shape in sizes.values()):
        found = ", ".join(f"{name} has shape {shape}" for name, shape in sizes.items())
        raise AttnscopeError(
            f"{type(mark).__name__} '{mark.label}' in panel '{panel.title}': {found}; "
            "expected one dimension and equal lengths."
        )
    if one_sided:
        raise AttnscopeError(
            f"{type(mark).__name__} '{mark.label}' in panel '{panel.title}' has one end of an "
            "interval; expected both low and high, or neither."
        )


def _check_heat(mark: Heat, panel: Panel) -> None:
    """Refuse what has no cells or no colours; every sentence names the mark and its panel."""
    place = f"Heat '{mark.label}' in panel '{panel.title}'"
    shape, fitting = np.shape(mark.values), (np.size(mark.y) - 1, np.size(mark.x) - 1)
    if np.ndim(mark.x) != 1 or np.ndim(mark.y) != 1 or shape != fitting or min(fitting) < 1:
        raise AttnscopeError(
            f"{place}: values has shape {shape}, x has shape {np.shape(mark.x)}, y has shape "
            f"{np.shape(mark.y)}; expected (rows, columns), (columns + 1,) and (rows + 1,)."
        )
    _check_rising(place, "edges", mark, panel)
    if mark.log and mark.diverging:
        raise AttnscopeError(
            f"{place}: expected log or diverging colours, not both, as zero has no logarithm."
        )
    if not np.isfinite(_clean(mark.values, mark.log)).any():
        kind = "positive number (its colours are logarithmic)" if mark.log else "finite number"
        raise AttnscopeError(f"{place}: nothing to draw; expected one {kind} or more in values.")


def _check_contour(mark: Contour, panel: Panel) -> None:
    place = f"Contour '{mark.label}' in panel '{panel.title}'"
    shape, fitting = np.shape(mark.values), (np.size(mark.y), np.size(mark.x))
    if np.ndim(mark.x) != 1 or np.ndim(mark.y) != 1 or shape != fitting or min(fitting) < 2:
        raise AttnscopeError(
            f"{place}: values has shape {shape}, x has shape {np.shape(mark.x)}, y has shape "
            f"{np.shape(mark.y)}; expected (rows, columns), (columns,) and (rows,), two or more "
            "of each."
        )
    _check_rising(place, "points", mark, panel)
    if not np.isfinite(np.asarray(mark.levels, dtype=float)).all():
        raise AttnscopeError(f"{place}: levels = {mark.levels}; expected finite numbers.")


def _check_rising(place: str, what: str, mark: Heat | Contour, panel: Panel) -> None:
    for name, places, scale in (("x", mark.x, panel.xscale), ("y", mark.y, panel.yscale)):
        kept = _clean(places, scale == "log")
        if not (np.diff(kept) > 0).all():
            kind = "finite, positive (the axis is logarithmic)" if scale == "log" else "finite"
            raise AttnscopeError(f"{place}: expected the {what} {name} to be {kind} and rising.")
