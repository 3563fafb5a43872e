"""Entropy collapsed: every query looks at one word, and the loss no longer falls."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.course import Course, course, recent
from attnscope.watched.diagnosis.places import listed

READINGS = ("relative_entropy",)
COLLAPSED = 0.1
"""A layer whose heads have, on average, less than a tenth of the entropy of uniform attention: of
100 words that a query sees it looks at about 1.6. One sharp head is nothing bad; a whole layer is
what Zhai et al. (2023) call entropy collapse."""
FALLEN = 0.9
"""Collapse is a fault if training suffers: the loss is still more than nine tenths of what it was
when entropy collapsed."""
SOLVED = 0.1
"""With the loss below a tenth of its first value, sharp attention is the solution, not a fault."""
ADVICE = (
    "Entropy falls as the spectral norm of W^K^T W^Q grows (Zhai et al. 2023): their sigmaReparam, "
    "a smaller learning rate or warm-up, and weight decay on W^Q and W^K bound it. A saturated "
    "softmax passes on next to no gradient and can hold training at a bad point. Song 2024 "
    "proposes a Gaussian kernel, whose worst runs are milder, though from a saturated start it has "
    "no gradient either (the study song2024.query_only). A dip that comes back is normal (JoMA, "
    "Tian et al. 2024)."
)


def diagnose(tree: xr.DataTree) -> Diagnosis | None:
    """Say so if a whole layer is one-hot and the loss has not fallen since."""
    entropies = course(tree, "relative_entropy", "layer", "head")
    if entropies is None or not entropies.enough:
        return None
    spread = _mean_of_heads(entropies.values)
    now = Course(entropies.steps, spread).now()
    with np.errstate(invalid="ignore"):
        low = np.flatnonzero(now < COLLAPSED)
        below = (spread[:, low] < COLLAPSED).all(axis=1)
    if not low.size:
        return None
    since = entropies.since(below)
    losses = course(tree, "loss")
    evidence = {
        "entropy over its maximum, now": float(now[low].min()),
        "entropy over its maximum, at first": float(spread[0, low].min()),
    }
    told = ""
    if losses is not None:
        first, then, latest = _levels(losses, since)
        if latest < SOLVED * first or latest < FALLEN * then:
            return None
        evidence |= {"loss when it collapsed": then, "loss now": latest}
        told = f", and the loss has not fallen since ({then:.3g} then, {latest:.3g} now)"
    worst = int(low[np.argmin(now[low])])
    where = listed(low.tolist(), "layer", spread.shape[1])
    return Diagnosis(
        "collapsed",
        f"Attention entropy has collapsed in {where}: its heads have {100 * now[worst]:.2g} % of "
        f"the entropy of uniform attention, so a query looks at one word{told}.",
        since,
        evidence,
        ADVICE,
        worst,
    )


def _mean_of_heads(values: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _levels(losses: Course, since: int) -> tuple[float, float, float]:
    """Return the loss at first, around a step, and now; medians over a few readings each."""
    width = recent(len(losses.steps))
    at = min(int(np.searchsorted(losses.steps, since)), max(0, len(losses.steps) - width))
    then = losses.values[at : at + width]
    return losses.start(), float(np.median(then)), float(losses.now())
