"""Numbers that say how a weight matrix is shaped."""

from __future__ import annotations

import numpy as np


def stable_rank(matrix: np.ndarray) -> float:
    r"""Return :math:`\|W\|_F^2 / \|W\|_2^2`, between 1 and the rank (Rudelson and Vershynin 2007).

    The squared spectral norm is the largest eigenvalue of the smaller Gram matrix, which is faster
    than singular values. It is NaN for a matrix of zeros, and for one with a number that is not
    finite.

    >>> stable_rank(np.eye(3))
    3.0
    """
    gram = matrix.T @ matrix if matrix.shape[0] > matrix.shape[1] else matrix @ matrix.T
    total = float(np.trace(gram))
    if not np.isfinite(total) or total == 0:
        return float("nan")
    return total / float(np.linalg.eigvalsh(gram)[-1])
