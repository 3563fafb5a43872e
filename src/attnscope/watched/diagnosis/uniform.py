"""Attention still uniform: no head of a layer has left the average over all words."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.places import listed

UNIFORM = 0.05
"""Attention closer to uniform than this counts as uniform: less than a twentieth of it, in total
variation, goes elsewhere than an average over all words would send it. Above it attention has
begun."""
READINGS = ("distance_to_uniform",)
ADVICE = (
    "Attention starts after the words are learned (Snell 2021, Li 2023), so it may only need time. "
    "It starts earlier with larger initial W^Q and W^K: the time to onset grows with the logarithm "
    "of one over their size (Li 2023, and the study li2023.onset). If it never starts, more heads "
    "raise the chance that one begins well (Snell 2021, section 5.2), and residual branches scaled "
    "by one over the square root of depth keep the gradients of W^Q and W^K alive (Noci et al. "
    "2022)."
)


def layers_still_uniform(distances: Course) -> np.ndarray:
    """Return for each layer whether all its heads are uniform now."""
    with np.errstate(invalid="ignore"):
        return np.asarray(_ahead(distances.now()) < UNIFORM)


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if all heads of one layer or more have stayed uniform until now."""
    distances = chart.get("distance_to_uniform")
    if distances is None:
        return None
    still = np.flatnonzero(layers_still_uniform(distances))
    if not still.size:
        return None
    now = _ahead(distances.now())[still]
    ahead = _ahead(distances.values)[:, still]
    worst = int(still[np.argmin(now)])
    with np.errstate(invalid="ignore"):
        since = distances.since(~(_ahead(distances.values)[:, worst] >= UNIFORM))
    where = listed(still.tolist(), "layer", distances.values.shape[1])
    steps = int(distances.steps[-1])
    return Diagnosis(
        "uniform",
        f"Attention is still uniform after {steps:,} steps in {where}: no head there is farther "
        f"than {now.max():.2g} from the average over all words it sees, and attention begins "
        f"at {UNIFORM}.",
        since,
        {
            "largest distance to uniform, now": float(now.max()),
            "largest distance to uniform, at first": float(np.nanmax(ahead[0])),
            "layers that are uniform": float(still.size),
        },
        ADVICE,
        worst,
        kind="stage",
        layers=tuple(still.tolist()),
    )


def _ahead(values: np.ndarray) -> np.ndarray:
    """Return the distance of the head that is farthest, NaN for a layer without any."""
    known = np.where(np.isnan(values), -np.inf, values).max(axis=-1)
    return np.where(np.isfinite(known), known, np.nan)
