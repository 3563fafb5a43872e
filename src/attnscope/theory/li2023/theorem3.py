"""Theorem 3 of Li 2023: with W^V constant on topics, attention to the own topic grows with τ.

    λ₁ (τ - 1) < γ < λ₂ T,    γ = ((v-1)/v) α + (1/v) β,
    λ₁ = (1-(1-p_c)p_m + p_m p_r) (1 + (1-p_c)p_m) / (2 (1-(1-p_c)p_m)),
    λ₂ = 100 ((1-(1-p_c)p_m)/(p_m p_r) + 1).

The theorem is a limit. :func:`hypotheses` says which of its conditions a finite setting meets, and
:func:`attnscope.theory.li2023.best_gamma` where the exact minimum lies.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnscope.theory.li2023.setting import Topics, check_random_words, check_structure, constants


@dataclass(frozen=True)
class Bounds:
    """An open interval.

    Args:
        lower: what the value must exceed.
        upper: what the value must stay below.
    """

    lower: float
    upper: float

    def __contains__(self, value: float) -> bool:
        return self.lower < value < self.upper


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a theorem at a finite setting.

    Args:
        statement: the condition.
        holds: whether it is met; None when no finite setting can decide it.
        found: the numbers it was decided on, or why it was not.
    """

    statement: str
    holds: bool | None
    found: str


def lambda_1(setting: Topics) -> float:
    """λ₁ of Theorem 3: .57734 with BERT's masks."""
    kept = 1 / constants(setting).c3
    return (kept + setting.p_m * setting.p_r) * (2 - kept) / (2 * kept)


def lambda_2(setting: Topics) -> float:
    """λ₂ of Theorem 3: 5866.67 with BERT's masks."""
    kept = 1 / constants(setting).c3
    check_random_words(setting, "λ₂")
    return 100 * (kept / (setting.p_m * setting.p_r) + 1)


def gamma_bounds(setting: Topics) -> Bounds:
    """The interval (λ₁ (τ-1), λ₂ T) of Theorem 3.

    The slides print λ₁ τ; the paper's theorem has τ - 1.
    """
    check_structure(setting)
    return Bounds(lambda_1(setting) * (setting.tau - 1), lambda_2(setting) * setting.topics)


def hypotheses(setting: Topics) -> tuple[Hypothesis, ...]:
    """The conditions of Theorems 3 and 5, and which of them the setting meets."""
    check_structure(setting)
    p_m, p_c, p_r, v = setting.p_m, setting.p_c, setting.p_r, setting.words
    least = (constants(setting).c3 + 1) ** 2 + 1
    share = setting.tau / setting.topics
    return (
        Hypothesis("v > (c₃+1)² + 1", v > least, f"v = {v}, (c₃+1)² + 1 = {least:.4g}"),
        Hypothesis("p_m < 1/2", p_m < 0.5, f"p_m = {p_m:g}"),
        Hypothesis("p_c = p_r", p_c == p_r, f"p_c = {p_c:g}, p_r = {p_r:g}"),
        Hypothesis(
            "T, τ → ∞ with τ = o(T)",
            None,
            f"a limit, which no finite setting can meet or miss; here τ/T = {share:.3g}",
        ),
    )
