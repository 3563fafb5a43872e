"""Diverging: the loss is no number any more, or gives back what it had won."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.course import Course, clock, course, recent, variable

READINGS = ("loss",)
GIVEN_BACK = 0.5
"""A loss that has given back half of what it had won is on its way up, not between two batches."""
OF_FIRST = 0.1
"""A loss that had won nothing has to rise by a tenth of its first value."""
NOISE = 3.0
"""The rise is larger than three times the usual distance of a reading from its neighbours."""
ADVICE = (
    "A smaller learning rate, warm-up or clipped gradients. If attention entropy fell before the "
    "loss rose, the attention logits drive it: bound the spectral norm of W^Q and W^K "
    "(sigmaReparam, Zhai et al. 2023). The guarantee of Song 2024 holds for a step size small "
    "enough to stay in the near-convex region of a suitable start, with many dimensions."
)


def diagnose(tree: xr.DataTree) -> Diagnosis | None:
    """Say so if the loss has become infinite or not a number, or rises for good."""
    array = variable(tree, "loss")
    losses = course(tree, "loss")
    if array is None or losses is None:
        return None
    return _broken(clock(array), array.to_numpy().astype(float), tree) or (
        _rising(losses, tree) if losses.enough else None
    )


def _broken(steps: np.ndarray, values: np.ndarray, tree: xr.DataTree) -> Diagnosis | None:
    finite = np.isfinite(values)
    if not finite.any():
        # All infinite, or a loss that nobody told: only the first is known to be bad.
        if not np.isinf(values).any():
            return None
        at = int(np.flatnonzero(np.isinf(values))[0])
    else:
        infinite = np.flatnonzero(np.isinf(values))
        last = int(np.flatnonzero(finite)[-1])
        lost = [int(infinite[0])] if infinite.size else []
        lost += [last + 1] if last + 1 < len(values) else []
        if not lost:
            return None
        at = min(lost)
    before = values[:at][np.isfinite(values[:at])]
    # It began when the loss last was no higher than at first.
    fine = np.flatnonzero(values[:at] <= before[0]) if before.size else np.empty(0, int)
    since = int(fine[-1]) + 1 if fine.size else at
    told = f" The last loss before it was {before[-1]:.3g}." if before.size else ""
    evidence = {"last finite loss": float(before[-1])} if before.size else {}
    return Diagnosis(
        "diverging",
        f"Training has diverged: the loss is not finite at step {int(steps[at]):,}.{told}",
        int(steps[since]),
        evidence | _updates(tree),
        ADVICE,
    )


def _rising(losses: Course, tree: xr.DataTree) -> Diagnosis | None:
    width = recent(len(losses.values))
    windows = np.lib.stride_tricks.sliding_window_view(losses.values, width)
    smooth = np.median(windows, axis=-1)
    first, lowest, now = float(smooth[0]), float(smooth.min()), float(smooth[-1])
    noise = float(np.median(np.abs(np.diff(losses.values))))
    rise = now - lowest
    if rise <= max(GIVEN_BACK * (first - lowest), OF_FIRST * abs(first), NOISE * noise):
        return None
    # Each median stands for the last of its readings.
    since = int(losses.steps[int(np.flatnonzero(smooth == lowest)[-1]) + width - 1])
    return Diagnosis(
        "diverging",
        f"Training is diverging: the loss is {now:.3g}, was {lowest:.3g} at step {since:,} and "
        f"{first:.3g} at first.",
        since,
        {"loss at first": first, "lowest loss": lowest, "loss now": now} | _updates(tree),
        ADVICE,
    )


def _updates(tree: xr.DataTree) -> dict[str, float]:
    """Return how large steps are for the weights of attention, if that was recorded."""
    updates = course(tree, "update_ratio", "layer", "matrix")
    if updates is None:
        return {}
    largest = updates.values[np.isfinite(updates.values)]
    if not largest.size:
        return {}
    return {"largest step of W^Q, W^K, W^V or W^O over its size": float(largest.max())}
