"""Lexical probes: what a model would say if it attended to one position only, Snell 2021."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnscope.errors import AttnscopeError


def log_lexical_probe(logits: ArrayLike, correct: ArrayLike) -> NDArray[np.float64]:
    """Compute log β_{t,l} = log N([h_l, s_t])_{y_t} from the logits of N (eq 4; eq 6 for We_{x_l}).

    Args:
        logits: of the output words when only position l is attended to, shape
            ``(..., position, word)``.
        correct: the right word y_t, shape ``(...)``.

    Returns:
        Shape ``(..., position)``.

    Raises:
        AttnscopeError: for shapes that do not belong together, NaN, or a word that is not there.
    """
    gamma, word = np.asarray(logits, dtype=float), np.asarray(correct)
    if gamma.ndim < 2 or gamma.shape[:-2] != word.shape:
        raise AttnscopeError(
            f"logits have the shape {gamma.shape} and the right words {word.shape}: expected "
            "(..., position, word) and (...)."
        )
    _no_nan("logits", gamma)
    if word.size and not np.issubdtype(word.dtype, np.integer):
        raise AttnscopeError(f"the right words are {word.dtype}: expected word ids.")
    if word.size and (word.min() < 0 or word.max() >= gamma.shape[-1]):
        raise AttnscopeError(
            f"the right words go from {word.min()} to {word.max()}: expected 0 to "
            f"{gamma.shape[-1] - 1}."
        )
    if not gamma.size:
        return np.zeros(gamma.shape[:-1])
    index = np.broadcast_to(word.astype(np.int64)[..., None, None], (*gamma.shape[:-1], 1))
    from scipy.special import log_softmax

    return np.take_along_axis(log_softmax(gamma, axis=-1), index, axis=-1)[..., 0]


def polarity_probe(log_odds: ArrayLike, label: ArrayLike) -> NDArray[np.float64]:
    """Compute β_l = σ((2y - 1) γ_l) (eq 9), the probability of the right class.

    Args:
        log_odds: γ_l of the positive class when only position l is attended to, shape
            ``(..., position)``.
        label: y, 0 or 1, shape ``(...)``.
    """
    gamma, y = np.asarray(log_odds, dtype=float), np.asarray(label)
    if gamma.ndim < 1 or gamma.shape[:-1] != y.shape:
        raise AttnscopeError(
            f"log-odds have the shape {gamma.shape} and labels {y.shape}: expected (..., position) "
            "and (...)."
        )
    _no_nan("log-odds", gamma)
    if not np.isin(y, (0, 1)).all():
        raise AttnscopeError(f"a label is {y[~np.isin(y, (0, 1))].flat[0]}: expected 0 or 1.")
    from scipy.special import expit

    return np.asarray(expit((2 * y.astype(float) - 1)[..., None] * gamma))


def correct_probability(attention: ArrayLike, beta: ArrayLike) -> NDArray[np.float64]:
    """Put attention and probe together: p = σ(Σ_l α_l σ⁻¹(β_l)) (eq 12).

    Positions without attention add nothing, whatever β is there, so a mask is α = 0. A row without
    a position has p = 1/2.

    Args:
        attention: α_l, shape ``(..., position)``.
        beta: β_l between 0 and 1, the same shape.

    Raises:
        AttnscopeError: for shapes that differ, a β outside [0, 1], a negative α, NaN, or when
            positions with β = 0 and with β = 1 are attended to at once, which eq 12 has no value
            for.
    """
    alpha, probe = np.asarray(attention, dtype=float), np.asarray(beta, dtype=float)
    if alpha.shape != probe.shape or not alpha.ndim:
        raise AttnscopeError(
            f"attention has the shape {alpha.shape} and beta {probe.shape}: expected the same, "
            "(..., position)."
        )
    seen = alpha != 0  # NaN is seen
    _no_nan("attention", alpha)
    _no_nan("beta", np.where(seen, probe, 0.5))
    if (alpha < 0).any():
        raise AttnscopeError(f"attention is {alpha.min()} somewhere: expected 0 or more.")
    wrong = seen & ((probe < 0) | (probe > 1))
    if wrong.any():
        raise AttnscopeError(f"beta is {probe[wrong].flat[0]} somewhere: expected 0 to 1.")
    if ((seen & (probe == 0)).any(axis=-1) & (seen & (probe == 1)).any(axis=-1)).any():
        raise AttnscopeError(
            "a row attends to a position with beta = 0 and to one with beta = 1: expected values "
            "between them, for -∞ and +∞ have no sum."
        )
    from scipy.special import expit, logit

    terms = np.where(seen, alpha * logit(np.where(seen, probe, 0.5)), 0.0)
    return np.asarray(expit(terms.sum(axis=-1)))


def saliency(embeddings: ArrayLike, gradient: ArrayLike) -> NDArray[np.float64]:
    """Word saliency Δ_l = -∂Loss/∂g_l at g = 1, where g_l multiplies the embedding of word l.

    By the chain rule it is -Σ_d e_{l,d} ∂Loss/∂e_{l,d}: positive for a word that helps.

    Args:
        embeddings: e, shape ``(..., position, dimension)``.
        gradient: of the loss with respect to them, the same shape.

    Returns:
        Shape ``(..., position)``.
    """
    e, slope = np.asarray(embeddings, dtype=float), np.asarray(gradient, dtype=float)
    if e.shape != slope.shape or e.ndim < 2:
        raise AttnscopeError(
            f"embeddings have the shape {e.shape} and their gradient {slope.shape}: expected the "
            "same, (..., position, dimension)."
        )
    _no_nan("embeddings", e)
    _no_nan("the gradient", slope)
    return -(e * slope).sum(axis=-1)


def _no_nan(name: str, array: NDArray[np.float64]) -> None:
    if np.isnan(array).any():
        at = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
        raise AttnscopeError(f"NaN in {name} at {at}: expected numbers.")
