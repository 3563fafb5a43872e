"""The claims of ``li2023.optimum``: Theorems 3 and 5, of the exact loss and of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.studies.li2023._optimum_landscapes import FAR, valley
from attnscope.studies.li2023._optimum_records import RATIOS
from attnscope.trajectory import select
from attnscope.theory import li2023
from attnscope.theory.li2023 import Bounds

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum import Optimum


def claims(study: Optimum) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _bounds(study),
        _loose(study),
        _valley(study),
        _rate(study),
        _diagonal_bounds(study),
        _trained_bounds(study),
        _trained_growth(study),
        _trained_minimiser(study),
        _trained_paper(study),
        _trained_diagonal(study),
    )


def final(tree: xr.DataTree, case: str, ratio: str) -> np.ndarray:
    """Return a ratio of attention at the end of the runs of a case, by seed."""
    data = select(tree, "ratios", case).isel(step=-1, ratio=RATIOS.index(ratio))
    return np.asarray(data.to_numpy(), dtype=float)


def landscape_gamma(tree: xr.DataTree) -> np.ndarray:
    """Return the paper's minimiser for each τ of the landscapes."""
    return np.asarray(tree["theory/landscape_gamma"].to_numpy()[:, 0])


def _margin(value: float, bounds: Bounds) -> float:
    """How far inside an interval a value lies, in factors of e; negative outside."""
    return float(min(np.log(value / bounds.lower), np.log(bounds.upper / value)))


def _bounds(study: Optimum) -> Claim:
    bounds = [li2023.gamma_bounds(study.landscape_setting(tau)) for tau in study.landscape_taus]

    def margin(tree: xr.DataTree) -> np.ndarray:
        found = zip(landscape_gamma(tree), bounds, strict=True)
        return np.array([min(_margin(gamma, each) for gamma, each in found)])

    sizes = f"T = {study.landscape_topics}, v = {study.landscape_words}"
    return Claim(
        key="theorem3-bounds",
        sentence=f"At {sizes} and τ = {_listed(study.landscape_taus)} the loss is least at a γ "
        "between λ₁(τ - 1) and λ₂T.",
        source="Theorem 3, Figs 7 and 8",
        paper="inside, as T and τ grow with τ = o(T)",
        statistic=margin,
        criterion=above(0),
        control_sentence="uniform attention, γ = 1",
        control=lambda tree: np.array([max(_margin(1.0, each) for each in bounds)]),
        measure="log of the ratio to the nearer bound, where it is least",
    )


def _loose(study: Optimum) -> Claim:
    bounds = [li2023.gamma_bounds(study.landscape_setting(tau)) for tau in study.landscape_taus]

    return Claim(
        key="theorem3-loose",
        sentence="The upper bound λ₂T is more than a thousand times the minimiser.",
        source="beyond the paper: Theorem 3 against the exact loss",
        paper="not stated",
        statistic=lambda tree: np.array(
            [min(b.upper / g for g, b in zip(landscape_gamma(tree), bounds, strict=True))]
        ),
        criterion=above(1000),
        control_sentence="the lower bound: the minimiser over λ₁(τ - 1)",
        control=lambda tree: np.array(
            [max(g / b.lower for g, b in zip(landscape_gamma(tree), bounds, strict=True))]
        ),
        measure="ratio of bound and minimiser, where it is least",
    )


def _valley(study: Optimum) -> Claim:
    def rises(tree: xr.DataTree, diagonal: bool) -> list[float]:
        found = []
        for tau, gamma in zip(study.landscape_taus, landscape_gamma(tree), strict=True):
            setting = study.landscape_setting(tau)
            values = li2023.diagonal_value_blocks(setting) if diagonal else None
            losses = li2023.attention_loss(setting, *valley(setting, gamma), values)
            uniform = li2023.attention_loss(setting, 1, 1, values)
            found.append(float(np.ptp(losses) / abs(uniform - losses.min())))
        return found

    return Claim(
        key="theorem3-valley",
        sentence="Only γ matters: along the curve of the best γ the loss is the same for every α "
        "and β.",
        source="Theorem 3 and its proof",
        paper="α and β enter through γ alone",
        statistic=lambda tree: np.array([max(rises(tree, False))]),
        criterion=below(1e-9),
        control_sentence="the same curve with the diagonal W^V",
        control=lambda tree: np.array([min(rises(tree, True))]),
        measure="range of the loss along the curve over its drop from uniform attention",
    )


def _rate(study: Optimum) -> Claim:
    span = np.log(study.landscape_taus[-1] / study.landscape_taus[0])

    def exponent(gamma: np.ndarray) -> np.ndarray:
        return np.array([np.log(gamma[-1] / gamma[0]) / span])

    topics = study.landscape_topics
    return Claim(
        key="theorem3-growth",
        sentence="The best γ grows in proportion to τ while τ is small beside T.",
        source="Theorem 3",
        paper="between λ₁(τ - 1) and λ₂T, for τ = o(T)",
        statistic=lambda tree: exponent(tree["theory/landscape_far"].to_numpy()),
        criterion=within(0.8, 1.2),
        control_sentence=f"T = {topics}, where τ is a good part of T and growth flattens",
        control=lambda tree: exponent(landscape_gamma(tree)),
        measure=f"log γ over log τ from τ = {study.landscape_taus[0]} to "
        f"{study.landscape_taus[-1]}, at T = {FAR * topics:,}",
    )


def _diagonal_bounds(study: Optimum) -> Claim:
    settings = [study.landscape_setting(tau) for tau in study.landscape_taus]

    def margin(alpha: float, beta: float, bounds: li2023.DiagonalBounds) -> float:
        share = bounds.alpha_per_beta * beta
        return min(_margin(beta, bounds.beta), np.inf if alpha == 0 else np.log(share / alpha))

    def smallest(tree: xr.DataTree) -> np.ndarray:
        pairs = tree["theory/landscape_diagonal"].to_numpy()
        found = [
            margin(p[0], p[1], li2023.diagonal_bounds(s))
            for p, s in zip(pairs, settings, strict=True)
        ]
        return np.array([min(found)])

    return Claim(
        key="theorem5-bounds",
        sentence="With the diagonal W^V the loss is least where λ₃τ < β < λ₄T and α < λ₅β: "
        "attention goes to the same word.",
        source="Theorem 5",
        paper="inside, as T and τ grow with τ = o(T)",
        statistic=smallest,
        criterion=above(0),
        control_sentence="uniform attention, α = β = 1",
        control=lambda tree: np.array(
            [max(margin(1.0, 1.0, li2023.diagonal_bounds(s)) for s in settings)]
        ),
        measure="log of the ratio to the nearest bound, where it is least",
    )


def _trained_bounds(study: Optimum) -> Claim:
    bounds = {tau: li2023.gamma_bounds(study.setting(tau)) for tau in study.taus}

    def margins(tree: xr.DataTree, step: int) -> np.ndarray:
        at = {"step": step, "ratio": RATIOS.index("alpha")}
        return np.min(
            [
                [_margin(value, bounds[tau]) for value in select(tree, "ratios", case).isel(at)]
                for tau, case in study.topic_cases().items()
            ],
            axis=0,
        )

    return Claim(
        key="trained-bounds",
        sentence="A trained model attends to other words of the own topic more than to other "
        "topics, within the bounds of Theorem 3 at every τ.",
        source="Theorem 3",
        paper="γ between λ₁(τ - 1) and λ₂T",
        statistic=lambda tree: margins(tree, -1),
        criterion=above(0),
        control_sentence="before training",
        control=lambda tree: margins(tree, 0),
        measure="log of the ratio of α to the nearer bound, at the τ where it is least",
    )


def _trained_growth(study: Optimum) -> Claim:
    def least(tree: xr.DataTree, step: int) -> np.ndarray:
        at = {"step": step, "ratio": RATIOS.index("gamma")}
        cases = study.topic_cases().values()
        gamma = np.array([select(tree, "ratios", case).isel(at).to_numpy() for case in cases])
        return np.asarray((gamma[1:] / gamma[:-1] - 1).min(axis=0))

    return Claim(
        key="trained-growth",
        sentence="The γ of trained attention grows with τ at every step from "
        f"{study.taus[0]} to {study.taus[-1]}.",
        source="Theorem 3",
        paper="grows with τ",
        statistic=lambda tree: least(tree, -1),
        criterion=above(0.02),
        control_sentence="before training",
        control=lambda tree: least(tree, 0),
        measure="smallest relative growth from one τ to the next",
    )


def _trained_minimiser(study: Optimum) -> Claim:
    return Claim(
        key="trained-minimiser",
        sentence="Trained attention to the own topic is the minimiser of the exact loss, if the "
        "attention to [MASK] is free as it is in the model.",
        source="Theorem 3's loss, eqs (F.22) to (F.26), with [MASK] as a key",
        paper="not stated",
        statistic=lambda tree: _deviation(study, tree, "gamma_best"),
        criterion=below(0.05),
        control_sentence="W^V with blocks that are not the topics",
        control=lambda tree: _off(tree, study.shuffled_case, "gamma_best"),
        measure="largest |α/γ - 1| over τ, γ the minimiser, α measured",
    )


def _trained_paper(study: Optimum) -> Claim:
    return Claim(
        key="trained-paper",
        sentence="Trained attention to the own topic is the minimiser of the loss as printed.",
        source="Theorem 3's loss, eqs (F.22) to (F.26)",
        paper="not stated",
        statistic=lambda tree: _deviation(study, tree, "gamma_paper"),
        criterion=below(0.05),
        control_sentence="W^V with blocks that are not the topics",
        control=lambda tree: _off(tree, study.shuffled_case, "gamma_paper"),
        measure="largest |α/γ - 1| over τ, γ the minimiser, α measured",
        reason="the printed normalisers z₁ and z₂ give [MASK] no attention, while its output is "
        "that of uniform attention. A model attends to [MASK] like to any key, and learns to do so "
        "more than to a word of another topic (μ in the table). That moves the "
        "best γ, and the loss with [MASK] as a key gives the trained one.",
    )


def _trained_diagonal(study: Optimum) -> Claim:
    setting = study.setting(study.compared)
    needed = 1 / li2023.diagonal_bounds(setting).alpha_per_beta

    def ratio(tree: xr.DataTree, case: str) -> np.ndarray:
        return final(tree, case, "beta") / final(tree, case, "alpha") / needed

    return Claim(
        key="trained-diagonal",
        sentence="With the diagonal W^V a trained model attends to the same word more than to "
        "others of its topic, by more than 1/λ₅.",
        source="Theorem 5",
        paper="α < λ₅β",
        statistic=lambda tree: ratio(tree, study.diagonal_case),
        criterion=above(1),
        control_sentence="Theorem 2's blocks at the same τ",
        control=lambda tree: ratio(tree, study.topic_cases()[study.compared]),
        measure=f"λ₅ β/α at τ = {study.compared}",
    )


def _deviation(study: Optimum, tree: xr.DataTree, name: str) -> np.ndarray:
    cases = study.topic_cases().values()
    return np.asarray(np.max([_off(tree, case, name) for case in cases], axis=0))


def _off(tree: xr.DataTree, case: str, name: str) -> np.ndarray:
    best = select(tree, name, case, "theory").to_numpy()
    return np.abs(final(tree, case, "alpha") / best - 1)


def _listed(taus: tuple[int, ...]) -> str:
    return ", ".join(map(str, taus))
