"""Theorem 5 of Li 2023: with a diagonal W^V, attention goes to the same word.

    λ₃ τ < β < λ₄ T,    α < λ₅ β,
    λ₃ = (1-(1-p_c)p_m + p_m p_r) v/100,
    λ₄ = [(1-(1-p_c)p_m)/(√(v-1) - 2 + (1-p_c)p_m)] [(1-(1-p_c-p_r)p_m)/(p_m p_r)] v,
    λ₅ = 1/((v-1) (1-(1-p_c)p_m)).

Its conditions are those of Theorem 3 (:func:`attnscope.theory.li2023.hypotheses`). The exact
minimum is :func:`best_attention` with :func:`diagonal_value_blocks`, where α is often 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023.setting import Topics, check_random_words, check_structure, constants
from attnscope.theory.li2023.theorem3 import Bounds


@dataclass(frozen=True)
class DiagonalBounds:
    """What Theorem 5 says of the best attention.

    Args:
        beta: (λ₃ τ, λ₄ T), where β lies.
        alpha_per_beta: λ₅, which α/β stays below.
    """

    beta: Bounds
    alpha_per_beta: float

    def holds(self, alpha: float, beta: float) -> bool:
        """Whether a pair keeps to the bounds."""
        return beta in self.beta and alpha < self.alpha_per_beta * beta


def diagonal_bounds(setting: Topics) -> DiagonalBounds:
    """The bounds of Theorem 5.

    Raises:
        AttnscopeError: v is so small that λ₄ is negative or infinite, or p_r = 0.
    """
    check_structure(setting)
    check_random_words(setting, "λ₄")
    known, v = constants(setting), setting.words
    kept, random = 1 / known.c3, setting.p_m * setting.p_r
    least = (1 + kept) ** 2 + 1
    if not v > least:
        raise AttnscopeError(
            f"words = {v}: expected more than {least:.4g}, as λ₄ divides by "
            "√(v-1) - 2 + (1-p_c)p_m, which must be positive."
        )
    lambda_3 = (kept + random) * v / 100
    lambda_4 = kept / (math.sqrt(v - 1) - 1 - kept) * (1 - known.mask) / random * v
    beta = Bounds(lambda_3 * setting.tau, lambda_4 * setting.topics)
    return DiagonalBounds(beta, 1 / ((v - 1) * kept))
