"""Two classes: what attention can do is bounded by what single words know (eq 12 of Snell 2021).

With log-odds γ_l of the right class at position l, β_l = σ(γ_l) (eq 9) and

    p_correct = σ(Σ_l α_l γ_l) = σ(Σ_l α_l σ⁻¹(β_l)).                                     (eq 12)

So min β ≤ p_correct ≤ max β for every attention, the best attention looks at the largest β alone,
and if all β are equal then attention changes nothing and gets no gradient.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.lexical import correct_probability
from attnscope.theory.arrays import Numbers, float64

__all__ = ["attention_pull", "correct_probability"]


def attention_pull(alpha: Numbers, beta: Numbers) -> np.ndarray:
    """Return -∂Loss/∂a_l, how the loss -log p_correct moves attention logits a, α = softmax(a).

        -∂Loss/∂a_l = (1 - p) α_l (γ_l - Σ_l' α_l' γ_l')

    Attention rises exactly where the log-odds of a word exceed their mean under attention. If all β
    are equal this is zero: attention cannot be learned before words are known.

    Args:
        alpha: attention, shape ``(..., position)``, sums to 1.
        beta: lexical probe strictly between 0 and 1, same shape.
    """
    alpha, beta = _checked(alpha, beta)
    if (beta <= 0).any() or (beta >= 1).any():
        raise AttnscopeError(
            f"beta from {beta.min():g} to {beta.max():g}: expected probabilities strictly between "
            "0 and 1, since the pull of a certain word is not defined."
        )
    odds = logit(beta)
    mean = (alpha * odds).sum(axis=-1, keepdims=True)
    return np.asarray(expit(-mean) * alpha * (odds - mean))


def _checked(alpha: Numbers, beta: Numbers) -> tuple[np.ndarray, np.ndarray]:
    alpha, beta = float64(alpha), float64(beta)
    if alpha.shape != beta.shape or alpha.ndim == 0:
        raise AttnscopeError(
            f"alpha of shape {alpha.shape} and beta of shape {beta.shape}: expected the same, "
            "positions last."
        )
    if (alpha < 0).any() or not np.allclose(alpha.sum(axis=-1), 1, atol=1e-6):
        raise AttnscopeError("alpha: expected weights of 0 or more that sum to 1 over positions.")
    if (beta < 0).any() or (beta > 1).any():
        raise AttnscopeError(
            f"beta from {beta.min():g} to {beta.max():g}: expected probabilities, 0 to 1."
        )
    return alpha, beta
