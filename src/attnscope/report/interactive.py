"""A figure drawn with Bokeh: hover for values, click the legend to hide, pan, zoom, reset.

One legend above the panels lists each label once and hides it in all panels at a click. Panels
stand side by side where there is room and below each other on a phone. Texts are given to Bokeh as
plain text, so that a word such as ``$$x$$`` is not taken for a formula.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from bokeh.models import (
    Column,
    DataRange1d,
    FixedTicker,
    InlineStyleSheet,
    PlainText,
    Range1d,
    Row,
)
from bokeh.models.annotations.labels import Title
from bokeh.models.annotations.legends import Legend, LegendItem
from bokeh.models.renderers.glyph_renderer import GlyphRenderer
from bokeh.plotting import figure as bokeh_figure

from attnscope.report import style
from attnscope.report.drawable import bare, crowded, has_heat, legend, rule_numbers
from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Histogram,
    Line,
    Listed,
    Panel,
    Rule,
)
from attnscope.report.glyphs import Canvas

PANEL_HEIGHT = 340
LEGEND_ROW = 24
TOOLS = "pan,wheel_zoom,box_zoom,reset,save"
NOTHING = np.array([np.nan])


def layout(figure: Figure) -> Column:
    """Return the Bokeh layout of a figure: the legend and the panels."""
    listed = legend(figure)
    rules = rule_numbers(figure)
    shown: dict[str, list[GlyphRenderer]] = {label: [] for label in listed}
    plots = []
    for panel in figure.panels:
        canvas = Canvas(_axes(panel), panel, rules)
        for label, renderers in canvas.draw(set(listed)):
            shown.setdefault(label, []).extend(renderers)
        plots.append(canvas.plot)
    columns = max(1, min(figure.columns, len(plots)))
    grid = Row(children=plots, sizing_mode="stretch_width", stylesheets=[_grid_css(columns)])
    children = [_legend_strip(listed, shown, rules), grid] if listed else [grid]
    widest = None if columns > 1 else 820
    return Column(children=children, sizing_mode="stretch_width", max_width=widest)


def _axes(panel: Panel) -> Any:
    plot = bokeh_figure(
        height=PANEL_HEIGHT,
        min_width=240,
        sizing_mode="stretch_width",
        x_axis_type=panel.xscale,
        y_axis_type=panel.yscale,
        tools=TOOLS,
        toolbar_location="below",
    )
    if bare(panel):  # Bokeh would complain about axes without a range and plots without glyphs.
        plot.x_range = plot.y_range = Range1d(start=1, end=10)
        plot.line([], [])
    if has_heat(panel):
        plot.x_range, plot.y_range = DataRange1d(range_padding=0), DataRange1d(range_padding=0)
    plot.toolbar.logo = None
    css = ":host{margin-top:6px} @media print{:host{display:none !important}}"
    plot.toolbar.stylesheets = [InlineStyleSheet(css=css)]
    plot.title = Title(text=_plain(panel.title, 46), text_color=style.INK, text_font_size="14px")
    for axis, text in ((plot.xaxis[0], panel.xlabel), (plot.yaxis[0], panel.ylabel)):
        axis.axis_label = _plain(text, 46)
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.axis_label_text_color = axis.major_label_text_color = style.INK
        axis.minor_tick_line_color = None
    plot.grid.grid_line_color = style.GRID
    plot.outline_line_color = style.GRID
    for each, ticks in ((plot.xaxis, panel.xticks), (plot.yaxis, panel.yticks)):
        if ticks:
            each.ticker = FixedTicker(ticks=[float(at) for at, _ in ticks])
            each.major_label_overrides = {float(at): PlainText(text=text) for at, text in ticks}
    if crowded(panel):
        plot.xaxis.major_label_orientation = math.pi / 5
    return plot


def _legend_strip(
    listed: dict[str, list[Listed]],
    shown: dict[str, list[GlyphRenderer]],
    rules: dict[str, int],
) -> Any:
    """Return a plot that is nothing but a legend, one entry per label, for all panels."""
    strip = bokeh_figure(
        height=LEGEND_ROW,
        sizing_mode="stretch_width",
        tools="",
        toolbar_location=None,
        x_range=Range1d(start=0, end=1),
        y_range=Range1d(start=0, end=1),
        min_border=0,
        outline_line_color=None,
        stylesheets=[_strip_css(listed)],
    )
    strip.axis.visible = False
    strip.grid.visible = False
    canvas = Canvas(strip, Panel("", "", "", ()), rules)
    items = []
    for label, marks in listed.items():
        samples = [renderer for mark in marks for renderer in canvas.mark(_sample(mark))]
        items.append(LegendItem(label={"value": label}, renderers=samples + shown[label]))
    strip.tools = []
    strip.add_layout(
        Legend(
            items=items,
            click_policy="hide",
            location="top_left",
            margin=0,
            spacing=4,
            glyph_height=18,
            glyph_width=26,
            border_line_color=None,
            label_text_font_size="13px",
            label_text_color=style.INK,
            label_height=18,
            stylesheets=[
                InlineStyleSheet(
                    css=":host{width:100%}"
                    ".bk-grid{display:flex !important;flex-wrap:wrap;width:auto !important;"
                    "column-gap:16px !important}"
                    ".bk-label{white-space:pre-wrap !important}"
                )
            ],
        )
    )
    return strip


def _sample(mark: Listed) -> Listed:
    """Return the mark without data, for its look alone."""
    match mark:
        case Line():
            return replace(mark, x=NOTHING, y=NOTHING)
        case Band():
            return replace(mark, x=np.zeros(2), low=np.zeros(2), high=np.zeros(2))
        case Histogram():
            return replace(mark, edges=np.full(2, np.nan), heights=NOTHING, low=None, high=None)
        case Dots():
            return replace(mark, x=NOTHING, y=NOTHING, low=None, high=None)
        case Rule():
            return replace(mark, at=math.nan, vertical=False)
        case Contour():
            spots = np.arange(2.0)
            return replace(mark, x=spots, y=spots, values=np.full((2, 2), np.nan), levels=())


def _strip_css(labels: Iterable[str]) -> InlineStyleSheet:
    """Give the strip as many rows as its entries need at the widths of a phone, tablet, screen."""
    rules = []
    for limit, width in ((None, 1000), (1060, 620), (700, 320)):
        rows, room = 1, float(width)
        for label in labels:
            need = min(46 + 6.8 * len(label), width)
            if need > room:
                rows, room = rows + 1, float(width)
            room -= need
        pixels = rows * LEGEND_ROW + 4
        rule = f":host{{height:{pixels}px !important;flex-basis:{pixels}px !important}}"
        rules.append(rule if limit is None else f"@media(max-width:{limit}px){{{rule}}}")
    return InlineStyleSheet(css="".join(rules))


def _grid_css(columns: int) -> InlineStyleSheet:
    """Lay out at most ``columns`` panels in a row, none narrower than 300 px or the screen."""
    share = f"calc((100% - {columns - 1} * 12px) / {columns})"
    return InlineStyleSheet(
        css=":host{display:grid !important;gap:12px !important;"
        f"grid-template-columns:repeat(auto-fit,minmax(min(100%,max(300px,{share})),1fr))}}"
    )


def _plain(text: str, width: int) -> PlainText:
    return PlainText(text="\n".join(textwrap.wrap(text, width)))
