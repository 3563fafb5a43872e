"""How every head spreads its attention: one number for each layer and head."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnscope.probes import attention_shape as shape
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.readings.offer import Layer, Offer, WatchedModel, per_layer

NEEDS: frozenset[Need] = frozenset({"attention"})
HEADS = ("layer", "head")
WEIGHTS = ("layer", "row", "head", "query", "key")
MAPS_BYTES = 2**21
"""Weights are recorded without being asked for if a reading of them is no larger than this."""
RANK_KEYS = 64
"""The effective rank, eigenvalues for each row and head, likewise."""
APART = 20
"""Without being asked for it is at every twentieth reading."""

Read = Callable[[Layer], np.ndarray | None]


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    first = () if watched.first is None else watched.first.attention
    small = bool(first) and sum(w.numel() * w.element_size() for w in first) <= MAPS_BYTES
    short = bool(first) and max((w.shape[-1] for w in first), default=0) <= RANK_KEYS
    usual = {"attention": small, "effective_rank": short, "largest_logit_range": False}
    return [
        Offer(
            reading,
            usual.get(reading.name, True),
            watched.lacks_attention,
            APART if reading.name == "effective_rank" else 1,
        )
        for reading in (_weights(), *_of_heads())
    ]


def _of_heads() -> Iterator[Reading]:
    def head(name: str, read: Read, meaning: str, unit: str = "") -> Reading:
        return Reading(name, per_layer(read), HEADS, NEEDS, unit, meaning)

    yield head(
        "entropy",
        lambda x: shape.entropy(x.weights, x.asking),
        "entropy of the attention of a query, -sum of a ln a, mean over queries",
        "nats",
    )
    yield head(
        "relative_entropy",
        lambda x: shape.relative_entropy(x.weights, x.visible, x.asking),
        "entropy over ln L, with L the number of keys that the query sees; 1 is uniform",
    )
    yield head(
        "max_attention",
        lambda x: shape.largest_weight(x.weights, x.asking),
        "largest weight of a query, mean over queries",
    )
    yield head(
        "distance_to_uniform",
        lambda x: shape.distance_to_uniform(x.weights, x.visible, x.asking),
        "total variation between attention and uniform attention over the keys that are seen",
    )
    yield head(
        "logit_range",
        lambda x: shape.logit_range(x.weights, x.visible, x.asking),
        "largest minus smallest attention logit of a query, mean over queries",
        "nats",
    )
    yield head(
        "largest_logit_range",
        lambda x: shape.logit_range(x.weights, x.visible, x.asking, largest=True),
        "largest minus smallest attention logit, at the query where it is largest",
        "nats",
    )
    yield head(
        "effective_rank",
        lambda x: shape.effective_rank(x.weights, x.asking),
        "exponential of the entropy of the attention matrix's singular values, mean over rows",
    )
    yield replace(mass_on((0,), "mass_first"), meaning="attention to the first word of the row")
    yield head("mass_previous", _diagonal(-1), "attention to the word before the query")
    yield head("mass_self", _diagonal(0), "attention to the query's own position")


def mass_on(positions: Sequence[int], name: str = "") -> Reading:
    """Return the reading of the attention that goes to chosen positions, per layer and head.

    Args:
        positions: 0 is the first word of a row, -1 the last one; padding is not counted.
        name: of the variable; ``mass_on_0_5`` for positions 0 and 5 unless given.
    """
    places = tuple(positions)
    return Reading(
        name or "mass_on_" + "_".join(map(str, places)),
        per_layer(
            lambda x: shape.mass_on(x.weights, shape.positions_among(x.visible, places), x.asking)
        ),
        HEADS,
        NEEDS,
        meaning=f"attention to positions {', '.join(map(str, places))}",
    )


def _diagonal(offset: int) -> Read:
    def read(layer: Layer) -> np.ndarray | None:
        queries, keys = layer.visible.shape[1:]
        if queries != keys:
            return np.full(layer.weights.shape[1], np.nan)
        places = np.broadcast_to(np.eye(queries, k=offset, dtype=bool), layer.visible.shape)
        # The first word has none before it.
        some = layer.asking & (layer.visible & places).any(axis=-1)
        return shape.mass_on(layer.weights, places, some)

    return read


def _weights() -> Reading:
    expected: torch.Size | None = None
    warned = False

    def read(moment: Moment) -> Tensor | None:
        nonlocal expected, warned
        weights = (moment._evaluation or moment.evaluation).attention
        if expected is not None and len(weights) == 1 and weights[0].shape == expected[1:]:
            return weights[0]  # Of a single layer its axis may be left out, and this is fast.
        if not any(w.ndim == 4 for w in weights):
            return None
        value = _joined(weights)
        if expected is None:
            expected = value.shape
        elif value.shape != expected:
            # Without a probe batch the last batch of an epoch is often smaller.
            if not warned:
                warned = True
                warnings.warn(
                    f"attnscope: 'attention' of step {moment.step} has the shape "
                    f"{tuple(value.shape)} and had {tuple(expected)} at first; such steps are NaN. "
                    "A probe batch (probe=...) has one shape throughout.",
                    stacklevel=2,
                )
            return None
        return value

    meaning = "attention weights of every layer"
    return Reading("attention", read, WEIGHTS, NEEDS, meaning=meaning, plain=True, left=True)


def _joined(weights: Sequence[Tensor]) -> Tensor:
    if len(weights) == 1:
        return weights[0].unsqueeze(0)
    shapes = {tuple(w.shape) for w in weights}
    if len(shapes) == 1:
        return torch.stack([w.detach() for w in weights])
    largest = [max(sizes) for sizes in zip(*(s for s in shapes if len(s) == 4), strict=True)]
    like = next(w for w in weights if w.ndim == 4)
    whole = like.new_full((len(weights), *largest), math.nan)
    for place, part in zip(whole, weights, strict=True):
        if part.ndim == 4:
            place[tuple(slice(n) for n in part.shape)] = part.detach()
    return whole
