"""Attention maps in the HTML page: a canvas, a slider over steps, its data, its words."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from attnscope.report import style
from attnscope.report.attention_maps import LEVELS, AttentionMaps, in_words, levels_of
from attnscope.report.html_surface import inert

RESOLUTION = (
    f"Weights are kept in {LEVELS} steps of their square root: within 0.004 of the recorded ones, "
    "and within 0.0002 near 1/512."
)


def attention_maps(maps: AttentionMaps, folded: bool = False) -> str:
    """Return the markup of the maps of one layer; ``maps.js`` draws them."""
    name = escape(f"maps-{maps.name}")
    _, rows, heads, _, _ = maps.levels.shape
    chosen = "".join(f'<option value="{head}">head {head}</option>' for head in range(heads))
    several = '<option value="all" selected>all heads</option>' if heads > 1 else ""
    row = ""
    if rows > 1:
        options = "".join(f'<option value="{index}">{index}</option>' for index in range(rows))
        row = f'<label>Row <select data-map="row">{options}</select></label>'
    last = len(maps.steps) - 1
    note = f"{maps.note} " if maps.note else ""
    causal = "The first query is left out: it sees itself alone. " if maps.first_query else ""
    return f"""<details class="card maps" id="{name}"{"" if folded else " open"}>
<summary>{escape(maps.title)}</summary>
<noscript><p>The maps are drawn by a script, which this browser does not run.</p></noscript>
<div class="map-tools" hidden>
<button type="button" data-map="play" aria-pressed="false">Play</button>
<label class="map-step">Step <input type="range" data-map="step" min="0" max="{last}" \
value="{last}" step="1"></label>
<output data-map="said" class="value"></output>
<label>Show <select data-map="head">{several}{chosen}</select></label>
{row}
</div>
<canvas tabindex="0" role="img" aria-label="Attention of {escape(maps.title)}" \
aria-describedby="{name}-read {name}-words"></canvas>
<p class="small map-read" id="{name}-read" role="status"></p>
<p class="soft small" id="{name}-words">{escape(in_words(maps))} Rows of a map are queries, \
columns are keys. {causal}{escape(note)}{RESOLUTION} \
On the map the arrow keys go from cell to cell, and Escape leaves them.</p>
<script type="application/json" data-maps="{name}">{_data(maps)}</script>
</details>"""


def _data(maps: AttentionMaps) -> str:
    values = {
        "steps": maps.steps,
        "shape": maps.levels.shape,
        "queries": maps.queries,
        "keys": maps.keys,
        "firstQuery": maps.first_query,
        "pooled": maps.pooled,
        "levels": LEVELS,
        "top": _top(maps),
        "colors": style.ramp(diverging=False, size=LEVELS + 1),
        "packed": maps.packed(),
    }
    return inert(json.dumps(values, ensure_ascii=False, allow_nan=False))


def _top(maps: AttentionMaps) -> int:
    """Return the level of the last colour; that of uniform attention is in the middle or below."""
    uniform = levels_of(np.array(1 / maps.levels.shape[-1])).item() - 1
    return min(LEVELS + 1, max(int(maps.levels.max()), 1 + 2 * uniform))
