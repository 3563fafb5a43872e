"""The starts of ``song2024.query_only``, and readings by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.trajectory import select
from attnscope.tasks.random_regression import RandomRegression

if TYPE_CHECKING:
    from attnscope.studies.song2024.query_only import QueryOnly

KERNELS = ("softmax", "gaussian")


@dataclass(frozen=True)
class Start:
    """Scales of a start: of W^V, and of W^Q and W^K."""

    value: float
    query: float


STARTS = {
    "W^V 1, W^Q 1": Start(1, 1),
    "W^V 5, W^Q 1": Start(5, 1),
    "W^V 20, W^Q 1": Start(20, 1),
    "W^V 20, W^Q 3": Start(20, 3),
}
UNIT, FIVE, TWENTY, SATURATED = STARTS
CASES = {
    f"{kernel}, {name}": (kernel, start) for name, start in STARTS.items() for kernel in KERNELS
}
SOLVED = 1e-4
"""Relative loss below which a run counts as solved."""
STOP = 1e-8
"""Relative loss at which a run ends."""


def course(tree: xr.DataTree, name: str, kernel: str, start: str) -> np.ndarray:
    """Return readings of a case, runs first; a run that ended early keeps its last ones."""
    values = select(tree, name, f"{kernel}, {start}").to_numpy()
    missing = np.isnan(values).reshape(*values.shape[:2], -1).all(axis=2)
    points = np.where(missing, 0, np.arange(values.shape[1]))
    last = np.maximum.accumulate(points, axis=1)
    return np.asarray(values[np.arange(len(values))[:, None], last])


def speed(study: QueryOnly, tree: xr.DataTree, kernel: str, start: str) -> np.ndarray:
    """Return ‖∂f/∂W^Q‖²/f, the rate at which gradient flow shrinks the loss, runs first."""
    gradient = course(tree, "gradient", kernel, start)[..., 0]
    task = RandomRegression(study.sequences, study.length, study.width)
    sizes = [0.5 * float(task.sample(seed)[1].square().sum()) for seed in range(len(gradient))]
    loss = course(tree, "relative_loss", kernel, start) * np.array(sizes)[:, None]
    return np.asarray(gradient**2 / (loss / STARTS[start].value ** 2))


def final_loss(tree: xr.DataTree, kernel: str, start: str) -> np.ndarray:
    """Return the relative loss at the end of each run."""
    return course(tree, "relative_loss", kernel, start)[:, -1]
