"""The surfaces of a figure in the HTML page: a canvas each, its data, its words, its buttons."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from attnscope.report import style
from attnscope.report.figure import Figure, Surface
from attnscope.report.surfaces import drawable_surface, in_words

COLORS = 64
"""Steps of the colour bar."""
TURNS = (("left", "◀"), ("right", "▶"), ("up", "▲"), ("down", "▼"), ("reset", "Reset"))


def surfaces(figure: Figure) -> str:
    """Return the markup of all surfaces of a figure; ``surface.js`` draws them."""
    columns = max(1, min(figure.columns, len(figure.surfaces)))
    cells = "\n".join(
        _surface(surface, f"surface-{figure.name}-{number}")
        for number, surface in enumerate(figure.surfaces)
    )
    widest = ";max-width:820px" if columns == 1 else ""
    return f'<div class="surfaces" style="--columns:{columns}{widest}">\n{cells}\n</div>'


def inert(text: str) -> str:
    """Return JSON in which no tag can begin or end."""
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _surface(surface: Surface, anchor: str) -> str:
    name, words = escape(anchor), escape(in_words(surface))
    buttons = "".join(
        f'<button type="button" data-turn="{turn}" aria-label="{_said(turn)}">{sign}</button>'
        for turn, sign in TURNS
    )
    return f"""<div class="surface" id="{name}">
<p class="surface-title">{escape(surface.title)}</p>
<canvas tabindex="0" role="img" aria-label="{escape(surface.title)}" \
aria-describedby="{name}-words"></canvas>
<div class="turns" hidden>{buttons}<output class="small" aria-live="off"></output></div>
<p class="soft small" id="{name}-words">{words}</p>
<script type="application/json" data-surface="{name}">{_data(surface)}</script>
</div>"""


def _said(turn: str) -> str:
    return "Turn back to the start" if turn == "reset" else f"Turn {turn}"


def _data(surface: Surface) -> str:
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
