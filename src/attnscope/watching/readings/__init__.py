"""Readings that have a name, one file a family."""

from __future__ import annotations

from attnscope.watching.readings import (
    activations,
    attention,
    curvature,
    depth,
    embeddings,
    heads,
    lexical,
    onset,
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
    speed,
    embeddings,
    lexical,
    repeated,
    topics,
    curvature,
)


def catalogue(watched: WatchedModel) -> dict[str, Offer]:
    """Return everything that can be named, whether this model has it or not."""
    return {offer.reading.name: offer for family in FAMILIES for offer in family.offers(watched)}
