"""The marks of a figure as Bokeh glyphs, each with its hover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.models.renderers.glyph_renderer import GlyphRenderer

from attnscope.report import style
from attnscope.report.drawable import drawable, floor, interval_positions
from attnscope.report.figure import Band, Dots, Histogram, Line, Mark, Panel, Rule


@dataclass
class Canvas:
    """Draws the marks of one panel on one Bokeh plot."""

    plot: Any
    panel: Panel
    rules: dict[str, int]

    def draw(self, listed: set[str]) -> list[tuple[str, list[GlyphRenderer]]]:
        """Draw everything; return label and renderers of what the legend can hide."""
        panel = drawable(self.panel)
        low = [mark for mark in panel.marks if isinstance(mark, Band | Histogram | Rule)]
        top = [mark for mark in panel.marks if isinstance(mark, Line | Dots) and not _is_thin(mark)]
        drawn = [(mark.label, self.mark(mark)) for mark in low]
        # After all bars, whose neighbours would otherwise cover them.
        for index, at in interval_positions(panel).items():
            bars = panel.marks[index]
            assert isinstance(bars, Histogram)
            drawn.append((bars.label, [self._intervals(bars, at)]))
        thin = _thin_groups(panel.marks, listed)
        drawn.extend((label, self._thin_lines(lines)) for label, lines in thin)
        drawn.extend((mark.label, self.mark(mark)) for mark in top)
        return [(label, renderers) for label, renderers in drawn if label in listed]

    def mark(self, mark: Mark) -> list[GlyphRenderer]:
        """Draw one mark, apart from a histogram's intervals."""
        match mark:
            case Line():
                return self._line(mark)
            case Band():
                return self._band(mark)
            case Histogram():
                return self._histogram(mark)
            case Dots():
                return self._dots(mark)
            case Rule():
                return self._rule(mark)

    def _line(self, mark: Line) -> list[GlyphRenderer]:
        source = _source(mark.label, x=mark.x, y=mark.y)
        renderer = self.plot.line("x", "y", source=source, **_line_look(mark))
        self._hover([renderer], self._values("$snap_x", "$snap_y"))
        return [renderer]

    def _thin_lines(self, lines: Sequence[Line]) -> list[GlyphRenderer]:
        source = ColumnDataSource(
            {
                "xs": [_compact(line.x) for line in lines],
                "ys": [_compact(line.y) for line in lines],
                "label": [line.label for line in lines],
                "color": [style.color(line.color) for line in lines],
            }
        )
        renderer = self.plot.multi_line(
            "xs",
            "ys",
            source=source,
            line_color="color",
            line_width=style.THIN_WIDTH,
            line_alpha=style.THIN_ALPHA,
        )
        self._hover([renderer], self._values("$snap_x", "$snap_y"))
        return [renderer]

    def _band(self, mark: Band) -> list[GlyphRenderer]:
        # One polygon per unbroken stretch: Bokeh's own area glyph would bridge the gaps.
        pieces = _finite_runs(mark.x, mark.low, mark.high)
        source = ColumnDataSource(
            {
                "xs": [_compact(np.concatenate([mark.x[s], mark.x[s][::-1]])) for s in pieces],
                "ys": [_compact(np.concatenate([mark.low[s], mark.high[s][::-1]])) for s in pieces],
            }
        )
        return [
            self.plot.patches(
                "xs",
                "ys",
                source=source,
                fill_color=style.color(mark.color),
                fill_alpha=style.BAND_ALPHA,
                line_color=None,
            )
        ]

    def _histogram(self, mark: Histogram) -> list[GlyphRenderer]:
        bars = {"left": mark.edges[:-1], "right": mark.edges[1:], "y": mark.heights}
        ends = {} if mark.low is None else {"low": mark.low, "high": mark.high}
        renderer = self.plot.quad(
            left="left",
            right="right",
            top="y",
            bottom=floor(self.panel),
            source=_source(mark.label, **bars, **ends),
            fill_color=style.color(mark.color),
            fill_alpha=style.BAR_ALPHA,
            line_color=style.color(mark.color),
        )
        rows = [(self.panel.xlabel or "x", "@left{%.5g} to @right{%.5g}")]
        rows += self._values("", "@y")[1:] + _interval_row(mark)
        self._hover([renderer], rows)
        return [renderer]

    def _dots(self, mark: Dots) -> list[GlyphRenderer]:
        ends = {} if mark.low is None else {"low": mark.low, "high": mark.high}
        renderer = self.plot.scatter(
            "x",
            "y",
            source=_source(mark.label, x=mark.x, y=mark.y, **ends),
            marker=style.BOKEH_MARKERS[mark.color % len(style.BOKEH_MARKERS)],
            size=9,
            color=style.color(mark.color),
        )
        self._hover([renderer], self._values("@x", "@y") + _interval_row(mark))
        return [renderer] if mark.low is None else [renderer, self._intervals(mark, mark.x)]

    def _intervals(self, mark: Histogram | Dots, at: np.ndarray) -> GlyphRenderer:
        source = _source(mark.label, x=at, low=mark.low, high=mark.high)
        return self.plot.segment(
            "x",
            "low",
            "x",
            "high",
            source=source,
            line_color=style.color(mark.color),
            line_width=style.INTERVAL_WIDTH,
        )

    def _rule(self, mark: Rule) -> list[GlyphRenderer]:
        draw, axis = (self.plot.vspan, "x") if mark.vertical else (self.plot.hspan, "y")
        renderer = draw(
            "at",
            source=_source(mark.label, at=np.array([mark.at])),
            line_color=style.RULE,
            line_width=1.4,
            line_dash=_dash(style.rule_dash(self.rules.get(mark.label, 0))),
        )
        axis_label = self.panel.xlabel if mark.vertical else self.panel.ylabel
        self._hover([renderer], [(axis_label or axis, "@at{%.5g}")])
        return [renderer]

    def _values(self, x: str, y: str) -> list[tuple[str, str]]:
        return [
            (self.panel.xlabel or "x", f"{x}{{%.5g}}"),
            (self.panel.ylabel or "y", f"{y}{{%.5g}}"),
        ]

    def _hover(self, renderers: list[GlyphRenderer], rows: list[tuple[str, str]]) -> None:
        fields = ("@x", "@y", "@left", "@right", "@low", "@high", "@at", "$snap_x", "$snap_y")
        self.plot.add_tools(
            HoverTool(
                renderers=list(renderers),
                tooltips=[("", "@label"), *rows],
                formatters=dict.fromkeys(fields, "printf"),
                line_policy="nearest",
                visible=False,
            )
        )


def _thin_groups(marks: Sequence[Mark], listed: set[str]) -> list[tuple[str, list[Line]]]:
    """Group thin lines that the legend hides together; each group is one glyph."""
    groups: dict[str, list[Line]] = {}
    for mark in marks:
        if isinstance(mark, Line) and _is_thin(mark):
            groups.setdefault(mark.label if mark.label in listed else "", []).append(mark)
    return list(groups.items())


def _is_thin(mark: Mark) -> bool:
    return isinstance(mark, Line) and mark.thin and not mark.theory


def _line_look(mark: Line) -> dict[str, Any]:
    if mark.theory:
        dash = _dash(style.THEORY_DASH)
        return {"line_color": style.THEORY, "line_width": style.LINE_WIDTH, "line_dash": dash}
    return {
        "line_color": style.color(mark.color),
        "line_width": style.THIN_WIDTH if mark.thin else style.LINE_WIDTH,
        "line_alpha": style.THIN_ALPHA if mark.thin else 1.0,
    }


def _interval_row(mark: Histogram | Dots) -> list[tuple[str, str]]:
    return [] if mark.low is None else [("interval", "@low{%.5g} to @high{%.5g}")]


def _source(label: str, **columns: np.ndarray | None) -> ColumnDataSource:
    data: dict[str, Any] = {
        name: _compact(values) for name, values in columns.items() if values is not None
    }
    size = len(next(iter(data.values())))
    return ColumnDataSource({**data, "label": [label] * size})


def _compact(values: np.ndarray) -> np.ndarray:
    """Halve the page: float32 is far finer than a pixel."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, dtype=np.float32)


def _finite_runs(*arrays: np.ndarray) -> list[slice]:
    finite = np.all([np.isfinite(array) for array in arrays], axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], finite, [False]]).astype(int)))
    return [slice(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True)]


def _dash(pattern: tuple[float, ...]) -> list[int]:
    return [max(1, round(length)) for length in pattern]
