"""Attention maps over training as data: weights in few bytes, the steps they are of, the words.

A page that can be mailed has room for some megabytes. Weights are kept in 254 steps of their square
root, so that small ones, as those of uniform attention over 512 words, keep their relative size;
steps are thinned out, and in the last resort neighbouring positions are taken together.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnscope.errors import AttnscopeError

LEVELS = 254
"""Levels above 1, which is weight 0; level 0 is a position that is not there."""
TOKENS = 512
"""Longer rows are cut."""
STEPS = 60
"""Steps on the slider at most; more are hard to hit."""
FEWEST_STEPS = 5
"""With fewer steps than this one sees no course, so positions are taken together first."""
ROWS = 4
"""Rows of the probe batch at most."""
PAGE_BYTES = 6 * 2**20
"""What all maps of a page may take in the file."""
OPEN_BYTES = 2**26
"""What all maps of a page may take in the memory of the browser."""


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The attention of one layer over training.

    Args:
        name: link target, such as ``"layer-0"``.
        title: what the layer is called.
        steps: numbers of steps taken, one for each reading.
        levels: shape ``(step, row, head, query, key)``, ``uint8``; made by :func:`levels_of`.
        queries: words of each row that ask, for as many positions as there are queries.
        keys: words of each row that are looked at.
        pooled: positions that one cell stands for, in both directions.
        first_query: position of the first query. In causal attention it is 1: the first word sees
            itself alone, and a row of weight 1 would only spoil the colours.
        note: what was left out, in a sentence or two.
    """

    name: str
    title: str
    steps: tuple[int, ...]
    levels: np.ndarray
    queries: tuple[tuple[str, ...], ...]
    keys: tuple[tuple[str, ...], ...]
    pooled: int = 1
    first_query: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        shape = self.levels.shape
        fitting = (
            self.levels.ndim == 5
            and self.levels.dtype == np.uint8
            and shape[0] == len(self.steps)
            and shape[1] == len(self.queries) == len(self.keys)
            and all(len(words) == shape[3] for words in self.queries)
            and all(len(words) == shape[4] for words in self.keys)
            and min(shape) > 0
        )
        if not fitting:
            raise AttnscopeError(
                f"AttentionMaps '{self.name}': levels has shape {shape} and type "
                f"{self.levels.dtype}, with {len(self.steps)} steps and words for "
                f"{len(self.queries)} and {len(self.keys)} rows; expected (step, row, head, query, "
                "key), uint8, and a word for each query and key of each row."
            )

    def packed(self) -> str:
        """Return the levels compressed (zlib), in base 64."""
        return base64.b64encode(zlib.compress(self.levels.tobytes(), 6)).decode()


def levels_of(weights: np.ndarray) -> np.ndarray:
    """Return weights as levels: ``1 + 254 sqrt(weight)``, rounded; 0 for NaN.

    >>> levels_of(np.array([0.0, 0.25, 1.0, np.nan])).tolist()
    [1, 128, 255, 0]
    """
    known = np.isfinite(weights)
    root = np.sqrt(np.clip(np.where(known, weights, 0.0), 0.0, 1.0))
    return np.where(known, 1 + np.rint(LEVELS * root), 0).astype(np.uint8)


def weights_of(levels: np.ndarray) -> np.ndarray:
    """Return the weights that levels stand for; NaN for 0.

    >>> weights_of(np.array([1, 128, 255], dtype=np.uint8)).round(3).tolist()
    [0.0, 0.25, 1.0]
    """
    return np.where(levels > 0, ((levels.astype(float) - 1) / LEVELS) ** 2, np.nan)


def is_causal(weights: np.ndarray) -> bool:
    """Whether every query looks at itself and what stands before it only, in all maps given.

    Args:
        weights: last axes are query and key; NaN is no weight.
    """
    *_, queries, keys = weights.shape
    if queries != keys or queries < 3:
        return False
    above = np.triu(np.ones((queries, keys), bool), 1)
    return not (np.nan_to_num(weights[..., above]) > 0).any()


def pool(weights: np.ndarray, size: int) -> np.ndarray:
    """Take neighbouring positions together: mean over queries, sum over keys, so rows add up to 1.

    Args:
        weights: last axes are query and key.
        size: positions to be one cell.
    """
    *rest, queries, keys = weights.shape
    room = [(0, 0)] * len(rest)
    padded = np.pad(
        weights, [*room, (0, -queries % size), (0, -keys % size)], constant_values=np.nan
    )
    cells = padded.reshape(*rest, -(-queries // size), size, -(-keys // size), size)
    known = ~np.isnan(cells)
    # A query counts if it is there for some key of the cell.
    asking = known.any(axis=-1).sum(axis=-2)
    total = np.where(known, cells, 0.0).sum(axis=(-3, -1))
    return np.where(asking > 0, total / np.maximum(asking, 1), np.nan)


def thinned(count: int, most: int) -> np.ndarray:
    """Return the indices of at most so many readings, evenly spread, with first and last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.rint(np.linspace(0, count - 1, max(2, most))).astype(int))


def fitted(
    make: Sequence[tuple[AttentionMaps, np.ndarray]], room: int = PAGE_BYTES
) -> list[AttentionMaps]:
    """Return maps that fit a page together.

    Args:
        make: for each layer its maps without levels worth the name, and weights
            ``(step, row, head, query, key)`` to be put in.
        room: bytes that the maps may take in the file.
    """
    if not make:
        return []
    steps = min(STEPS, max(len(weights) for _, weights in make))
    rows = min(ROWS, max(weights.shape[1] for _, weights in make))
    size = 1
    while True:
        if _open_size(make, steps, rows, size) <= OPEN_BYTES:
            maps = [_cut(plain, weights, steps, rows, size) for plain, weights in make]
            if sum(len(part.packed()) for part in maps) <= room:
                return maps
        if rows > 1:
            rows = 1
        elif steps > FEWEST_STEPS:
            steps = max(FEWEST_STEPS, steps // 2)
        elif max(weights.shape[-1] for _, weights in make) > size:
            size *= 2
        else:
            return []


def _open_size(
    make: Sequence[tuple[AttentionMaps, np.ndarray]], steps: int, rows: int, size: int
) -> int:
    return sum(
        min(steps, w.shape[0])
        * min(rows, w.shape[1])
        * w.shape[2]
        * -(-min(TOKENS, w.shape[3]) // size)
        * -(-min(TOKENS, w.shape[4]) // size)
        for _, w in make
    )


def _cut(
    plain: AttentionMaps, weights: np.ndarray, steps: int, rows: int, size: int
) -> AttentionMaps:
    shown = thinned(len(weights), steps)
    kept = weights[shown, :rows, :, :TOKENS, :TOKENS]
    notes = []
    if len(shown) < len(weights):
        notes.append(f"{len(shown)} of {len(weights)} recorded steps")
    if kept.shape[1] < weights.shape[1]:
        notes.append(f"{kept.shape[1]} of {weights.shape[1]} rows of the probe batch")
    if kept.shape[3:] != weights.shape[3:]:
        notes.append(f"the first {TOKENS} of {max(weights.shape[3:])} positions")
    if size > 1:
        kept = pool(kept, size)
        notes.append(f"{size} × {size} positions in one cell, mean over queries and sum over keys")
    note = f"Shown are {'; '.join(notes)}, so that the page stays small." if notes else ""
    return replace(
        plain,
        steps=tuple(plain.steps[index] for index in shown),
        levels=levels_of(kept),
        queries=tuple(_grouped(words[:TOKENS], size) for words in plain.queries[:rows]),
        keys=tuple(_grouped(words[:TOKENS], size) for words in plain.keys[:rows]),
        pooled=size,
        note=note,
    )


def _grouped(words: Sequence[str], size: int) -> tuple[str, ...]:
    if size == 1:
        return tuple(words)
    return tuple(f"{words[at]} …" for at in range(0, len(words), size))


def in_words(maps: AttentionMaps) -> str:
    """Say what the maps show at the last step, for those who cannot see them."""
    _, rows, heads, queries, keys = maps.levels.shape
    text = (
        f"{heads} head{'s' if heads > 1 else ''}, {queries} queries by {keys} keys, "
        f"{len(maps.steps)} steps from {maps.steps[0]:,} to {maps.steps[-1]:,}"
        f"{f', {rows} rows of the probe batch' if rows > 1 else ''}."
    )
    last = weights_of(maps.levels[-1, 0])
    for head in range(min(heads, 8)):
        if np.isnan(last[head]).all():
            continue
        query, key = np.unravel_index(np.nanargmax(last[head]), last[head].shape)
        text += (
            f" Head {head}, at the end: most from position "
            f"{maps.first_query + maps.pooled * query} to "
            f"{maps.pooled * key} ({last[head, query, key]:.2f})."
        )
    return text
