"""When attention begins: the distance to uniform attention of the head that is ahead."""

from __future__ import annotations

from attnscope.probes.attention_shape import distance_to_uniform
from attnscope.watching.moment import Reading
from attnscope.watching.readings.offer import Offer, WatchedModel, per_layer


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the reading of this family.

    Attention of a layer has begun when its first head has left uniform attention. The step at which
    this distance first exceeds a threshold is found afterwards, when the whole course is known.
    """
    reading = Reading(
        "onset_distance",
        per_layer(lambda x: distance_to_uniform(x.weights, x.visible, x.asking).max()[...]),
        ("layer",),
        frozenset({"attention"}),
        meaning="distance to uniform attention of the head that is farthest from it",
    )
    return [Offer(reading, False, watched.lacks_attention)]
