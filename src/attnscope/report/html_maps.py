"""Attention maps in the HTML page: a canvas, a slider over steps, its data, its words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from attnscope.markup import fill, inert
from attnscope.report import style
from attnscope.report.attention_maps import LEVELS, AttentionMaps, in_words, levels_of

if TYPE_CHECKING:
    from markupsafe import Markup

RESOLUTION = (
    f"Weights are kept in {LEVELS} steps of their square root: within 0.004 of the recorded ones, "
    "and within 0.0002 near 1/512."
)


def attention_maps(maps: AttentionMaps, folded: bool = False) -> Markup:
    """Return the markup of the maps of one layer; ``maps.js`` draws them."""
    _, rows, heads, _, _ = maps.levels.shape
    return fill(
        "report/maps",
        maps=maps,
        name=f"maps-{maps.name}",
        folded=folded,
        rows=rows,
        heads=heads,
        last=len(maps.steps) - 1,
        words=in_words(maps),
        resolution=RESOLUTION,
        data=_data(maps),
    )


def _data(maps: AttentionMaps) -> Markup:
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
