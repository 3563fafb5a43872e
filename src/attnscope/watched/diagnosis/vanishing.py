"""Query/key gradients vanishing: attention does not move while values do."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.theory.noci2022 import gradient_ratio_at_depth, gradient_ratio_bound
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.losses import losses_of
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.training import training_of
from attnscope.watched.diagnosis.uniform import UNIFORM

READINGS = ("query_key_gradient_ratio", "distance_to_uniform", "relative_entropy")
VANISHING = 0.01
"""Gradients of W^Q and W^K below a hundredth of that of W^V: at one learning rate for all, values
make a hundred steps while attention makes one, and stay ahead for the whole run."""
STEPS = 0.01
"""The same for the steps themselves: an optimizer that rescales gradients may still move them."""
SATURATED = 0.2
"""Softmax is flat at both ends: where attention is uniform, and where it is one-hot, with less than
a fifth of the largest entropy. Between them a small gradient means that attention is learned."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if gradients and steps of queries and keys are tiny where softmax is flat."""
    ratios = chart.get("query_key_gradient_ratio")
    if ratios is None:
        return None
    now = ratios.now()
    with np.errstate(invalid="ignore"):
        low = now < VANISHING
    moved = steps_ratio(chart)
    if moved is not None and len(moved.values[0]) == len(now):
        with np.errstate(invalid="ignore"):
            low &= ~(moved.now() >= STEPS)
    early, late = _flat(chart, len(now))
    found = np.flatnonzero(low & (early | late))
    if not found.size:
        return None
    worst = int(found[np.argmin(now[found])])
    with np.errstate(invalid="ignore"):
        since = ratios.since(ratios.values[:, worst] < VANISHING)
    where = listed(found.tolist(), "layer", len(now))
    evidence = {
        "query/key gradient over value gradient, now": float(now[worst]),
        "query/key gradient over value gradient, at first": float(ratios.values[0, worst]),
    }
    residuals = chart.get("rank_residual")
    if residuals is not None and len(residuals.values[0]) == len(now):
        bound = float(gradient_ratio_bound(residuals.now()[max(worst - 1, 0)]))
        evidence["what the likeness of positions alone allows"] = bound
        start = float(np.nanmax(residuals.values[0]))
        if worst > 0:
            # Depth alone makes positions alike: what it leaves, and what scaled branches would.
            for said, branch in (("as it is", 1.0), (f"with 1/sqrt({len(now)})", len(now) ** -0.5)):
                ratio = float(gradient_ratio_at_depth(start, worst, branch))
                evidence[f"what {worst} layers allow at the start, residual branches {said}"] = (
                    ratio
                )
    size = (
        f"they are {now[worst]:.1e} times the gradient of W^V, so at one learning rate values take "
        f"{1 / now[worst]:,.0f} steps while attention takes one"
        if now[worst] > 1e-12
        else "they are 0 to the last digit, so attention cannot learn"
    )
    return Diagnosis(
        "vanishing",
        f"Gradients of W^Q and W^K vanish in {where}: {size}. Attention there is "
        f"{'uniform' if early[worst] else 'one-hot'}.",
        since,
        evidence,
        _advice(chart, bool(early[worst])),
        worst,
        layers=tuple(found.tolist()),
    )


def steps_ratio(chart: Chart) -> Course | None:
    """Return the length of steps of W^Q and W^K over that of W^V, per layer."""
    updates, sizes = chart.get("update_ratio"), chart.get("weight_norm")
    if updates is None or sizes is None:
        return None
    both, here, there = np.intersect1d(updates.steps, sizes.steps, return_indices=True)
    moved = updates.values[here] * sizes.values[there]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.sqrt((moved[..., 0] ** 2 + moved[..., 1] ** 2) / 2) / moved[..., 2]
    return Course(both, ratio) if len(both) >= 3 else None


def _flat(chart: Chart, layers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each layer whether its softmax is flat: uniform, or one-hot and not solved."""
    early = late = np.zeros(layers, dtype=bool)
    distances, entropies = chart.get("distance_to_uniform"), chart.get("relative_entropy")
    losses = losses_of(chart)
    with np.errstate(invalid="ignore"):
        if distances is not None and len(distances.values[0]) == layers:
            near = distances.now()
            early = np.where(np.isnan(near), -np.inf, near).max(axis=-1) < UNIFORM
        if entropies is not None and len(entropies.values[0]) == layers:
            spread = entropies.now()
            sharp = np.where(np.isnan(spread), np.inf, spread).max(axis=-1) < SATURATED
            late = sharp & ~(losses is not None and losses.solved)
    return early, late


def _advice(chart: Chart, early: bool) -> str:
    training = training_of(chart)
    if not early:
        return (
            "Attention is all but one-hot, where softmax has no slope. What helps: bounding the "
            "spectral norm of W^Q and W^K (sigmaReparam, Zhai et al. 2023), smaller logits at the "
            "start, or a kernel that keeps a gradient there, as the Gaussian one (Song 2024)."
        )
    said = (
        "Near uniform attention the gradient of W^Q is proportional to W^K and the other way "
        "round, so small ones stay small (Li 2023, two stages; Noci et al. 2022). What helps: "
        "larger initial W^Q and W^K"
    )
    if training.momentum:
        said += (
            "; an optimizer that rescales each gradient, such as Adam in place of "
            f"{training.optimizer}"
        )
    elif training.adaptive:
        eps = training.settings.get("eps")
        said += (
            f"; {training.optimizer} rescales gradients already, so theirs are below its eps"
            f"{f' of {eps:.0e}' if isinstance(eps, float) else ''}: make that smaller"
        )
    else:
        said += "; an optimizer that rescales each gradient, such as Adam"
    layers = chart.layers
    if layers > 4:
        said += f"; residual branches scaled by 1/sqrt({layers}) (Noci et al. 2022)"
    return said + "."
