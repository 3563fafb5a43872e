"""Two words, one attention weight: the toy system of the authors' blog, solved.

    dβ₀/dτ = -p,    dβ₁/dτ = p,    dp/dτ = β₁ - β₀

β₁ is what the right word knows, β₀ the wrong one, p the attention to the right word. (The blog
prints the loss as L = s₁ - s₀ but differentiates s₀ - s₁; the system above descends the latter.)
With x = β₁ - β₀ this is x' = 2p, p' = x: one direction grows as exp(√2 τ), the other dies. β₀ + β₁
and p² - x²/2 never change. Attention and knowledge pull each other up, and from p = 0 it is
knowledge that starts: p' = x, whereas from x = 0 and p = 0 nothing moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True, eq=False)
class ToySolution:
    """The toy system over time; all arrays have the shape of the times.

    Args:
        times: τ.
        wrong: β₀.
        right: β₁.
        attention: p.
    """

    times: np.ndarray
    wrong: np.ndarray
    right: np.ndarray
    attention: np.ndarray


def toy_solution(
    times: Numbers, wrong: float = 0.0, right: float = 0.0, attention: float = 0.0
) -> ToySolution:
    """Solve the toy system for any initial values.

    x(τ) = x₀ cosh √2τ + √2 p₀ sinh √2τ and p(τ) = p₀ cosh √2τ + (x₀/√2) sinh √2τ.

    Args:
        times: τ, of any shape, negative ones too.
        wrong: β₀ at τ = 0.
        right: β₁ at τ = 0.
        attention: p at τ = 0.
    """
    times = float64(times)
    root = math.sqrt(2)
    gap, total = right - wrong, right + wrong
    cosh, sinh = np.cosh(root * times), np.sinh(root * times)
    now = gap * cosh + root * attention * sinh
    return ToySolution(
        times,
        (total - now) / 2,
        (total + now) / 2,
        attention * cosh + gap / root * sinh,
    )
