"""Dead heads: whatever they attend to, they write next to nothing."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import median
from attnscope.watched.diagnosis.training import training_of

READINGS = ("head_strength",)
DEAD = 0.05
"""A head whose W^O W^V is a twentieth of that of the head in the middle of its layer."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if heads of a layer cannot write what they read."""
    strengths = chart.get("head_strength")
    if strengths is None:
        return None
    ratios = _ratios(strengths.values)
    with np.errstate(invalid="ignore"):
        # Alive for a moment is alive: all recent readings have to agree.
        dead = (ratios[-3:] < DEAD).all(axis=0)
    places = np.argwhere(dead)
    if not len(places):
        return None
    now = ratios[-1]
    layer, head = (int(i) for i in places[np.argmin(now[dead])])
    with np.errstate(invalid="ignore"):
        since = strengths.since(ratios[:, layer, head] < DEAD)
    total = int(np.isfinite(now).sum())
    named = ", ".join(f"{one}.{other}" for one, other in places[:6])
    more = f" and {len(places) - 6} more" if len(places) > 6 else ""
    training = training_of(chart)
    advice = (
        "W^V and W^O of such a head are both next to 0, and each gets its gradient through the "
        "other, so it does not come back. "
    )
    if since == int(strengths.steps[0]):
        advice += "It is so from the start: start W^V at its usual size; W^O alone may start at 0. "
    elif training.settings.get("weight_decay"):
        advice += (
            f"Weight decay ({training.settings['weight_decay']:g}) takes away what is not used: "
            "less of it on W^V and W^O keeps spares. "
        )
    advice += "If the loss is as good as wanted, prune them: fewer heads do the same."
    return Diagnosis(
        "dead_heads",
        f"{len(places)} of {total} heads {'is' if len(places) == 1 else 'are'} dead "
        f"(layer.head {named}{more}): head {head} of layer {layer} writes "
        f"{100 * now[layer, head]:.2g} % of what the head in the middle of its layer can write.",
        since,
        {
            "strength over that of the head in the middle": float(now[layer, head]),
            "dead heads": float(len(places)),
            "heads": float(total),
        },
        advice,
        layer,
        head,
        layers=tuple(sorted({int(one) for one, _ in places})),
    )


def _ratios(values: np.ndarray) -> np.ndarray:
    """Return each head's strength over that of the head in the middle of its layer."""
    several = (~np.isnan(values)).sum(axis=-1, keepdims=True) > 1
    known = np.where(several, values, 1.0)
    middle = median(known, axis=-1, keepdims=True)
    return np.where(several & (middle > 0), values / np.where(middle > 0, middle, 1.0), np.nan)
