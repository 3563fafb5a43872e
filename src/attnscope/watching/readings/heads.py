"""Heads beside each other: which do the same, which write nothing, which positions are sinks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from attnscope.probes.attention_heads import floor_of_entropy, logit_scale, nearest_head, received
from attnscope.watching.matrices import Part, Projections, find_projections
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.readings.offer import Layer, Offer, WatchedModel, per_layer

NEEDS: frozenset[Need] = frozenset({"attention"})
HEADS = ("layer", "head")
APART = 5
"""What heads have in common and what they can write changes slowly: without being asked for it is
at every fifth reading."""
RECEIVED = 4096
"""Attention by position is recorded without being asked for if it is no more numbers than this."""


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    first = () if watched.first is None else watched.first.attention
    numbers = sum(w.shape[1] * w.shape[3] for w in first if w.ndim == 4)
    of_attention: tuple[tuple[str, Callable[[Layer], np.ndarray], str], ...] = (
        (
            "sink_mass",
            lambda x: _largest(received(x.weights, x.visible, x.asking)),
            "attention that the position with most of it gets, mean over rows and over queries "
            "that see four keys or more",
        ),
        (
            "head_distance",
            lambda x: nearest_head(x.weights, x.asking),
            "total variation to the head of the same layer that attends most alike",
        ),
        (
            "logit_scale",
            lambda x: logit_scale(x.weights, x.visible, x.asking),
            "norm of the centred logits of a query, mean over queries",
        ),
        (
            "entropy_floor",
            lambda x: floor_of_entropy(x.weights, x.visible, x.asking),
            "least entropy that the logits of a query allow, in nats, mean over queries (Zhai et "
            "al. 2023, for single rows)",
        ),
    )
    by_position = Reading(
        "attention_received",
        per_layer(lambda x: received(x.weights, x.visible, x.asking)),
        ("layer", "head", "position"),
        NEEDS,
        meaning="attention that each position gets, mean over rows and over queries that see four "
        "keys or more",
    )
    return [
        *(
            Offer(
                Reading(name, per_layer(read), HEADS, NEEDS, meaning=meaning),
                name != "entropy_floor",
                watched.lacks_attention,
                1 if name == "sink_mass" else APART,
            )
            for name, read, meaning in of_attention
        ),
        Offer(by_position, 0 < numbers <= RECEIVED, watched.lacks_attention, 4 * APART),
        _strength(watched),
    ]


def _largest(by_position: np.ndarray) -> np.ndarray:
    return np.asarray(by_position.max(axis=-1))


def _strength(watched: WatchedModel) -> Offer:
    layers = find_projections(watched.model, watched.points)
    counts = _heads(watched)
    fits = len(layers) == len(counts) and any(
        count > 0 and {"V", "O"} <= layer.parts.keys()
        for layer, count in zip(layers, counts, strict=False)
    )
    turned = {
        _plain(f"{name}.weight")
        for name, part in watched.model.named_modules()
        if type(part).__name__ == "Conv1D"
    }

    def read(moment: Moment) -> Tensor:
        now = dict(moment.model.named_parameters())
        found = [
            _writes(layer, count, now, turned) for layer, count in zip(layers, counts, strict=True)
        ]
        whole = torch.full((len(found), max(map(len, found))), math.nan, dtype=torch.float64)
        for row, values in zip(whole, found, strict=True):
            row[: len(values)] = values
        return whole

    reading = Reading(
        "head_strength",
        read,
        HEADS,
        meaning="Frobenius norm of W^O W^V of a head: how much of what it reads it can write",
    )
    lacks = "" if fits else "matrices W^V and W^O with a known number of heads, and none was found"
    return Offer(reading, True, watched.lacks_attention or lacks, APART)


def _heads(watched: WatchedModel) -> list[int]:
    """Return the number of heads of every point, from its first weights if they are known."""
    first = () if watched.first is None else watched.first.attention
    if len(first) == len(watched.points):
        return [w.shape[1] if w.ndim == 4 else 0 for w in first]
    return [point.heads for point in watched.points]


def _writes(layer: Projections, heads: int, now: Mapping[str, Tensor], turned: set[str]) -> Tensor:
    r"""Return :math:`\|W^O_h W^V_h\|_F` of every head, from the Gram matrices of both factors.

    :math:`\|O V\|_F^2 = \operatorname{tr}(O^\top O \, V V^\top)`, so only matrices of the size of a
    head are multiplied. With grouped heads several share a value matrix.
    """
    value = _rows(layer.parts.get("V"), now, turned)
    out = _rows(layer.parts.get("O"), now, turned)
    missing = torch.full((max(heads, 1),), math.nan, dtype=torch.float64)
    if value is None or out is None or not heads or out.shape[1] % heads:
        return missing
    size = out.shape[1] // heads
    if value.shape[0] % size or heads % (value.shape[0] // size):
        return missing
    values = value.unflatten(0, (-1, size))
    shared = heads // len(values)
    grams = (values @ values.transpose(-1, -2)).repeat_interleave(shared, dim=0)
    columns = out.unflatten(1, (heads, size)).transpose(0, 1)
    squares = ((columns.transpose(-1, -2) @ columns) * grams).sum(dim=(-1, -2))
    return squares.clamp(min=0).sqrt().cpu().double()


def _rows(part: Part | None, now: Mapping[str, Tensor], turned: set[str]) -> Tensor | None:
    """Return a matrix as ``(out, in)``, whatever its module holds."""
    matrix = None if part is None else part.of(now)
    if part is None or matrix is None:
        return None
    wide = matrix.detach().to(torch.promote_types(matrix.dtype, torch.float32))
    return wide.T if _plain(part.name) in turned else wide


def _plain(name: str) -> str:
    return name.replace("_orig_mod.", "").removeprefix("module.")
