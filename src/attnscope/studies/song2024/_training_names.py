"""Names and published numbers that the training studies of Song 2024 share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.studies.song2024._training_readings import ACCURACY
from attnscope.trajectory import select

KERNELS = ("softmax", "gaussian")
RANDOM = "softmax, random labels"
"""The case whose labels are drawn by a coin."""


@dataclass(frozen=True)
class Published:
    """Test accuracies in Skyformer's table (mean of three seeds), and words for the task.

    Args:
        softmax: accuracy with softmax attention.
        gaussian: accuracy with Gaussian attention, "kernelized attention" there.
        task: what is learned, in words.
        sequences: what is classified.
        bag: the baseline that only counts tokens.
    """

    softmax: float
    gaussian: float
    task: str
    sequences: str
    bag: str


def end_accuracy(tree: xr.DataTree, case: str, *, at: int = -1) -> np.ndarray:
    """Return the accuracy on unseen sequences at the end of each run, by seed."""
    return select(tree, "end_held_out", case).isel(end=at, measure=ACCURACY).to_numpy()


def bag(tree: xr.DataTree) -> float:
    """Return the accuracy of the bag of tokens on the same sequences."""
    return float(tree["theory/bag_accuracy"])
