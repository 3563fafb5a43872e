"""The exact loss of Stage 2 over α and β, its minima and the bounds on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum.study import Optimum

LOW, HIGH = 1e-4, 1e7
"""Ends of the axes of Figs 7 and 8."""
EDGES = np.geomspace(LOW, HIGH, 56)
"""Edges of the cells, five to a decade, the same along both axes."""
FAR = 100
"""How many times T is larger where τ counts as small beside it."""


def valley(setting: TopicSetting, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the (α, β) within the axes that have one γ: β = v γ - (v-1) α."""
    v = setting.words
    steep = np.geomspace(LOW, v * gamma / (v - 1), 400)
    flat = (v * gamma - np.geomspace(LOW, v * gamma, 400)) / (v - 1)
    alpha = np.unique(np.concatenate([steep, flat[flat > LOW]]))
    beta = v * gamma - (v - 1) * alpha
    shown = (beta >= LOW) & (beta <= HIGH) & (alpha <= HIGH)
    return alpha[shown], beta[shown]


def landscapes(study: Optimum) -> xr.Dataset:
    """Return minima and landscapes for every τ of the landscapes.

    ``excess`` is the loss of Stage 2 above its minimum, over that of uniform attention: on (β, α),
    for Theorem 2's W^V and for Theorem 5's.
    """
    gamma, best, far, excess = [], [], [], []
    at = np.sqrt(EDGES[1:] * EDGES[:-1])
    for tau in study.landscape_taus:
        setting = study.landscape_setting(tau)
        diagonal = li2023.diagonal_value_blocks(setting)
        gamma.append([li2023.best_gamma(setting, "paper"), li2023.best_gamma(setting, "attended")])
        best.append(li2023.best_attention(setting, diagonal))
        far.append(li2023.best_gamma(study.landscape_setting(tau, FAR)))
        pair = []
        for values, point in ((None, (gamma[-1][0],) * 2), (diagonal, best[-1])):
            least = li2023.attention_loss(setting, *point, values)
            loss = li2023.attention_loss(setting, at, at[:, None], values)
            uniform = li2023.attention_loss(setting, 1, 1, values)
            pair.append((loss - least) / (uniform - least))
        excess.append(pair)
    found = {
        "excess": (
            ("landscape", "value", "beta", "alpha"),
            excess,
            "loss above its minimum, over that of uniform attention",
        ),
        "landscape_gamma": (
            ("landscape", "mask"),
            gamma,
            "minimiser γ, [MASK] unattended as in the paper, or attended",
        ),
        "landscape_diagonal": (
            ("landscape", "pair"),
            best,
            "minimiser (α, β) with the diagonal W^V",
        ),
        "landscape_far": ("landscape", far, f"minimiser γ with {FAR} times as many topics"),
    }
    return xr.Dataset(
        {name: (dims, data, {"meaning": said}) for name, (dims, data, said) in found.items()},
        coords={"landscape_tau": ("landscape", list(study.landscape_taus))},
    )
