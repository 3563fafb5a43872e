"""The marks of a figure as Bokeh glyphs, each with its hover."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    HoverTool,
    LinearColorMapper,
    LogColorMapper,
    PlainText,
)
from bokeh.models.annotations.labels import Title
from bokeh.models.annotations.legends import ColorBar
from bokeh.models.glyphs import Line as Curve
from bokeh.models.renderers.glyph_renderer import GlyphRenderer

from attnscope.report import style
from attnscope.report.contours import IsoLine, iso_lines
from attnscope.report.drawable import (
    cells,
    color_range,
    drawable,
    floor,
    has_heat,
    interval_positions,
)
from attnscope.report.figure import Band, Contour, Dots, Heat, Histogram, Line, Mark, Panel, Rule


@dataclass
class Canvas:
    """Draws the marks of one panel on one Bokeh plot."""

    plot: Any
    panel: Panel
    rules: dict[str, int]
    lines: list[GlyphRenderer] = field(default_factory=list)
    """Curves share one hover: a tool for each would be half of all that Bokeh writes down."""

    def draw(self, listed: set[str]) -> list[tuple[str, list[GlyphRenderer]]]:
        """Draw everything; return label and renderers of what the legend can hide."""
        panel = drawable(self.panel)
        for mark in panel.marks:
            if isinstance(mark, Heat):
                self.mark(mark)
        low = [mark for mark in panel.marks if isinstance(mark, Band | Histogram | Rule | Contour)]
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
        if self.lines:
            self._hover(self.lines, self._values("$snap_x", "$snap_y"))
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
            case Heat():
                return self._heat(mark)
            case Contour():
                return self._contour(mark)

    def _heat(self, mark: Heat) -> list[GlyphRenderer]:
        mapper = _mapper(mark)
        value = mark.label or "value"
        if self.panel.xscale == self.panel.yscale == "linear" and _even(mark.x) and _even(mark.y):
            renderer = self.plot.image(
                image=[_compact(mark.values)],
                x=mark.x[0],
                y=mark.y[0],
                dw=mark.x[-1] - mark.x[0],
                dh=mark.y[-1] - mark.y[0],
                color_mapper=mapper,
            )
            rows = [*self._values("$x", "$y"), (value, "@image{%.5g}")]
        else:
            # Bokeh stretches an image evenly and looks its cells up evenly: not on a log axis.
            kept = np.isfinite(mark.values).ravel()
            left, right, bottom, top = (side[kept] for side in cells(mark))
            source = {"left": left, "right": right, "bottom": bottom, "top": top}
            source |= {"value": mark.values.ravel()[kept]}
            fill = {"field": "value", "transform": mapper}
            renderer = self.plot.quad(
                left="left",
                right="right",
                bottom="bottom",
                top="top",
                source=ColumnDataSource({side: _compact(part) for side, part in source.items()}),
                fill_color=fill,
                line_color=fill,  # closes the seams between neighbours
                line_width=1.0,
            )
            rows = [
                (self.panel.xlabel or "x", "@left{%.5g} to @right{%.5g}"),
                (self.panel.ylabel or "y", "@bottom{%.5g} to @top{%.5g}"),
                (value, "@value{%.5g}"),
            ]
        self._hover([renderer], rows, named=False)
        bar = ColorBar(
            color_mapper=mapper,
            width=12,
            padding=4,
            bar_line_color=None,
            major_label_text_font_size="12px",
            major_label_text_color=style.INK,
        )
        self.plot.add_layout(bar, "right")
        if mark.label:
            # A title of the bar itself would lie flat above it and be cut off.
            text = PlainText(text="\n".join(textwrap.wrap(mark.label, 46)))
            name = Title(
                text=text,
                align="center",
                text_color=style.INK,
                text_font_size="12px",
                text_font_style="normal",
            )
            self.plot.add_layout(name, "right")
        return [renderer]

    def _contour(self, mark: Contour) -> list[GlyphRenderer]:
        lines = iso_lines(mark, self.panel) or [IsoLine(np.nan, np.full(1, np.nan), np.zeros(1))]
        source = ColumnDataSource(
            {
                "xs": [_compact(line.x) for line in lines],
                "ys": [_compact(line.y) for line in lines],
                "value": [line.level for line in lines],
            }
        )
        width = style.THIN_WIDTH
        halo = self._halo(self.plot.multi_line, "xs", "ys", source=source, width=width - 1.4)
        look = {"line_color": style.CONTOUR, "line_width": width}
        renderer = self.plot.multi_line("xs", "ys", source=source, **look)
        self._hover([renderer], [(mark.label or "level", "@value{%.5g}")], named=False)
        numbered = [line for line in lines if line.numbered]
        if not numbered:
            return [*halo, renderer]
        numbers = self.plot.text(
            x=[line.middle[0] for line in numbered],
            y=[line.middle[1] for line in numbered],
            text=[f"{line.level:.4g}" for line in numbered],
            text_align="center",
            text_baseline="middle",
            text_font_size="11px",
            text_color=style.INK,
            text_outline_color=None,
            background_fill_color=style.HALO,
            background_fill_alpha=0.9,
        )
        return [*halo, renderer, numbers]

    def _line(self, mark: Line) -> list[GlyphRenderer]:
        source, look = _source(mark.label, x=mark.x, y=mark.y), _line_look(mark)
        halo = self._halo(self.plot.line, "x", "y", source=source, width=look["line_width"])
        # Without looks for selected and other lines, which nobody can select here.
        renderer = GlyphRenderer(data_source=source, glyph=Curve(x="x", y="y", **look))
        self.plot.renderers.append(renderer)
        self.lines.append(renderer)
        return [*halo, renderer]

    def _halo(self, draw: Any, *columns: str, source: Any, width: float) -> list[GlyphRenderer]:
        """Draw a pale line below one that lies over a heat map, whose colours may be its own."""
        if not has_heat(self.panel):
            return []
        width += style.HALO_WIDTH
        return [draw(*columns, source=source, line_color=style.HALO, line_width=width)]

    def _thin_lines(self, lines: Sequence[Line]) -> list[GlyphRenderer]:
        source = ColumnDataSource(
            {
                "xs": [_compact(line.x) for line in lines],
                "ys": [_compact(line.y) for line in lines],
                "label": [line.label for line in lines],
                "color": [style.color(line.color) for line in lines],
            }
        )
        halo = self._halo(self.plot.multi_line, "xs", "ys", source=source, width=style.THIN_WIDTH)
        renderer = self.plot.multi_line(
            "xs",
            "ys",
            source=source,
            line_color="color",
            line_width=style.THIN_WIDTH,
            line_alpha=style.THIN_ALPHA,
        )
        self.lines.append(renderer)
        return [*halo, renderer]

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
            fill_color=style.color(mark.color),
            line_color=style.HALO if has_heat(self.panel) else style.color(mark.color),
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
        source = _source(mark.label, at=np.array([mark.at]))
        halo = self._halo(draw, "at", source=source, width=1.4)
        renderer = draw(
            "at",
            source=source,
            line_color=style.RULE,
            line_width=1.4,
            line_dash=_dash(style.rule_dash(self.rules.get(mark.label, 0))),
        )
        axis_label = self.panel.xlabel if mark.vertical else self.panel.ylabel
        self._hover([renderer], [(axis_label or axis, "@at{%.5g}")])
        return [*halo, renderer]

    def _values(self, x: str, y: str) -> list[tuple[str, str]]:
        return [
            (self.panel.xlabel or "x", f"{x}{{%.5g}}"),
            (self.panel.ylabel or "y", f"{y}{{%.5g}}"),
        ]

    def _hover(
        self, renderers: list[GlyphRenderer], rows: list[tuple[str, str]], named: bool = True
    ) -> None:
        columns = (
            "x",
            "y",
            "left",
            "right",
            "bottom",
            "top",
            "low",
            "high",
            "at",
            "value",
            "image",
        )
        fields = [*(f"@{name}" for name in columns), "$x", "$y", "$snap_x", "$snap_y"]
        self.plot.add_tools(
            HoverTool(
                renderers=list(renderers),
                tooltips=[("", "@label"), *rows] if named else rows,
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


def _mapper(mark: Heat) -> LinearColorMapper | LogColorMapper:
    low, high = color_range(mark)
    kind = LogColorMapper if mark.log else LinearColorMapper
    palette, empty = style.ramp(mark.diverging), "rgba(0, 0, 0, 0)"
    return kind(palette=palette, low=low, high=high, nan_color=empty)


def _even(edges: np.ndarray) -> bool:
    steps = np.diff(edges)
    return bool(np.allclose(steps, steps[0], rtol=1e-6, atol=0))


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
