"""Readings that have a name, one file a family."""

from __future__ import annotations

from dataclasses import replace

from attnscope.watching.matrices import find_projections
from attnscope.watching.readings import (
    activations,
    attention,
    curvature,
    depth,
    embeddings,
    heads,
    lexical,
    onset,
    rank_growth,
    repeated,
    speed,
    topics,
    weights,
)
from attnscope.watching.readings.offer import Offer, WatchedModel

FAMILIES = (
    attention,
    heads,
    onset,
    depth,
    activations,
    weights,
    rank_growth,
    speed,
    embeddings,
    lexical,
    repeated,
    topics,
    curvature,
)


def catalogue(watched: WatchedModel) -> dict[str, Offer]:
    """Return everything that can be named, whether this model has it or not."""
    matrices = [layer.name for layer in find_projections(watched.model, watched.points)]
    labels = {
        "layer": [point.name for point in watched.points] or matrices,
        "weight_layer": matrices,
        "block": list(weights.blocks(watched.model)),
        "word": list(watched.words),
    }
    return {
        offer.reading.name: replace(offer, labels=labels)
        for family in FAMILIES
        for offer in family.offers(watched)
    }
