"""No finite loss: it is not a number from the first step on, or nobody told it."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart

READINGS = ("loss",)
ENOUGH = 3
"""Losses that have to be missing before it is said."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if steps were taken and none of their losses is a finite number."""
    course = chart.courses.get("loss")
    if course is None:
        return None
    taken = course.steps > 0
    values = course.values[taken]
    if len(values) < ENOUGH or np.isfinite(values).any():
        return None
    infinite = int(np.isinf(values).sum())
    kind = "infinite" if infinite else "not a number (NaN)"
    broken = _broken(chart)
    if broken is not None:
        told = f" The weights of attention are no numbers either, since step {broken:,}."
        advice = (
            "Training is broken from its start. Look for a logarithm of 0, a division by 0, or a "
            "mask of -inf that label smoothing or a whole masked row multiplies; "
            "torch.autograd.set_detect_anomaly(True) names the operation."
        )
    elif infinite:
        told = " The weights are still finite."
        advice = (
            "Some target has probability 0: classes that are masked with -inf have an infinite "
            "loss under label smoothing. Mask with a large negative number, or leave such classes "
            "out of the smoothing."
        )
    else:
        told = " The weights are finite, so the loss is either not handed to the recorder or wrong."
        advice = (
            "If the loss is computed outside the model (label smoothing, compute_loss_func), hand "
            "it on: scope.step(loss). Without it diverging, spikes and collapse cannot be told."
        )
    return Diagnosis(
        "no_loss",
        f"No loss is known: it is {kind} at all {len(values):,} steps.{told}",
        int(course.steps[taken][0]),
        {"steps without a finite loss": float(len(values)), "of them infinite": float(infinite)},
        advice,
    )


def _broken(chart: Chart) -> int | None:
    """Return the step after which the weights of attention were never finite, if it is so."""
    course = chart.courses.get("weight_norm")
    loss = chart.courses["loss"]
    if course is None:
        return None
    whole = np.isfinite(course.values).any(axis=(1, 2))
    last = int(course.steps[whole][-1]) if whole.any() else -1
    # Readings without any number are left out of a course.
    return last + 1 if last < loss.steps[-1] - 2 * max(1, _pause(course.steps)) else None


def _pause(steps: np.ndarray) -> int:
    return int(np.diff(steps).max()) if len(steps) > 1 else int(steps[0]) if len(steps) else 1
