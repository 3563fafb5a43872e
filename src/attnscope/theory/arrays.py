"""What the closed forms compute on: float64 arrays, from whatever holds the numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

Numbers = ArrayLike | Tensor


def float64(values: Numbers) -> np.ndarray:
    """Return the values as a float64 array; tensors are detached from their graph."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def word_numbers(values: Numbers) -> np.ndarray:
    """Return word ids as an integer array of one axis."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.atleast_1d(np.asarray(values, dtype=np.int64))
