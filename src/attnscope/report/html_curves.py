"""Figures of lines and rules in the HTML page, drawn by a small script of its own.

Bokeh needs a script of a megabyte and some 20 ms for each panel to be written down; a watched run
has dozens of panels of nothing but curves. They are folded, and drawn when they are opened.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from attnscope.markup import fill, inert
from attnscope.report import style
from attnscope.report.drawable import drawable, legend, rule_numbers
from attnscope.report.figure import Figure, Line, Panel, Rule
from attnscope.report.html_overview import listed

if TYPE_CHECKING:
    from markupsafe import Markup


def curves(figure: Figure) -> Markup:
    """Return the place and the data of a figure's panels; ``curves.js`` draws them."""
    columns = max(1, min(figure.columns, len(figure.panels)))
    return fill("report/curves", name=figure.name, columns=columns, data=_data(figure))


def _data(figure: Figure) -> Markup:
    clocks: dict[bytes, int] = {}
    xs: list[list[float | None]] = []
    rules = rule_numbers(figure)

    def clock(x: np.ndarray) -> int:
        """Number the arrays of steps, which most curves share."""
        key = np.asarray(x, dtype=float).tobytes()
        if key not in clocks:
            clocks[key] = len(xs)
            xs.append(listed(np.asarray(x, dtype=float)))
        return clocks[key]

    def panel(given: Panel) -> dict[str, Any]:
        shown = drawable(given)
        return {
            "title": shown.title,
            "xlabel": shown.xlabel,
            "ylabel": shown.ylabel,
            "log": shown.yscale == "log",
            "lines": [
                {"x": clock(mark.x), "y": listed(mark.y), **_look(mark)}
                for mark in shown.marks
                if isinstance(mark, Line)
            ],
            "rules": [
                {
                    "at": mark.at,
                    "label": mark.label,
                    "vertical": mark.vertical,
                    "dash": style.rule_dash(rules.get(mark.label, 0)),
                }
                for mark in shown.marks
                if isinstance(mark, Rule)
            ],
        }

    panels = [panel(given) for given in figure.panels]
    values = {"xs": xs, "panels": panels, "legend": list(legend(figure)), "rule": style.RULE}
    return inert(json.dumps(values, ensure_ascii=False, allow_nan=False))


def _look(line: Line) -> dict[str, Any]:
    return {
        "label": line.label,
        "color": "" if line.theory else style.color(line.color),
        "dash": style.THEORY_DASH if line.theory else (),
        "thin": line.thin,
    }
