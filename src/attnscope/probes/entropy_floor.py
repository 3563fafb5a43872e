"""The least entropy that the scale of a row of attention logits allows (Zhai et al. 2023).

The formula and its source are in :mod:`attnscope.theory.zhai2023`, which watched models do not
need.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def entropy_floor(scale: ArrayLike, keys: ArrayLike) -> np.ndarray:
    """Return the least entropy of a row of ``keys`` logits with this centred norm, in nats.

    >>> print(f"{entropy_floor(10.0, 64):.11f}")
    0.02920597797
    """
    s = np.asarray(scale, dtype=float)
    t = np.asarray(keys, dtype=float)
    others = np.maximum(t - 1, 1e-300)
    weight = others * np.exp(-s * np.sqrt(t / others))
    # s sqrt(T (T - 1)) beta is s sqrt(T / (T - 1)) times (T - 1) beta.
    floor = np.log1p(weight) + s * np.sqrt(t / others) * weight / (1 + weight)
    return np.asarray(np.where(t > 1, floor, 0.0))
