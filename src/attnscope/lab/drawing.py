"""Figures for a page that stays open: drawn once, then fed with new numbers.

A figure's structure (panels, labels, kinds of marks) becomes a Bokeh document by the code of the
static report. As long as a slider changes numbers only, nothing but the columns of its data sources
goes to the page, which takes milliseconds where a new document takes half a second.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from bokeh.embed import json_item

from attnscope.experiment import NOW
from attnscope.report import style
from attnscope.report.drawable import drawable, legend
from attnscope.report.figure import Dots, Figure, Line, Panel, Rule
from attnscope.report.glyphs import _thin_groups
from attnscope.report.interactive import layout

Columns = dict[str, Any]


def signature(figure: Figure) -> str:
    """Return a name for everything of a figure but its numbers and its caption."""
    parts = [repr((figure.name, figure.columns))]
    for panel in figure.panels:
        parts.append(repr((panel.title, panel.xlabel, panel.ylabel, panel.xscale, panel.yscale)))
        for mark in panel.marks:
            look = [getattr(mark, name, None) for name in ("color", "theory", "thin")]
            part = repr((type(mark).__name__, mark.label, *look))
            # Thin lines of one label are one glyph, however many they are.
            if not (look[-1] and part == parts[-1]):
                parts.append(part)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def item(figure: Figure) -> dict[str, Any]:
    """Return a figure as a Bokeh document whose data sources have names, for ``embed_item``."""
    column = layout(figure)
    if len(column.children) > 1:
        _fit_to_place(column.children[0])
    grid: Any = column.children[-1]
    for place, (plot, panel) in enumerate(zip(grid.children, figure.panels, strict=True)):
        plot.name = f"p{place}"
        names = [name for name, _ in _sources(figure, panel)]
        for renderer, name in zip(plot.renderers, names, strict=True):
            renderer.data_source.name = f"p{place}-{name}"
    return dict(json_item(column))


def _fit_to_place(strip: Any) -> None:
    """Let the legend have rows by the width of its place, not of the window: two may share it."""
    for sheet in strip.stylesheets:
        sheet.css = sheet.css.replace(
            "@media(max-width:1060px)", "@container(max-width:999px)"
        ).replace("@media(max-width:700px)", "@container(max-width:619px)")


def columns(figure: Figure) -> dict[str, Columns]:
    """Return the columns of every data source of :func:`item`, by its name."""
    return {
        f"p{place}-{name}": data
        for place, panel in enumerate(figure.panels)
        for name, data in _sources(figure, panel)
    }


def packed(values: np.ndarray) -> dict[str, Any]:
    """Return an array as JSON: float32 in base64, and its shape."""
    with np.errstate(over="ignore", under="ignore"):
        compact = np.ascontiguousarray(values, dtype="<f4")
    return {"f32": base64.b64encode(compact.tobytes()).decode(), "shape": list(compact.shape)}


def _sources(figure: Figure, panel: Panel) -> Iterator[tuple[str, Columns]]:
    """Yield name and columns of each source in the order in which the report draws them."""
    marks = drawable(panel).marks
    number = 0
    for mark in marks:
        if isinstance(mark, Rule):
            kind = "now" if mark.label == NOW else "rule"
            yield f"{kind}-{number}", {"at": packed(np.array([mark.at])), "label": [mark.label]}
            number += 1
    for _, lines in _thin_groups(marks, set(legend(figure))):
        yield (
            f"thin-{number}",
            {
                "xs": [packed(line.x) for line in lines],
                "ys": [packed(line.y) for line in lines],
                "label": [line.label for line in lines],
                "color": [style.color(line.color) for line in lines],
            },
        )
        number += 1
    for mark in marks:
        if isinstance(mark, Line | Dots) and not (
            isinstance(mark, Line) and mark.thin and not mark.theory
        ):
            data = {"x": packed(mark.x), "y": packed(mark.y), "label": [mark.label] * len(mark.x)}
            yield f"{type(mark).__name__.lower()}-{number}", data
            number += 1
