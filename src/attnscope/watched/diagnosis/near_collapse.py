"""How far from collapse: logits that grow towards the scale at which no entropy is certain."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.theory.zhai2023 import entropy_floor, largest_scale
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.collapsed import COLLAPSED, HALF
from attnscope.watched.diagnosis.losses import losses_of

READINGS = ("logit_scale", "entropy", "relative_entropy", "loss")
AHEAD = 1.0
"""Told if collapse could come within as many steps again as have been taken."""
FALLEN = 0.9
"""Entropy is on its way down if it is below nine tenths of what it was at half of the run."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say how far the nearest layer is from collapse, if it goes there and the loss gains nothing.

    The floor of Zhai et al. for single rows makes it certain that entropy cannot be below a tenth
    of its maximum before logits have grown to a scale S; at the pace of the last readings that
    gives the earliest step.
    """
    scales, entropies = chart.get("logit_scale"), chart.get("entropy")
    relative, losses = chart.get("relative_entropy"), losses_of(chart)
    if scales is None or entropies is None or relative is None or losses is None:
        return None
    if len(losses.values) < losses.width or losses.solved or losses.falling:
        return None
    found = [
        each
        for layer in range(relative.values.shape[1])
        if (each := _layer(scales, entropies, relative, layer)) is not None
    ]
    if not found:
        return None
    steps, layer, spread, scale, limit, keys, since = min(found)
    certain = float(entropy_floor(scale, keys) / np.log(keys))
    if scale < limit:
        far = (
            f"from {limit:.3g} on, {limit / scale:.2g} times as much, not even a tenth is. At the "
            f"pace of the last readings that is {steps:,.0f} steps away."
        )
    else:
        far = (
            f"they have passed {limit:.3g}, up to which a tenth is, and grow: their size keeps "
            "attention from collapse no longer."
        )
    return Diagnosis(
        "near_collapse",
        f"Attention of layer {layer} goes towards entropy collapse: its heads have "
        f"{100 * spread:.2g} % of the entropy of uniform attention, falling, and the loss gains "
        f"nothing by it. Logits of norm {scale:.3g} over {keys:.0f} keys make "
        f"{100 * certain:.2g} % certain; {far}",
        since,
        {
            "entropy over its maximum, now": spread,
            "norm of a query's logits": scale,
            "norm from which on collapse is possible": limit,
            "steps until then": float(steps),
        },
        "Lower the learning rate of W^Q and W^K, or bound their norm with sigmaReparam "
        "(attnscope.models.sigma_reparam, Zhai et al. 2023), before it is there: a collapsed "
        "softmax passes on next to no gradient.",
        layer,
        kind="stage",
        layers=(layer,),
    )


def _layer(
    scales: Course, entropies: Course, relative: Course, layer: int
) -> tuple[float, int, float, float, float, float, int] | None:
    """Return steps until collapse is possible, and what that rests on; ``None`` if it is far."""
    held = [each.values[:, layer] for each in (scales, entropies, relative)]
    if not all(np.isfinite(values).any(axis=-1).all() for values in held):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.nanmedian(entropies.values[:3, layer] / relative.values[:3, layer])
    spreads = np.nanmean(relative.values[:, layer], axis=-1)
    spread = float(Course(relative.steps, spreads).now())
    earlier = float(spreads[len(spreads) // 2])
    if not (np.isfinite(lengths) and COLLAPSED <= spread < min(HALF, FALLEN * earlier)):
        return None
    keys = float(np.exp(lengths))
    if keys <= 2:
        return None
    sizes = np.nanmedian(scales.values[:, layer], axis=-1)
    half = len(sizes) // 2
    pace = np.polyfit(scales.steps[half:], sizes[half:], 1)[0] if len(sizes) - half > 2 else 0.0
    scale, limit = float(sizes[-1]), largest_scale(COLLAPSED * np.log(keys), keys)
    if not (pace > 0 and scale > 0):
        return None
    steps = max(0.0, (limit - scale) / pace)
    if steps > AHEAD * scales.steps[-1]:
        return None
    since = Course(relative.steps, spreads).since(spreads < HALF)
    return float(np.ceil(steps)), layer, spread, scale, limit, keys, since
