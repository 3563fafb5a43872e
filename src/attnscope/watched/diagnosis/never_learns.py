"""A layer that never learns: its weights stand still while those of the others move."""

from __future__ import annotations

import re

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import median
from attnscope.watched.diagnosis.training import training_of

READINGS = ("learning_speed",)
STILL = 1e-3
"""A block that moves a thousand times slower, relative to its size, than the one in the middle."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if a numbered block has not moved since the start."""
    speeds = chart.get("learning_speed")
    names = list(chart.spec.get("blocks", ()))
    if speeds is None or speeds.values.shape[1] != len(names):
        return None
    values = np.where(np.isfinite(speeds.values), speeds.values, np.nan)
    with np.errstate(invalid="ignore"):
        middle = median(values, axis=1)
        still = values < STILL * middle[:, None]
    moving = middle > 0
    if moving.sum() < 3:
        return None
    numbered = np.array([bool(re.search(r"(^|\.)\d+$", name)) for name in names])
    found = np.flatnonzero(still[moving].all(axis=0) & numbered)
    if not found.size or found.size == numbered.sum():
        return None
    worst = int(found[0])
    block = names[worst]
    also = [names[i] for i in np.flatnonzero(still[moving].all(axis=0) & ~numbered)]
    left = [name for name in training_of(chart).left_out if block in name]
    if left:
        cause = f" The optimizer does not hold its parameters ({left[0]} and others)."
        advice = (
            "Give the optimizer all parameters: Optimizer(model.parameters()), or look at the "
            "filter that made its groups. Blocks in a plain list instead of nn.ModuleList are "
            "missing too."
        )
    else:
        below = f" Neither do {', '.join(also[:3])}." if also else ""
        cause = f" The optimizer holds its parameters, but they get no gradient.{below}"
        advice = (
            "Look for .detach(), torch.no_grad() or .data behind this block: everything below it "
            "stands still too. With activation checkpointing use_reentrant=False. If it is meant "
            "to be fixed, requires_grad_(False) says so and saves time."
        )
    fastest = float(np.nanmedian(middle[moving]))
    layers = _layers(chart, [names[i] for i in found])
    told = (
        f"Blocks {', '.join(names[i] for i in found)} never learn"
        if found.size > 1
        else (f"Block {block} never learns")
    )
    return Diagnosis(
        "never_learns",
        f"{told}: its weights move by {np.nanmedian(values[moving][:, worst]):.1e} of their size a "
        f"step, those of a block in the middle by {fastest:.1e}.{cause}",
        0,
        {
            "step over size": float(np.nanmedian(values[moving][:, worst])),
            "step over size, block in the middle": fastest,
            "blocks that stand still": float(found.size),
        },
        advice,
        layers[0] if layers else None,
        layers=tuple(layers),
    )


def _layers(chart: Chart, blocks: list[str]) -> list[int]:
    """Return the numbers of the attention layers in some blocks."""
    return [
        number
        for number, name in enumerate(chart.spec.get("layers", ()))
        if any(name == block or name.startswith(f"{block}.") for block in blocks)
    ]
