"""Theorem 1 of Lu 2021: the identity between a topic word's score and its embedding.

    [ s_t + exp(s_t) ⟨1/Z(χ∖t)⟩ ]_{t0}^{t1} = [ ½ ‖v_t - ⟨v̄(χ∖t)⟩‖² ]_{t0}^{t1}        (eq 9)

⟨·⟩ is the mean over Ψ_t, the training sentences that hold t. The paper takes both means as
constant (Assumption 1). Here they may be held at their initial values or follow the run.
"""

from __future__ import annotations

import numpy as np

from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.lu2021.psi import PsiAverages


def predicted_norm(
    scores: Numbers,
    initial_scores: Numbers,
    initial_embeddings: Numbers,
    initial: PsiAverages,
    now: PsiAverages | None = None,
) -> np.ndarray:
    """Distance ‖v_t - ⟨v̄(χ∖t)⟩‖ that eq (9) gives for a recorded score.

    With initial scores, embeddings and v̄(χ∖t) all zero this is Corollary 1 with m = Z(χ∖t).

    Args:
        scores: s_t along the run, shape ``(..., word)``.
        initial_scores: s_t at the start, shape ``(word,)``.
        initial_embeddings: v_t at the start, shape ``(word, dim)``.
        initial: means over Ψ_t at the start.
        now: means over Ψ_t at the times of ``scores``; held at ``initial`` when left out, as the
            paper does under Assumption 1.

    Returns:
        Shape of ``scores``. A square that comes out negative, which no distance can have, gives 0.
    """
    now = initial if now is None else now
    start = _distance_square(initial_embeddings, initial) / 2
    half_square = start + _potential(scores, now) - _potential(initial_scores, initial)
    return np.sqrt(2 * np.maximum(0.0, half_square))


def identity_residual(
    scores: Numbers,
    embeddings: Numbers,
    initial: PsiAverages,
    now: PsiAverages | None = None,
) -> np.ndarray:
    """Left side minus right side of eq (9), from the first recorded time to every other.

    Args:
        scores: s_t, shape ``(step, word)``.
        embeddings: v_t, shape ``(step, word, dim)``.
        initial: means over Ψ_t at the first time.
        now: means over Ψ_t at every time, with a leading ``step`` axis; held at ``initial`` when
            left out.

    Returns:
        Shape ``(step, word)``; the first row is zero.
    """
    now = initial if now is None else now
    scores, embeddings = float64(scores), float64(embeddings)
    left = _potential(scores, now) - _potential(scores[0], initial)
    right = (_distance_square(embeddings, now) - _distance_square(embeddings[0], initial)) / 2
    return left - right


def _potential(scores: Numbers, averages: PsiAverages) -> np.ndarray:
    scores = float64(scores)
    return np.asarray(scores + np.exp(scores) * averages.inverse_z)


def _distance_square(embeddings: Numbers, averages: PsiAverages) -> np.ndarray:
    return np.asarray(((float64(embeddings) - averages.context) ** 2).sum(axis=-1))
