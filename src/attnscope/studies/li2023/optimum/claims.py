"""The claims of ``li2023.optimum``: Theorems 3 and 5, of the exact loss and of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below, within
from attnscope.studies.li2023.optimum.landscapes import FAR, valley
from attnscope.theory import li2023
from attnscope.theory.li2023 import Bounds
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum.study import Optimum

EXACT = "Theorem 3's loss, eqs (F.22) to (F.26)"
LIMIT = "inside, as T and τ grow with τ = o(T)"
UNSTATED = "not stated"


def best(run: Readings) -> np.ndarray:
    """Return the paper's minimiser for each τ of the landscapes."""
    return run.theory.landscape_gamma.sel(mask="paper").to_numpy()


def margin(value: float, bounds: Bounds) -> float:
    """Return how far inside an interval a value lies, in factors of e; negative outside."""
    return float(min(np.log(value / bounds.lower), np.log(bounds.upper / value)))


def claims(study: Optimum) -> list[Claim]:
    """Return what Theorems 3 and 5 say, of the exact loss and of training."""
    taus, topics, cases = study.landscape_taus, study.landscape_topics, list(study.topic_cases)
    settings = [study.landscape_setting(tau) for tau in taus]
    bounds = [li2023.gamma_bounds(setting) for setting in settings]
    own_bounds = [li2023.gamma_bounds(study.setting(case)) for case in cases]
    needed = 1 / li2023.diagonal_bounds(study.setting(study.diagonal_case)).alpha_per_beta

    def margins(run: Readings, uniform: bool) -> list[float]:
        gammas = np.ones(len(taus)) if uniform else best(run)
        found = [margin(gamma, each) for gamma, each in zip(gammas, bounds, strict=True)]
        return [max(found) if uniform else min(found)]

    def looseness(run: Readings, end: str) -> list[float]:
        pairs = list(zip(best(run), bounds, strict=True))
        if end == "lower":
            return [max(gamma / each.lower for gamma, each in pairs)]
        return [min(each.upper / gamma for gamma, each in pairs)]

    def rise(run: Readings, diagonal: bool) -> list[float]:
        found = []
        for setting, gamma in zip(settings, best(run), strict=True):
            values = li2023.diagonal_value_blocks(setting) if diagonal else None
            losses = li2023.attention_loss(setting, *valley(setting, gamma), values)
            uniform = li2023.attention_loss(setting, 1, 1, values)
            found.append(float(np.ptp(losses) / abs(uniform - losses.min())))
        return [min(found) if diagonal else max(found)]

    def exponent(run: Readings, far: bool) -> list[float]:
        gamma = run.theory.landscape_far.to_numpy() if far else best(run)
        return [np.log(gamma[-1] / gamma[0]) / np.log(taus[-1] / taus[0])]

    def diagonal_margins(run: Readings, uniform: bool) -> list[float]:
        pairs = run.theory.landscape_diagonal.to_numpy()
        found = []
        for (alpha, beta), setting in zip(
            np.ones_like(pairs) if uniform else pairs, settings, strict=True
        ):
            own = li2023.diagonal_bounds(setting)
            share = np.log(own.alpha_per_beta * beta / alpha) if alpha else np.inf
            found.append(min(margin(beta, own.beta), share))
        return [max(found) if uniform else min(found)]

    def trained_margins(run: Readings, when: Callable[[xr.DataArray], xr.DataArray]) -> np.ndarray:
        alphas = when(run.ratios).sel(ratio="alpha", case=cases)
        found = [
            [margin(alpha, each) for alpha in row]
            for row, each in zip(alphas, own_bounds, strict=True)
        ]
        return np.min(found, axis=0)

    def growth(run: Readings, when: Callable[[xr.DataArray], xr.DataArray]) -> np.ndarray:
        gamma = when(run.ratios).sel(ratio="gamma", case=cases).to_numpy()
        return np.asarray((gamma[1:] / gamma[:-1] - 1).min(axis=0))

    def off(run: Readings, given: tuple[str, list[str]]) -> xr.DataArray:
        name, among = given
        alpha = final(run.ratios).sel(ratio="alpha").astype(float)
        return abs(alpha / run.theory.get(name) - 1).sel(case=among).max("case", skipna=False)

    def itself(run: Readings, case: str) -> xr.DataArray:
        ended = final(run.of(case).ratios).astype(float)
        return ended.sel(ratio="beta") / ended.sel(ratio="alpha") / needed

    return [
        Claim(
            "theorem3-bounds",
            f"At T = {topics}, v = {study.landscape_words} and τ = {', '.join(map(str, taus))} the "
            "loss is least at a γ between λ₁(τ - 1) and λ₂T.",
            margins,
            False,
            above(0),
            (True, "uniform attention, γ = 1"),
            "Theorem 3, Figs 7 and 8",
            LIMIT,
            "log of the ratio to the nearer bound, where it is least",
        ),
        Claim(
            "theorem3-loose",
            "The upper bound λ₂T is more than a thousand times the minimiser.",
            looseness,
            "upper",
            above(1000),
            ("lower", "the lower bound: the minimiser over λ₁(τ - 1)"),
            "beyond the paper: Theorem 3 against the exact loss",
            UNSTATED,
            "ratio of bound and minimiser, where it is least",
        ),
        Claim(
            "theorem3-valley",
            "Only γ matters: along the curve of the best γ the loss is the same for every α and β.",
            rise,
            False,
            below(1e-9),
            (True, "the same curve with the diagonal W^V"),
            "Theorem 3 and its proof",
            "α and β enter through γ alone",
            "range of the loss along the curve over its drop from uniform attention",
        ),
        Claim(
            "theorem3-growth",
            "The best γ grows in proportion to τ while τ is small beside T.",
            exponent,
            True,
            within(0.8, 1.2),
            (False, f"T = {topics}, where τ is a good part of T and growth flattens"),
            "Theorem 3",
            "between λ₁(τ - 1) and λ₂T, for τ = o(T)",
            f"log γ over log τ from τ = {taus[0]} to {taus[-1]}, at T = {FAR * topics:,}",
        ),
        Claim(
            "theorem5-bounds",
            "With the diagonal W^V the loss is least where λ₃τ < β < λ₄T and α < λ₅β: attention "
            "goes to the same word.",
            diagonal_margins,
            False,
            above(0),
            (True, "uniform attention, α = β = 1"),
            "Theorem 5",
            LIMIT,
            "log of the ratio to the nearest bound, where it is least",
        ),
        Claim(
            "trained-bounds",
            "A trained model attends to other words of the own topic more than to other topics, "
            "within the bounds of Theorem 3 at every τ.",
            trained_margins,
            final,
            above(0),
            (initial, "before training"),
            "Theorem 3",
            "γ between λ₁(τ - 1) and λ₂T",
            "log of the ratio of α to the nearer bound, at the τ where it is least",
        ),
        Claim(
            "trained-growth",
            f"The γ of trained attention grows with τ at every step from {study.taus[0]} to "
            f"{study.taus[-1]}.",
            growth,
            final,
            above(0.02),
            (initial, "before training"),
            "Theorem 3",
            "grows with τ",
            "smallest relative growth from one τ to the next",
        ),
        *(
            Claim(
                key,
                f"Trained attention to the own topic is the minimiser of the {sentence}.",
                off,
                (name, cases),
                below(0.05),
                ((name, [study.shuffled_case]), "W^V with blocks that are not the topics"),
                source,
                UNSTATED,
                "largest |α/γ - 1| over τ, γ the minimiser, α measured",
                reason=reason,
            )
            for key, name, sentence, source, reason in (
                (
                    "trained-minimiser",
                    "gamma_best",
                    "exact loss, if the attention to [MASK] is free as it is in the model",
                    f"{EXACT}, with [MASK] as a key",
                    "",
                ),
                (
                    "trained-paper",
                    "gamma_paper",
                    "loss as printed",
                    EXACT,
                    "the printed normalisers z₁ and z₂ give [MASK] no attention, while its output "
                    "is that of uniform attention. A model attends to [MASK] like to any key, and "
                    "learns to do so more than to a word of another topic (μ in the table). That "
                    "moves the best γ, and the loss with [MASK] as a key gives the trained one.",
                ),
            )
        ),
        Claim(
            "trained-diagonal",
            "With the diagonal W^V a trained model attends to the same word more than to others of "
            "its topic, by more than 1/λ₅.",
            itself,
            study.diagonal_case,
            above(1),
            (cases[1], "Theorem 2's blocks at the same τ"),
            "Theorem 5",
            "α < λ₅β",
            f"λ₅ β/α at τ = {study.compared}",
        ),
    ]
