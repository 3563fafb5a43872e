"""Induction heads forming, a good sign: a head finds what followed the same word before."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart

READINGS = ("induction",)
FORMED = 0.4
"""Attention to the word behind the first occurrence, from which on a head counts as one."""
EARLIER = 0.5
"""At the first reading it had less than half of that."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if the prefix-matching score of a head has risen since the start."""
    scores = chart.get("induction")
    if scores is None:
        return None
    now = scores.values[-1]
    if np.isnan(now).all():
        return None
    layer, head = (int(i) for i in np.unravel_index(np.nanargmax(now), now.shape))
    course = scores.values[:, layer, head]
    if not (now[layer, head] >= FORMED and course[0] < EARLIER * FORMED):
        return None
    since = scores.since(course >= FORMED)
    before = scores.steps[scores.steps < since]
    began = f"between steps {before[-1]:,} and {since:,}" if before.size else f"by step {since:,}"
    evidence = {
        "prefix-matching score, now": float(now[layer, head]),
        "prefix-matching score, at first": float(course[0]),
        "heads above it": float((now >= FORMED).sum()),
    }
    gain = chart.courses.get("repetition_gain")
    told = ""
    if gain is not None and len(gain.values) > 1:
        evidence["loss that a repetition saves, now"] = float(gain.values[-1])
        told = f" A word that comes for the second time costs {gain.values[-1]:.2g} nats less."
    earlier = chart.courses.get("previous_token")
    if earlier is not None and layer > 0:
        below = earlier.values[-1][:layer]
        if np.isfinite(below).any():
            evidence["previous-token score of the best head below"] = float(np.nanmax(below))
    return Diagnosis(
        "induction",
        f"An induction head has formed {began}: head {head} of layer {layer} gives "
        f"{100 * now[layer, head]:.0f} % of its attention to the word that followed the same word "
        f"before, on random words that come twice.{told}",
        since,
        evidence,
        "A good sign: with it in-context learning begins (Olsson et al. 2022). The loss often "
        "falls at this step; do not change the data or the schedule across it.",
        layer,
        head,
        kind="good",
        layers=(layer,),
    )
