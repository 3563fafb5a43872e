r"""Att-SVM for W = K Qᵀ: the same constraints, with the least *nuclear* norm of W.

Solved by the alternating direction method of multipliers: singular values are shrunk, then the
point is projected onto the constraints, which is a least-distance problem.
"""

from __future__ import annotations

import numpy as np

from attnscope.theory.tarzanagh2023.svm import attention_svm, least_distance

ITERATIONS = 3000
CLOSE = 1e-6
"""Both residuals below this part of ‖W‖ end it."""


def nuclear_svm(tokens: np.ndarray, queries: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the W of least nuclear norm that keeps chosen tokens apart; NaN if none does.

    Args:
        tokens: x, shape ``(input, token, d)``.
        queries: z, shape ``(input, d)``.
        chosen: α.

    Example:
        >>> tokens, queries = np.array([[[2.0, 0.0], [0.0, 0.0]]]), np.array([[1.0, 0.0]])
        >>> print(nuclear_svm(tokens, queries, np.array([0])).round(6))
        [[0.5 0. ]
         [0.  0. ]]
    """
    inputs, count, width = tokens.shape
    features = np.einsum("itd,ie->itde", tokens, queries).reshape(inputs, count, -1)
    start = attention_svm(features, chosen)
    if not start.feasible:
        return np.full((width, width), np.nan)
    apart = features[np.arange(inputs), chosen][:, None] - features
    rows = apart[np.arange(count) != np.asarray(chosen)[:, None]]
    point = start.direction
    push, low = np.zeros_like(point), np.zeros_like(point)
    # The step in units of the solution: a tenth of the largest singular value is shrunk away.
    shrink = 0.1 * float(np.linalg.norm(point.reshape(width, width), 2) or 1.0)
    for _ in range(ITERATIONS):
        left, values, right = np.linalg.svd((point + push).reshape(width, width))
        before, low = low, ((left * np.maximum(values - shrink, 0)) @ right).ravel()
        centre = low - push
        moved = least_distance(rows, 1 - rows @ centre)
        assert moved is not None
        point = centre + moved[0]
        push = push + point - low
        size = float(np.linalg.norm(point))
        if max(np.linalg.norm(point - low), np.linalg.norm(low - before)) < CLOSE * size:
            break
    return np.asarray(point.reshape(width, width))
