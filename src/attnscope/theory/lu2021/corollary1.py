"""Corollary 1 of Lu 2021: the norm of a topic word's embedding is a function of its score."""

from __future__ import annotations

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64


def norm_from_score(score: Numbers, m: Numbers) -> np.ndarray:
    """Embedding norm at a score, ‖v_t‖ = √(2 (s_t + (exp(s_t) - 1)/m)) (Lu 2021, eq 10).

    Both start at zero. Negative scores, which the corollary does not reach, give norm zero.

    >>> norm_from_score([0.0, 1.0], 20).round(4).tolist()
    [0.0, 1.4737]

    Args:
        score: s_t, any shape.
        m: non-topic words in a sentence; for real text :func:`effective_m`.
    """
    score, m = float64(score), _positive(m)
    half_square = score + np.expm1(score) / m
    return np.sqrt(2 * np.maximum(0.0, half_square))


def score_from_norm(norm: Numbers, m: Numbers) -> np.ndarray:
    """Score at an embedding norm: the inverse of :func:`norm_from_score`.

    Solves f(s) = s + (exp(s) - 1)/m = ‖v_t‖²/2. As f is increasing and convex, Newton's method
    started above the root comes down to it without ever crossing it. From f(s) ≥ s (1 + 1/m) and
    f(s) ≥ (exp(s) - 1)/m follow two starting points above the root; the lower is used.

    Args:
        norm: ‖v_t‖ ≥ 0, any shape.
        m: non-topic words in a sentence.
    """
    norm, m = np.broadcast_arrays(float64(norm), _positive(m))
    if (norm < 0).any():
        raise AttnscopeError(f"norm = {norm.min():g}: expected norms of 0 or more.")
    target = norm**2 / 2
    score = np.minimum(target * m / (m + 1), np.log1p(m * target))
    while True:
        excess = score + np.expm1(score) / m - target
        lower = score - excess / (1 + np.exp(score) / m)
        # Rounding alone makes the last iterate rise, or stay where it is. NaN ends the loop too.
        if not (lower < score).any():
            return np.asarray(score)
        score = np.minimum(score, lower)


def _positive(m: Numbers) -> np.ndarray:
    m = float64(m)
    if not (m > 0).all():
        raise AttnscopeError(
            f"m = {m.min():g}: expected more than 0 non-topic words in a sentence."
        )
    return m
