r"""How alike the positions of a layer have become (Dong 2021, "Attention is not all you need").

States have the shape ``(row, position, width)``; ``real``, shape ``(row, position)``, says which
positions are no padding. Every number is the mean over rows with two positions or more.
"""

from __future__ import annotations

import numpy as np


def residual(states: np.ndarray, real: np.ndarray | None = None) -> float:
    r"""Return :math:`\|X - 1 \bar x^\top\|_F / \|X\|_F`, with the mean position :math:`\bar x`.

    It is 0 when all positions are the same, which is rank one in the sense of Dong 2021, and near 1
    when they have nothing in common. Their residual takes another norm and the best vector for it;
    in this norm the mean is the best one.

    >>> residual(np.array([[[1.0, 0.0], [1.0, 0.0]]]))
    0.0
    """
    states, real, rows = _real(states, real)
    mean = states.sum(axis=1, keepdims=True) / np.maximum(real.sum(axis=1), 1)[:, None, None]
    apart = np.sqrt((((states - mean) * real[..., None]) ** 2).sum(axis=(1, 2)))
    size = np.sqrt((states**2).sum(axis=(1, 2)))
    rows &= size > 0
    return float((apart[rows] / size[rows]).mean()) if rows.any() else float("nan")


def token_similarity(states: np.ndarray, real: np.ndarray | None = None) -> float:
    """Return the mean cosine of two different positions of a row.

    >>> token_similarity(np.array([[[1.0, 0.0], [2.0, 0.0]]]))
    1.0
    """
    states, real, rows = _real(states, real)
    norms = np.sqrt((states**2).sum(axis=-1, keepdims=True))
    units = states / np.where(norms > 0, norms, 1)
    count = real.sum(axis=1)
    # The sum over all pairs is the squared length of the sum, and pairs of one position add 1 each.
    own = (units**2).sum(axis=(1, 2))
    pairs = (units.sum(axis=1) ** 2).sum(axis=-1) - own
    cosines = pairs[rows] / (count[rows] * (count[rows] - 1))
    return float(cosines.mean()) if rows.any() else float("nan")


def _real(states: np.ndarray, real: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if real is None:
        real = np.ones(states.shape[:2], dtype=bool)
    return np.where(real[..., None], states, 0), real, real.sum(axis=1) > 1
