"""The surfaces of a figure in the HTML page: a canvas each, its data, its words, its buttons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from attnscope.markup import fill, inert
from attnscope.report import style
from attnscope.report.figure import Figure, Surface
from attnscope.report.surfaces import drawable_surface, in_words

if TYPE_CHECKING:
    from markupsafe import Markup

COLORS = 64
"""Steps of the colour bar."""
TURNS = (("left", "◀"), ("right", "▶"), ("up", "▲"), ("down", "▼"), ("reset", "Reset"))


def surfaces(figure: Figure) -> Markup:
    """Return the markup of all surfaces of a figure; ``surface.js`` draws them."""
    return fill(
        "report/surfaces",
        columns=max(1, min(figure.columns, len(figure.surfaces))),
        turns=[(turn, sign, _said(turn)) for turn, sign in TURNS],
        surfaces=[
            (f"surface-{figure.name}-{number}", each.title, in_words(each), _data(each))
            for number, each in enumerate(figure.surfaces)
        ],
    )


def _said(turn: str) -> str:
    return "Turn back to the start" if turn == "reset" else f"Turn {turn}"


def _data(surface: Surface) -> Markup:
    shown = drawable_surface(surface)
    data = shown.surface
    values = {
        "x": _list(data.x),
        "y": _list(data.y),
        "z": [_list(row) for row in data.values],
        "path": [] if data.path is None else [_list(point) for point in data.path],
        "range": [shown.low, shown.high],
        "labels": [surface.xlabel, surface.ylabel, surface.zlabel],
        "colors": style.ramp(diverging=False, size=COLORS),
        "pathColor": style.COLORS[1],
    }
    return inert(json.dumps(values, ensure_ascii=False, allow_nan=False))


def _list(values: np.ndarray) -> list[float | None]:
    """Return numbers in few digits, far finer than a pixel; JSON has no NaN."""
    return [None if not np.isfinite(v) else float(f"{v:.6g}") for v in values]
