"""The loss of Stage 2 of Li 2023 with [MASK] as a key of its own.

Theorem 3's family of attention has two ratios, α and β. A trained model has a third: the attention
that a word pays to [MASK] over that to a word of another topic, μ. The paper's normalisers have
μ = 0 and ``attention_loss(mask="attended")`` has μ = 1. With W^V of Theorem 2 the attention to
[MASK] becomes

    μ m / z,    z = z_paper(γ) + μ m,

and everything else of eqs (F.22) to (F.26) stays as it is.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from attnscope.theory.li2023.setting import Topics, constants
from attnscope.theory.li2023.stage2 import best_gamma
from attnscope.theory.li2023.theorem2 import value_blocks


def masked_loss(setting: Topics, gamma: float, mask_ratio: float) -> float:
    """Squared loss of Stage 2 at γ and μ, with W^V of Theorem 2."""
    known, values = constants(setting), value_blocks(setting)
    T, v, tau, p_r = setting.topics, setting.words, setting.tau, setting.p_r
    block = v * (values.same - values.different)

    def outputs(seen: float, inside: int) -> tuple[float, float, float]:
        """Output on the seen topic, on another of the document, and the sum of squares."""
        outside = T - 1 - inside
        mask = mask_ratio * known.mask
        total = seen * v * gamma + v * (known.present * inside + known.absent * outside) + mask
        offset = values.different + (values.mask - values.different) * mask / total
        own = offset + block * seen * gamma / total
        near = offset + block * known.present / total
        far = offset + block * known.absent / total
        return own, near, v * (own**2 + inside * near**2 + outside * far**2)

    own, near, square = outputs(known.present, tau - 1)
    right, other = setting.p_c + p_r / T, p_r * (tau - 1) / T
    loss = right * (1 - 2 * own + square) + other * (1 - 2 * near + square)
    _, near, square = outputs(known.absent, tau)
    return loss + p_r * (1 - tau / T) * (1 - 2 * near + square)


def best_gamma_at(setting: Topics, mask_ratio: float) -> float:
    """The γ at which the loss is least for a given μ."""
    found = minimize_scalar(
        lambda log: masked_loss(setting, math.exp(log), mask_ratio),
        bounds=(math.log(1e-2), math.log(1e6)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(math.exp(found.x))


def best_ratios(setting: Topics) -> tuple[float, float]:
    """(γ, μ) at which the loss is least if both are free."""
    start = np.log([best_gamma(setting, "attended"), 1.0])
    found = minimize(
        lambda logs: masked_loss(setting, *np.exp(logs)),
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-15, "maxiter": 2000},
    )
    gamma, mask_ratio = np.exp(found.x)
    return float(gamma), float(mask_ratio)
