"""One head doing all: the others of its layer average over all words."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import recent
from attnscope.watched.diagnosis.training import training_of

READINGS = ("distance_to_uniform",)
SHARE = 0.75
"""One head holds three quarters of what all heads of its layer are away from uniform attention:
three times as much as the others together."""
AWAKE = 0.2
"""The head itself moves a fifth of its attention at least; below that nobody does anything yet."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if a single head of a layer attends, and the others do not."""
    distances = chart.get("distance_to_uniform")
    if distances is None:
        return None
    # The first head to begin is alone for a while: all that stands for "now" has to agree.
    lately = distances.values[-recent(len(distances.steps)) :]
    found = np.flatnonzero(_alone(lately).all(axis=0) & _alone(distances.now()[None])[0])
    if not found.size:
        return None
    now = distances.now()
    shares = _shares(now[None])[0]
    layer = int(found[np.argmax(np.nanmax(shares[found], axis=-1))])
    head = int(np.nanargmax(now[layer]))
    heads = int((~np.isnan(now[layer])).sum())
    lead = distances.values[:, layer]
    # The same head has to have led: another one before it is another story.
    led = np.where(np.isnan(lead), -np.inf, lead).argmax(axis=-1) == head
    since = distances.since(_alone(distances.values)[:, layer] & led)
    others = np.delete(now[layer], head)
    more = f" It is so in {found.size} layers." if found.size > 1 else ""
    return Diagnosis(
        "one_head",
        f"One head does all in layer {layer}: head {head} of {heads} is {now[layer, head]:.2g} "
        f"from uniform attention, and the other{'s' if heads > 2 else ''} {np.nanmax(others):.2g}"
        f"{' at most' if heads > 2 else ''}.{more}",
        since,
        {
            "share of the distance to uniform": float(shares[layer, head]),
            "distance of this head": float(now[layer, head]),
            "largest distance of another head": float(np.nanmax(others)),
            "layers where one head does all": float(found.size),
        },
        _advice(chart),
        layer,
        head,
        layers=tuple(found.tolist()),
    )


def _advice(chart: Chart) -> str:
    training = training_of(chart)
    other = (
        f", and under {training.optimizer} nothing rescales what it gets"
        if training.momentum
        else ""
    )
    return (
        "One head can be all that the task needs: of several, one good start is enough, and the "
        "others are spares (Snell 2021, section 5.2). If capacity is wanted from all, start the "
        "heads differently and larger, since a head near uniform attention gets next to no "
        f"gradient (Li 2023, Noci et al. 2022){other}; else fewer heads do the same."
    )


def _shares(values: np.ndarray) -> np.ndarray:
    """Return each head's share of its layer's distances; NaN where there are none."""
    known = np.where(np.isnan(values), 0.0, values)
    total = known.sum(axis=-1, keepdims=True)
    return np.where(total > 0, known / np.where(total > 0, total, 1.0), np.nan)


def _alone(values: np.ndarray) -> np.ndarray:
    """Return for each reading and layer whether one of several heads is alone."""
    several = (~np.isnan(values)).sum(axis=-1) > 1
    with np.errstate(invalid="ignore"):
        share = np.where(several, _shares(values).max(axis=-1), 0.0)
        lead = np.where(np.isnan(values), 0.0, values).max(axis=-1)
        return np.asarray((share >= SHARE) & (lead >= AWAKE))
