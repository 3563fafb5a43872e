"""Stage 2 of Li 2023: the loss over attention with W^V fixed, exact at finite T, τ and v.

A word pays attention c₁ to itself, c₂ to other words of its topic, c₃ to words of other topics
(these c's have nothing to do with the constants of Theorem 2). α = c₂/c₃ and β = c₁/c₃ are what
softmax leaves. The loss runs over selected positions where a word is seen, not [MASK]; with
probability p_c it is the right word, with p_r any word. As in (F.22)-(F.26) it is not divided by
p_c + p_r.

With a W^V that is constant on topics (Theorem 2) only the mean ratio γ = ((v-1)α + β)/v counts.

[MASK] as a key. The paper is of two minds: the normalisers z₁, z₂ give [MASK] no attention, while
the offset of q(x) = c₃x - c₁m gives it its share m under uniform attention. ``mask="paper"`` is
that. ``mask="attended"`` is consistent: [MASK] is a key like a word of another topic, z₁ and z₂
include m, and attention sums to one. The offset's part vanishes for large T, but the best γ of the
consistent reading is then 1/(1-m) times the paper's, 1.136 with BERT's masks: words of other topics
no longer have the rest of the attention to themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import minimize_scalar

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.li2023.setting import Topics, check_structure, constants
from attnscope.theory.li2023.theorem2 import ValueBlocks, value_blocks

MaskKey = Literal["paper", "attended"]

SEARCHED = (1e-6, 1e12)
"""Where minimisers are looked for: beyond the bounds of Theorems 3 and 5 in any real setting."""


def mean_ratio(setting: Topics, alpha: Numbers, beta: Numbers) -> np.ndarray:
    """γ = ((v-1)/v) α + (1/v) β, the mean attention to the own topic over that to another."""
    v = setting.words
    return np.asarray(((v - 1) * float64(alpha) + float64(beta)) / v)


def attention_loss(
    setting: Topics,
    alpha: Numbers,
    beta: Numbers,
    values: ValueBlocks | None = None,
    mask: MaskKey = "paper",
) -> np.ndarray:
    """Squared loss of Stage 2 at (α, β), eqs (F.22)-(F.26), at any number of points at once.

    Args:
        setting: T, v, τ and masks.
        alpha: attention to another word of the topic over that to a word of another topic.
        beta: attention to the same word over that to a word of another topic.
        values: W^V; Theorem 2's when left out.
        mask: how [MASK] counts as a key, see above.

    Returns:
        The shape to which ``alpha`` and ``beta`` broadcast; ``alpha[:, None], beta`` gives a grid.
    """
    check_structure(setting)
    if mask not in ("paper", "attended"):
        raise AttnscopeError(f"mask = '{mask}': expected 'paper' or 'attended'.")
    if setting.p_c + setting.p_r == 0:
        raise AttnscopeError(
            "p_c = p_r = 0: expected one of them above 0, as the loss of Stage 2 is over selected "
            "positions where a word is seen."
        )
    alpha, beta = float64(alpha), float64(beta)
    if (alpha < 0).any() or (beta < 0).any():
        raise AttnscopeError("a negative α or β: expected ratios of attention, 0 or more.")
    values = value_blocks(setting) if values is None else values
    T, v, tau = setting.topics, setting.words, setting.tau
    p_c, p_r = setting.p_c, setting.p_r

    own, same, doc, square = _outputs(setting, alpha, beta, values, mask, seen_in_document=True)
    right, near, far = p_c + p_r / (T * v), p_r * (v - 1) / (T * v), p_r * (tau - 1) / T
    loss = (right + near + far) * (1 + square) - 2 * (right * own + near * same + far * doc)
    if p_r > 0:
        _, _, doc, square = _outputs(setting, alpha, beta, values, mask, seen_in_document=False)
        loss = loss + p_r * (1 - tau / T) * (1 - 2 * doc + square)
    return np.asarray(loss)


def _outputs(
    setting: Topics,
    alpha: np.ndarray,
    beta: np.ndarray,
    values: ValueBlocks,
    mask: MaskKey,
    seen_in_document: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Output at the seen word, at another of its topic, at one of another topic; sum of squares."""
    known, T, v, tau = constants(setting), setting.topics, setting.words, setting.tau
    seen = known.present if seen_in_document else known.absent
    others_in = tau - 1 if seen_in_document else tau
    others_out = T - 1 - others_in
    topic = seen * ((v - 1) * alpha + beta)
    total = topic + v * (known.present * others_in + known.absent * others_out)
    if mask == "attended":
        total = total + known.mask
        attended = known.mask / total
    else:
        attended = np.asarray(known.mask)
    offset = values.mask * attended + values.different * (1 - attended)
    block, spike = values.same - values.different, values.diagonal - values.same
    own = offset + (block * topic + spike * seen * beta) / total
    same = offset + (block * topic + spike * seen * alpha) / total
    inside = offset + (block * v + spike) * known.present / total
    outside = offset + (block * v + spike) * known.absent / total
    squares = own**2 + (v - 1) * same**2 + v * (others_in * inside**2 + others_out * outside**2)
    return own, same, inside, squares


def best_gamma(setting: Topics, mask: MaskKey = "paper") -> float:
    """The γ at which the loss of Stage 2 is least, with W^V of Theorem 2.

    >>> from attnscope.theory.li2023 import TopicSetting
    >>> round(best_gamma(TopicSetting(topics=10, words=10, tau=3)), 2)
    7.04

    Raises:
        AttnscopeError: the loss has no minimum at a positive finite γ.
    """
    values = value_blocks(setting)
    return _least(lambda gamma: attention_loss(setting, gamma, gamma, values, mask), setting)


def best_attention(
    setting: Topics, values: ValueBlocks, mask: MaskKey = "paper"
) -> tuple[float, float]:
    """(α, β) at which the loss of Stage 2 is least, for a W^V that tells words of a topic apart.

    α may be 0: with many words in a topic, attending to the others of the own topic only costs.

    Raises:
        AttnscopeError: W^V is constant on topics, so that only γ is determined, or the loss has no
            minimum at finite ratios.
    """
    if values.diagonal == values.same:
        raise AttnscopeError(
            "a W^V that is constant on topics: expected one with a diagonal of its own, as here "
            "only γ is determined (best_gamma)."
        )

    v = setting.words
    if v == 1:
        return 0.0, _least(lambda beta: attention_loss(setting, 0, beta, values, mask), setting)

    def ratios(gamma: np.ndarray, share: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        # The share of the attention to the own topic that goes to the other words of it.
        return share * v * gamma / (v - 1), (1 - share) * v * gamma

    def best_share(gamma: np.ndarray) -> np.ndarray:
        # At fixed γ the outputs are linear in the share: three points give the whole parabola.
        none, half, whole = (
            attention_loss(setting, *ratios(gamma, share), values, mask) for share in (0, 0.5, 1)
        )
        curvature, slope = 2 * (none - 2 * half + whole), 4 * half - 3 * none - whole
        # At a vanishing γ the parabola is flat to rounding, and any share will do.
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.nan_to_num(-slope / (2 * curvature))
        return np.asarray(np.clip(vertex, 0.0, 1.0))

    def profile(gamma: np.ndarray) -> np.ndarray:
        return attention_loss(setting, *ratios(gamma, best_share(gamma)), values, mask)

    gamma = np.asarray(_least(profile, setting))
    alpha, beta = ratios(gamma, best_share(gamma))
    return float(alpha), float(beta)


def _least(loss: Callable[[np.ndarray], np.ndarray], setting: Topics) -> float:
    """Where a loss of one positive ratio is least."""
    low, high = SEARCHED
    grid = np.linspace(math.log(low), math.log(high), 500)
    losses = loss(np.exp(grid))
    at = int(losses.argmin())
    flat = np.ptp(losses) < 1e-12 * losses[at]
    if flat or at in (0, len(grid) - 1):
        raise AttnscopeError(
            f"the loss of Stage 2 has no minimum between {low:g} and {high:g} for {setting}: "
            "expected a setting in which some finite attention is best."
        )
    found = minimize_scalar(
        lambda ratio: loss(np.exp(ratio)),
        bounds=(grid[at - 1], grid[at + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(found.x))
