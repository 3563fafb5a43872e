"""From a watched run to the attention maps of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnscope.report.attention_maps import TOKENS, AttentionMaps, fitted, is_causal
from attnscope.watched.course import clock, variable

AXES = ("layer", "row", "head", "query", "key")


def maps_of(tree: xr.DataTree, spec: Mapping[str, Any]) -> list[AttentionMaps]:
    """Return the attention of every layer, small enough for a page; empty if none was recorded."""
    array = variable(tree, "attention", *AXES)
    if array is None:
        array = variable(tree, "attention", *AXES[1:])
        if array is None:
            return []
        array = array.expand_dims("layer", 1)
    steps = clock(array)
    names = spec.get("layers", [])
    make = []
    for layer in range(array.shape[1]):
        weights = array.isel({array.dims[1]: layer}).to_numpy()
        made = _layer(weights, steps)
        if made is None:
            continue
        kept, weights = made
        title = f"Layer {layer}" + (f": {names[layer]}" if layer < len(names) else "")
        rows, _, queries, keys = weights.shape[1:]
        first = 1 if is_causal(weights) else 0
        plain = AttentionMaps(
            f"layer-{layer}",
            title,
            kept,
            np.zeros((*weights.shape[:3], queries - first, keys), np.uint8),
            tuple(_words(spec, row, queries)[first:] for row in range(rows)),
            tuple(_words(spec, row, keys) for row in range(rows)),
            first_query=first,
        )
        make.append((plain, weights[..., first:, :]))
    return fitted(make)


def _layer(weights: np.ndarray, steps: np.ndarray) -> tuple[tuple[int, ...], np.ndarray] | None:
    """Return steps and weights without what is nowhere there: steps, heads, positions."""
    known = ~np.isnan(weights)
    weights = weights[known.any(axis=(1, 2, 3, 4)) & np.isfinite(steps)]
    if not weights.size:
        return None
    times = steps[known.any(axis=(1, 2, 3, 4)) & np.isfinite(steps)]
    there = ~np.isnan(weights[-1])
    rows, heads, queries, keys = (
        int(np.flatnonzero(there.any(axis=other))[-1]) + 1
        for other in ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    )
    return tuple(int(t) for t in times), weights[:, :rows, :heads, :queries, :keys]


def _words(spec: Mapping[str, Any], row: int, count: int) -> tuple[str, ...]:
    """Return words for positions: text if there is some, else word ids, else positions."""
    given = _row(spec.get("tokens"), row)
    if given is None or len(given) != count:
        names = {number: name for name, number in (spec.get("words") or {}).items()}
        ids = _row(spec.get("ids"), row)
        given = None if ids is None else [names.get(number, number) for number in ids]
    if given is None or len(given) != count:
        return tuple(str(position) for position in range(count))
    return tuple(str(word)[:TOKENS] for word in given)


def _row(table: object, row: int) -> Sequence[Any] | None:
    if not isinstance(table, Sequence) or isinstance(table, str) or row >= len(table):
        return None
    found = table[row]
    return found if isinstance(found, Sequence) and not isinstance(found, str) else None
