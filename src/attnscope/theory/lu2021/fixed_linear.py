"""Theorem 2 of Lu 2021 with its rate: a fixed classifier with orthonormal columns, from zero.

Theorem 2 says that the loss goes to zero, not how. When U has orthonormal columns and the words
around a topic word t stay at score and embedding zero, each topic word is alone: only the sentences
of Ψ_t move it, and they are all alike. Starting from v_t = 0, eq (7) keeps v_t on one ray,

    v_t = r √(J/(J-1)) · U (onehot(y) - 1/J),    r = ‖v_t‖,

so that with the attention weight a = exp(s)/(exp(s) + m), where s follows from r by Corollary 1,

    μ = a r √(J/(J-1))                        the margin, logit of y minus any other,
    l = log(1 + (J-1) exp(-μ))                the loss of a sentence of Ψ_t,
    dr/dt = p a √(J/(J-1)) (J-1) / (J-1 + exp(μ)),    p = |Ψ_t|/|Ψ|.

Time enters as p·t only. Late, 1 - a ≈ 2/r², and in dμ/dt = √(J/(J-1)) (a + r da/dr) dr/dt the
corrections of order 1/r² cancel: dμ/dt → p J exp(-μ). Hence μ ≈ log(p J t), l ≈ (J-1)/(p J t).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.lu2021.theorem2 import weight_from_norm


def fixed_linear_norm(times: Numbers, m: float, classes: int, share: Numbers) -> np.ndarray:
    """Embedding norm of a topic word over time, ‖v_t‖ = r(p·t).

    Its score, weight and loss follow by :func:`score_from_norm`, :func:`weight_from_norm` and
    :func:`fixed_linear_loss`.

    Args:
        times: learning rate × step, from 0 on, shape ``(step,)``.
        m: non-topic words in a sentence.
        classes: J.
        share: p = |Ψ_t|/|Ψ| of each topic word, shape ``(word,)``.

    Returns:
        Shape ``(step, word)``.
    """
    clock = np.multiply.outer(float64(times), float64(share))
    moments, where = np.unique(clock, return_inverse=True)
    stretch = math.sqrt(classes / (classes - 1))

    def velocity(_: float, norm: np.ndarray) -> np.ndarray:
        weight = weight_from_norm(norm, m)
        doubt = expit(math.log(classes - 1) - weight * norm * stretch)
        return np.asarray(weight * stretch * doubt)

    solution = solve_ivp(
        velocity, (0.0, moments[-1]), [0.0], "DOP853", t_eval=moments, rtol=1e-10, atol=1e-12
    )
    return np.asarray(solution.y[0][where].reshape(clock.shape))


def fixed_linear_loss(norm: Numbers, m: Numbers, classes: int) -> np.ndarray:
    """Loss of a sentence whose topic word has this norm, log(1 + (J-1) exp(-μ))."""
    norm = float64(norm)
    margin = weight_from_norm(norm, m) * norm * math.sqrt(classes / (classes - 1))
    return np.logaddexp(0.0, math.log(classes - 1) - margin)


def late_loss(times: Numbers, classes: int, share: Numbers) -> np.ndarray:
    """Loss of the sentences of Ψ_t at late times, (J-1)/(p J t), shape ``(step, word)``.

    The mean over all sentences weighs each word by p, so it tends to n (J-1)/(J t) with n topic
    words: 6/t in the paper's setting.
    """
    return (classes - 1) / (classes * np.multiply.outer(float64(times), float64(share)))
