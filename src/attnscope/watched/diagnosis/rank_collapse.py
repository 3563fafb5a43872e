"""Rank collapse: behind some layer all positions of a row are the same, and nothing is learned."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.theory.noci2022 import gradient_ratio_bound, residual_after
from attnscope.watched.chart import Chart
from attnscope.watched.diagnosis.losses import losses_of
from attnscope.watched.diagnosis.training import training_of

READINGS = ("rank_residual", "loss")
ALIKE = 0.02
"""Positions differ by less than a fiftieth of their length. By Noci et al. (2022) the gradient of
queries and keys is then below 1/2500 of that of values."""
LEFT = 0.5
"""More than half of the first loss is left, and it falls no more. A model that takes all positions
for one still learns how frequent each answer is, so a loss that fell a little proves nothing."""
LAYERS = 0.25
"""It is collapse if a quarter of the layers are behind it; one last layer that averages before a
classifier is none."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if positions have become alike in depth while the loss has not fallen."""
    residuals, losses = chart.get("rank_residual"), losses_of(chart)
    if residuals is None or losses is None or len(losses.values) < losses.width:
        return None
    if losses.now < LEFT * losses.first or losses.falling:
        return None
    now = residuals.now()
    with np.errstate(invalid="ignore"):
        alike = np.flatnonzero(now < ALIKE)
    if not alike.size or alike.size < LAYERS * np.isfinite(now).sum():
        return None
    worst = int(alike[np.argmin(now[alike])])
    with np.errstate(invalid="ignore"):
        since = residuals.since(residuals.values[:, worst] < ALIKE)
    start = residuals.values[0]
    depth = int(alike[0])
    allowed = float(gradient_ratio_bound(now[worst]))
    # What residual connections alone would leave, were attention uniform from the first layer on.
    kept = float(residual_after(np.nanmax(start), len(now) - 1))
    return Diagnosis(
        "rank_collapse",
        f"Rank collapse: from layer {depth} of {len(now)} on, all positions of a row are the same "
        f"(they differ by {now[worst]:.1e} of their length behind layer {worst}), and the loss "
        f"does not fall ({losses.first:.3g} at first, {losses.now:.3g} now). Attention has nothing "
        f"to tell apart there, and W^Q and W^K get {allowed:.1e} of the gradient of W^V at most.",
        since,
        {
            "rank residual, now": float(now[worst]),
            "rank residual there, at first": float(start[worst]),
            "layers whose positions are alike": float(alike.size),
            "rank residual that residual connections would leave": kept,
            "query/key gradient over value gradient that it allows": allowed,
            "loss at first": losses.first,
            "loss now": losses.now,
        },
        _advice(chart, bool(start[worst] < kept / 3), len(now)),
        worst,
        layers=tuple(alike.tolist()),
    )


def _advice(chart: Chart, at_start: bool, layers: int) -> str:
    training = training_of(chart)
    said = "Attention averages, and layer by layer all positions become their mean (Dong 2021). "
    if at_start:
        said += (
            "It is so from the start, and faster than residual connections would allow: see "
            "whether every block adds its input to its output. "
        )
    if training.architecture.get("norm_first") is False:
        said += (
            "Norms stand behind the sums here (post-LN), which weakens the residual path from "
            "block to block: put them first (norm_first=True). "
        )
    elif training.architecture.get("norm_first") is not True:
        said += "If norms stand behind the residual sums (post-LN), put them before the blocks. "
    said += (
        f"Scale residual branches by 1/sqrt({layers}) = {layers**-0.5:.2g} (Noci et al. 2022), or "
        "start them at 0 (ReZero, Bachlechner et al. 2021). "
    )
    if training.optimizer:
        said += f"If it came with training, take smaller steps: {training.slower(0)}. "
    return said + "Another optimizer or more time alone will not mend it."
