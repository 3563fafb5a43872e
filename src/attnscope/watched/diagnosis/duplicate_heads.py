"""Duplicate heads: heads of a layer that attend the same way, so one would do."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.diagnosis.uniform import UNIFORM

READINGS = ("head_distance", "distance_to_uniform")
SAME = 1e-3
"""Heads whose attention differs by less than a thousandth. Heads that learned the same thing differ
by more; below it they are the same by construction."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if heads that attend at all attend alike."""
    apart, distances = chart.get("head_distance"), chart.get("distance_to_uniform")
    if apart is None or distances is None or apart.values.shape[1:] != distances.values.shape[1:]:
        return None
    with np.errstate(invalid="ignore"):
        same = (apart.values < SAME)[-3:].all(axis=0) & (distances.now() > UNIFORM)
    places = np.argwhere(same)
    if not len(places):
        return None
    now = apart.values[-1]
    layer, head = (int(i) for i in places[np.argmin(now[same])])
    with np.errstate(invalid="ignore"):
        since = apart.since(apart.values[:, layer, head] < SAME)
    total = int(np.isfinite(now).sum())
    layers = sorted({int(one) for one, _ in places})
    return Diagnosis(
        "duplicate_heads",
        f"{len(places)} of {total} heads have a twin in their layer: head {head} of layer {layer} "
        f"attends as another one does to within {now[layer, head]:.1e}.",
        since,
        {
            "distance to the nearest head": float(now[layer, head]),
            "heads with a twin": float(len(places)),
            "heads": float(total),
        },
        "Heads that start the same get the same gradients and never part: draw W^Q, W^K, W^V and "
        "W^O of each anew, and look for weights that were copied, tiled or tied."
        if since == int(apart.steps[0])
        else "They have become the same while training: prune all but one of each kind, or give "
        "heads dropout of their own.",
        layer,
        head,
        layers=tuple(layers),
    )
