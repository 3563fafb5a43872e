"""Query/key gradients vanishing: what attention learns from is far smaller than what values get."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.course import course
from attnscope.watched.diagnosis.places import listed

READINGS = ("query_key_gradient_ratio",)
VANISHING = 0.01
"""Gradients of W^Q and W^K below a hundredth of that of W^V: at one learning rate for all, values
make a hundred steps while attention makes one, and stay ahead for the whole run."""
SATURATED = 0.5
"""Softmax is flat at both ends. With less than half of the largest possible entropy it is the end
where attention is one-hot, else that where attention is uniform."""
EARLY = (
    "Near uniform attention the gradient of W^Q is proportional to W^K and the other way round, so "
    "small ones stay small (Li 2023, two stages; Noci et al. 2022). What helps: larger initial W^Q "
    "and W^K; an optimizer that rescales each gradient, such as Adam; residual branches scaled by "
    "one over the square root of depth (Noci et al. 2022)."
)
LATE = (
    "Attention is all but one-hot, where softmax has no slope. What helps: bounding the spectral "
    "norm of W^Q and W^K (sigmaReparam, Zhai et al. 2023), smaller logits at the start, or a "
    "kernel that keeps a gradient there, as the Gaussian one (Song 2024)."
)


def diagnose(tree: xr.DataTree) -> Diagnosis | None:
    """Say so if the ratio of gradient norms has fallen below a hundredth in a layer."""
    ratios = course(tree, "query_key_gradient_ratio", "layer")
    if ratios is None or not ratios.enough:
        return None
    now = ratios.now()
    with np.errstate(invalid="ignore"):
        low = np.flatnonzero(now < VANISHING)
        below = (ratios.values < VANISHING)[:, low].all(axis=1)
    if not low.size:
        return None
    worst = int(low[np.argmin(now[low])])
    where = listed(low.tolist(), "layer", len(now))
    entropies = course(tree, "relative_entropy", "layer", "head")
    spread = np.nan
    if entropies is not None and worst < entropies.values.shape[1]:
        heads = entropies.now()[worst]
        if not np.isnan(heads).all():
            spread = float(np.nanmean(heads))
    evidence = {
        "query/key gradient over value gradient, now": float(now[worst]),
        "query/key gradient over value gradient, at first": float(ratios.values[0, worst]),
    }
    if np.isfinite(spread):
        evidence["entropy over its maximum, mean over heads"] = spread
    return Diagnosis(
        "vanishing",
        f"Gradients of W^Q and W^K vanish in {where}: they are {now[worst]:.1e} times the gradient "
        f"of W^V, so at one learning rate values take {1 / max(now[worst], 1e-300):,.0f} steps "
        "while attention takes one."
        if now[worst] > 0
        else f"Gradients of W^Q and W^K are exactly zero in {where}: attention cannot learn there.",
        ratios.since(below),
        evidence,
        LATE if spread < SATURATED else EARLY,
        worst,
    )
