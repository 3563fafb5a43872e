"""Queries and keys frozen: they get a gradient of exactly 0, or no step, while values move."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.training import training_of
from attnscope.watched.diagnosis.vanishing import SATURATED

READINGS = ("update_ratio",)


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if W^Q and W^K of a layer do not move at all and W^V does."""
    updates = chart.get("update_ratio")
    if updates is None:
        return None
    still = _still(updates.values)
    last = np.asarray(still[-3:].all(axis=0))
    gradients = chart.get("gradient_norm")
    if gradients is not None and gradients.values.shape[1:] == updates.values.shape[1:]:
        # Weight decay alone moves weights that learn nothing.
        last |= _without(gradients.values)[-3:].all(axis=0)
    entropies = chart.get("relative_entropy")
    if entropies is not None and len(entropies.values[0]) == len(last):
        # Where softmax is one-hot its slope is 0 in the digits there are: that is another disease.
        with np.errstate(invalid="ignore"):
            last &= ~(entropies.now().max(axis=-1) < SATURATED)
    found = np.flatnonzero(last)
    if not found.size:
        return None
    worst = int(found[0])
    source = updates if still[-3:, worst].all() else gradients
    assert source is not None
    case = still[:, worst] if source is updates else _without(source.values)[:, worst]
    values = Course(updates.steps, updates.values[:, worst, 2]).now()
    left = [name for name in training_of(chart).left_out if any(k in name for k in ("q", "k"))]
    advice = (
        f"They are in no group of the optimizer: {', '.join(left[:3])}. Give it all parameters."
        if left
        else "Look for .detach(), torch.no_grad() or a hook between the attention weights and W^Q, "
        "W^K, for a mask that leaves one key only, and for a softmax that is computed in integers "
        "or rounded. If they are meant to be fixed, requires_grad_(False) says so and saves time."
    )
    return Diagnosis(
        "frozen",
        f"W^Q and W^K are frozen in {listed(found.tolist(), 'layer', len(last))}: their gradient "
        f"or their step is exactly 0 while W^V moves by {float(values):.1e} of its size a step, so "
        "attention cannot learn.",
        source.since(case),
        {"step of W^V over its size": float(values), "layers": float(found.size)},
        advice,
        worst,
        layers=tuple(found.tolist()),
    )


def _still(updates: np.ndarray) -> np.ndarray:
    """Return for each reading and layer whether W^Q and W^K stand while W^V moves."""
    return np.asarray((updates[..., 0] == 0) & (updates[..., 1] == 0) & (updates[..., 2] > 0))


def _without(gradients: np.ndarray) -> np.ndarray:
    return np.asarray((gradients[..., 0] == 0) & (gradients[..., 1] == 0) & (gradients[..., 2] > 0))
