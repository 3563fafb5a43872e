"""Attention sink: most heads of a layer send their attention to one position, whatever is there."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course, median
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.training import training_of

READINGS = ("sink_mass",)
SINK = 0.4
"""Half of the heads of a layer give one position two fifths of their attention or more, averaged
over rows and queries: a word that is looked for stands at another place in every row."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if half of the heads of a layer look at one position."""
    masses = chart.get("sink_mass")
    if masses is None:
        return None
    middle = _middle(masses.values)
    now = Course(masses.steps, middle).now()
    with np.errstate(invalid="ignore"):
        found = np.flatnonzero(now > SINK)
    if not found.size:
        return None
    worst = int(found[np.argmax(now[found])])
    with np.errstate(invalid="ignore"):
        since = masses.since(middle[:, worst] > SINK)
    heads = masses.now()[worst]
    head = int(np.nanargmax(heads))
    from_start = since == int(masses.steps[0])
    said = (
        "It is there from the first step, so it is built in: look for a mask or bias that is added "
        "to one column of the logits, and for a first position whose embedding is far larger than "
        "the others. "
        if from_start
        else "A sink that grows is how heads do nothing: softmax has to put its mass somewhere "
        "(Xiao et al. 2024). The loss rarely suffers, but activations become massive, quantisation "
        "and windows over long texts do. "
    )
    if training_of(chart).architecture.get("query_key_norm"):
        said += "Queries and keys are normalised here, which does not prevent it. "
    said += (
        "Softmax with an extra logit of 0 (off by one), a learned sink logit for each head, or "
        "gated attention take it away (Gu et al. 2025)."
    )
    return Diagnosis(
        "sink",
        f"Attention sink in {listed(found.tolist(), 'layer', len(now))}: half of the heads of "
        f"layer {worst} send {100 * now[worst]:.0f} % of their attention or more to one position, "
        f"head {head} {100 * heads[head]:.0f} %, in whatever row.",
        since,
        {
            "attention to one position, head in the middle": float(now[worst]),
            "attention to one position, strongest head": float(heads[head]),
            "layers with a sink": float(found.size),
        },
        said,
        worst,
        head,
        layers=tuple(found.tolist()),
    )


def _middle(values: np.ndarray) -> np.ndarray:
    """Return the value of the head in the middle of each layer."""
    known = ~np.isnan(values).all(axis=-1)
    return np.where(known, median(np.where(known[..., None], values, 0.0), axis=-1), np.nan)
