"""The figures of ``li2023.optimum``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Dots, Figure, Heat, Line, Mark, Panel
from attnscope.studies.li2023._optimum_claims import final, landscape_gamma
from attnscope.studies.li2023._optimum_landscapes import FAR, HIGH, LOW, edges, valley
from attnscope.studies.li2023._optimum_records import RATIOS
from attnscope.studies.li2023._optimum_theory import best_ratios
from attnscope.trajectory import select
from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum import Optimum

ALPHA = "α (ratio to another topic)"
BETA = "β (ratio to another topic)"
EXCESS = "loss (minimum 0, uniform 1)"
FLOOR = 1e-3
"""Below this a colour would only tell how near a cell's middle happens to lie to the minimum."""
RATIOS_SAID = (
    "α is the attention to another word of the own topic and β that to the word itself, both over "
    "that to a word of another topic"
)


def figures(study: Optimum, tree: xr.DataTree) -> list[Figure]:
    """Return Figs 7 and 8, the growth of γ, training, and trained attention."""
    return [
        landscapes(study, tree),
        diagonal_landscapes(study, tree),
        growth(study, tree),
        training(study, tree),
        matrices(study, tree),
    ]


def landscapes(study: Optimum, tree: xr.DataTree) -> Figure:
    """Draw the loss over α and β with Theorem 2's W^V: a valley of one γ."""
    panels = []
    for index, tau in enumerate(study.landscape_taus):
        setting = study.landscape_setting(tau)
        bounds = li2023.gamma_bounds(setting)
        best = float(landscape_gamma(tree)[index])
        marks = (
            _heat(tree, index, 0),
            Line(*valley(setting, bounds.lower), "γ = λ₁(τ - 1)", color=1),
            Line(*valley(setting, bounds.upper), "γ = λ₂T", color=4),
            Line(*valley(setting, best), "best γ", theory=True),
        )
        panels.append(Panel(f"τ = {tau}: best γ = {best:.1f}", ALPHA, BETA, marks, "log", "log"))
    return Figure(
        "fig7-landscapes",
        "Only γ matters: the loss has a valley, inside loose bounds",
        f"The exact loss of Stage 2 over α and β with Theorem 2's W^V, {_size(study)}, scaled to 0 "
        f"at its minimum and 1 at uniform attention; {RATIOS_SAID}. Along the dashed curve "
        "γ = ((v - 1)α + β)/v is the minimiser, and the loss is the same everywhere on it. Theorem "
        "3 says that the valley lies between the two solid curves (Li 2023, Figs 7 and 8).",
        tuple(panels),
        columns=2,
    )


def diagonal_landscapes(study: Optimum, tree: xr.DataTree) -> Figure:
    """Draw the loss over α and β with Theorem 5's W^V: a basin at the word itself."""
    panels = []
    axis = np.array([LOW, HIGH])
    for index, tau in enumerate(study.landscape_taus):
        bounds = li2023.diagonal_bounds(study.landscape_setting(tau))
        alpha, beta = tree["theory/landscape_diagonal"].to_numpy()[index]
        slope = bounds.alpha_per_beta
        marks = (
            _heat(tree, index, 1),
            Line(axis, np.full(2, bounds.beta.lower), "β = λ₃τ", color=1),
            Line(axis, np.full(2, bounds.beta.upper), "β = λ₄T", color=4),
            Line(np.array([LOW, slope * HIGH]), np.array([LOW / slope, HIGH]), "α = λ₅β", color=3),
            Dots(
                np.array([max(alpha, LOW)]),
                np.array([beta]),
                label="minimiser",
                color=0,
            ),
        )
        panels.append(Panel(f"τ = {tau}: best β = {beta:,.0f}", ALPHA, BETA, marks, "log", "log"))
    return Figure(
        "fig8-diagonal",
        "With a diagonal W^V attention goes to the word itself",
        f"The exact loss of Stage 2 over α and β with Theorem 5's W^V, {_size(study)}, scaled to 0 "
        f"at its minimum and 1 at uniform attention; {RATIOS_SAID}. Theorem 5 says that the "
        "minimiser lies between the two horizontal lines and left of the slanted one. A minimiser "
        "with α = 0 is drawn on the left edge.",
        tuple(panels),
        columns=2,
    )


def growth(study: Optimum, tree: xr.DataTree) -> Figure:
    """Draw the minimiser over τ with its bounds, for the paper's T and for a much larger one."""
    taus = np.unique(np.round(np.geomspace(2, 0.95 * study.landscape_topics, 30)).astype(int))
    panels = []
    for times in (1, FAR):
        settings = [study.landscape_setting(int(tau), times) for tau in taus]
        bounds = [li2023.gamma_bounds(setting) for setting in settings]
        paper, attended = (
            np.array([li2023.best_gamma(setting, mask) for setting in settings])
            for mask in ("paper", "attended")
        )
        at = np.array(study.landscape_taus)
        marks: tuple[Mark, ...] = (
            Line(taus, np.array([b.lower for b in bounds]), "λ₁(τ - 1)", color=1),
            Line(taus, np.array([b.upper for b in bounds]), "λ₂T", color=4),
            Line(taus, attended, "best γ, [MASK] attended", color=2),
            Line(taus, paper, "best γ", theory=True),
        )
        if times == 1:
            marks = (*marks, Dots(at, landscape_gamma(tree), label="the landscapes", color=0))
        title = f"T = {times * study.landscape_topics:,}, v = {study.landscape_words}"
        label = "τ, topics of a document"
        panels.append(Panel(title, label, "γ (ratio)", marks, "log", "log"))
    return Figure(
        "growth",
        "The best γ grows with τ, in proportion while τ is small beside T",
        "The γ at which the exact loss of Stage 2 is least, against Theorem 3's bounds. Near τ = T "
        f"growth flattens; with {FAR} times as many topics γ follows the lower bound at a constant "
        "distance. The upper bound is thousands of times too large.",
        tuple(panels),
        columns=2,
    )


def training(study: Optimum, tree: xr.DataTree) -> Figure:
    """Draw γ over training time, and where it ends over τ."""
    time = tree["observables/time"].to_numpy()
    curves: list[Mark] = []
    ends: list[Mark] = []
    for index, (tau, case) in enumerate(study.topic_cases().items()):
        gamma = select(tree, "ratios", case).isel(ratio=RATIOS.index("gamma")).to_numpy()
        curves += [
            Line(time, row, f"τ = {tau}" if seed == 0 else "", index)
            for seed, row in enumerate(gamma)
        ]
        best = float(select(tree, "gamma_best", case, "theory")[0])
        ends.append(Line(time[[0, -1]], np.full(2, best), "exact minimiser", theory=True))
    settings = [study.setting(tau) for tau in study.taus]
    at = np.array(study.taus, dtype=float)
    free = np.array([best_ratios(setting) for setting in settings])
    cases = study.topic_cases().values()
    gammas = [
        *_ended([final(tree, case, "gamma") for case in cases], at, "trained γ"),
        Line(at, _best(settings, "attended"), "minimiser at μ = 1", color=5),
        Line(at, _best(settings, "paper"), "minimiser as printed", color=3),
        Line(at, free[:, 0], "exact minimiser", theory=True),
    ]
    masks = [
        *_ended([final(tree, case, "mask_ratio") for case in cases], at, "trained μ"),
        Line(at, free[:, 1], "exact minimiser", theory=True),
    ]
    label = "τ, topics of a document"
    ticks = tuple((float(tau), str(tau)) for tau in study.taus)
    return Figure(
        "training",
        "Training ends at the minimiser of the exact loss",
        f"W^K and W^Q trained from noise of {study.noise:g} with W^V held at Theorem 2's blocks, "
        f"T = {study.topics}, v = {study.words}, {study.seeds} seeds, on the whole population. "
        "Left: γ over time. Middle: its end, with 95 % intervals, against the minimiser of the "
        "exact loss if attention to [MASK], μ, is free (dashed), is that to another topic, or is "
        "left out as printed. Right: μ itself, which arrives last.",
        (
            Panel("γ while training", "time (learning rate × step)", "γ (ratio)", (*curves, *ends)),
            Panel("γ at the end", label, "γ (ratio)", tuple(gammas), xticks=ticks),
            Panel("attention to [MASK] at the end", label, "μ (ratio)", tuple(masks), xticks=ticks),
        ),
    )


def matrices(study: Optimum, tree: xr.DataTree) -> Figure:
    """Draw trained attention between all words, for the three W^V."""
    names = {
        study.topic_cases()[study.compared]: "Theorem 2's W^V",
        study.diagonal_case: "diagonal W^V",
        study.shuffled_case: "W^V of shuffled topics",
    }
    panels = []
    for case, title in names.items():
        weights = select(tree, "attention", case).isel(run=0, end=-1).to_numpy()
        cells = np.arange(len(weights) + 1) - 0.5
        values = np.log2(weights * len(weights))
        values[:, 0] = np.nan  # nothing is trained where [MASK] is seen
        heat = Heat(cells, cells, values, "log₂ of attention over uniform attention", True)
        panels.append(Panel(title, "word that looks", "word looked at, 0 is [MASK]", (heat,)))
    return Figure(
        "attention",
        "What is attended to follows W^V",
        f"Trained attention between all words at τ = {study.compared}, seed 0, relative to uniform "
        "attention. With blocks in W^V a word attends to its whole topic, with a diagonal W^V to "
        "itself, and with blocks that are not the topics mostly to itself.",
        tuple(panels),
    )


def _heat(tree: xr.DataTree, index: int, value: int) -> Heat:
    excess = tree["theory/excess"].to_numpy()[index, value]
    return Heat(edges(), edges(), np.maximum(excess, FLOOR), EXCESS, log=True)


def _best(settings: list[TopicSetting], mask: li2023.stage2.MaskKey) -> np.ndarray:
    return np.array([li2023.best_gamma(setting, mask) for setting in settings])


def _ended(values: list[np.ndarray], at: np.ndarray, label: str) -> list[Mark]:
    mean, low, high = mean_interval(np.array(values).T)
    return [Dots(at, mean, low, high, label, color=0)]


def _size(study: Optimum) -> str:
    return f"T = {study.landscape_topics}, v = {study.landscape_words}"
