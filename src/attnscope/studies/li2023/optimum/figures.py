"""The figures and tables of ``li2023.optimum``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.report import Dots, Figure, Heat, Line, Mark, Panel, Table
from attnscope.studies.li2023.optimum.claims import best
from attnscope.studies.li2023.optimum.landscapes import EDGES, FAR, HIGH, LOW, valley
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum.study import Optimum

AXES = ("α (ratio to another topic)", "β (ratio to another topic)")
FLOOR = 1e-3
"""Below this a colour would only tell how near a cell's middle happens to lie to the minimum."""
TAU = "τ, topics of a document"
GAMMA = "γ (ratio)"
EXACT = "exact minimiser"


def figures(study: Optimum, run: Readings) -> list[Figure]:
    """Draw Figs 7 and 8, the growth of γ, and training."""
    return [
        valleys(study, run),
        basins(study, run),
        growth(study, run),
        training(study, run),
        matrices(study, run),
    ]


def valleys(study: Optimum, run: Readings) -> Figure:
    """Draw the loss over α and β with Theorem 2's W^V: a valley of one γ."""
    panels = []
    for index, (tau, gamma) in enumerate(zip(study.landscape_taus, best(run), strict=True)):
        setting = study.landscape_setting(tau)
        bounds = li2023.gamma_bounds(setting)
        marks = (
            _heat(run, index, "blocks"),
            Line(*valley(setting, bounds.lower), "γ = λ₁(τ - 1)", color=1),
            Line(*valley(setting, bounds.upper), "γ = λ₂T", color=4),
            Line(*valley(setting, gamma), "best γ", theory=True),
        )
        panels.append(Panel(f"τ = {tau}: best γ = {gamma:.1f}", *AXES, marks, "log", "log"))
    return Figure(
        "fig7-landscapes",
        "Only γ matters: the loss has a valley, inside loose bounds",
        f"{_landscape(study, 2)} Along the dashed curve γ = ((v - 1)α + β)/v is the minimiser, and "
        "the loss is the same everywhere on it. Theorem 3 says that the valley lies between the "
        "two solid curves (Li 2023, Figs 7 and 8).",
        tuple(panels),
        columns=2,
    )


def basins(study: Optimum, run: Readings) -> Figure:
    """Draw the loss over α and β with Theorem 5's W^V: a basin at the word itself."""
    panels, axis, pairs = [], np.array([LOW, HIGH]), run.theory.landscape_diagonal.to_numpy()
    for index, (tau, (alpha, beta)) in enumerate(zip(study.landscape_taus, pairs, strict=True)):
        bounds = li2023.diagonal_bounds(study.landscape_setting(tau))
        slope = bounds.alpha_per_beta
        marks = (
            _heat(run, index, "diagonal"),
            Line(axis, np.full(2, bounds.beta.lower), "β = λ₃τ", color=1),
            Line(axis, np.full(2, bounds.beta.upper), "β = λ₄T", color=4),
            Line(np.array([LOW, slope * HIGH]), np.array([LOW / slope, HIGH]), "α = λ₅β", color=3),
            Dots(np.array([max(alpha, LOW)]), np.array([beta]), label="minimiser", color=0),
        )
        panels.append(Panel(f"τ = {tau}: best β = {beta:,.0f}", *AXES, marks, "log", "log"))
    return Figure(
        "fig8-diagonal",
        "With a diagonal W^V attention goes to the word itself",
        f"{_landscape(study, 5)} Theorem 5 says that the minimiser lies between the two horizontal "
        "lines and left of the slanted one. A minimiser with α = 0 is drawn on the left edge.",
        tuple(panels),
        columns=2,
    )


def growth(study: Optimum, run: Readings) -> Figure:
    """Draw the minimiser over τ with its bounds, for the paper's T and for a much larger one."""
    taus = np.unique(np.round(np.geomspace(2, 0.95 * study.landscape_topics, 30)).astype(int))
    panels = []
    for times in (1, FAR):
        settings = [study.landscape_setting(int(tau), times) for tau in taus]
        bounds = [li2023.gamma_bounds(setting) for setting in settings]
        marks: list[Mark] = [
            Line(taus, np.array([each.lower for each in bounds]), "λ₁(τ - 1)", color=1),
            Line(taus, np.array([each.upper for each in bounds]), "λ₂T", color=4),
            Line(taus, _best(settings, "attended"), "best γ, [MASK] attended", color=2),
            Line(taus, _best(settings, "paper"), "best γ", theory=True),
        ]
        if times == 1:
            at = np.array(study.landscape_taus)
            marks.append(Dots(at, best(run), label="the landscapes", color=0))
        title = f"T = {times * study.landscape_topics:,}, v = {study.landscape_words}"
        panels.append(Panel(title, TAU, GAMMA, tuple(marks), "log", "log"))
    return Figure(
        "growth",
        "The best γ grows with τ, in proportion while τ is small beside T",
        "The γ at which the exact loss of Stage 2 is least, against Theorem 3's bounds. Near τ = T "
        f"growth flattens; with {FAR} times as many topics γ follows the lower bound at a constant "
        "distance. The upper bound is thousands of times too large.",
        tuple(panels),
        columns=2,
    )


def training(study: Optimum, run: Readings) -> Figure:
    """Draw γ over training time, and where it ends over τ."""
    cases, known = list(study.topic_cases), run.theory
    gamma, time = run.ratios.sel(ratio="gamma"), run.ratios["time"].to_numpy()
    curves = [
        Line(time, curve, "" if seed else case, i)
        for i, case in enumerate(cases)
        for seed, curve in enumerate(gamma.sel(case=case).to_numpy())
    ]
    at = np.array(study.taus, dtype=float)
    free, mask, attended, paper = (
        known.get(name).sel(case=cases).isel(seed=0).to_numpy()
        for name in ("gamma_best", "mask_best", "gamma_attended", "gamma_paper")
    )
    curves += [Line(time[[0, -1]], np.full(2, end), EXACT, theory=True) for end in free]
    ended = final(run.ratios).sel(case=cases).transpose("seed", ...).astype(float)
    gammas = (
        Dots(at, *mean_interval(ended.sel(ratio="gamma").to_numpy()), "trained γ", color=0),
        Line(at, attended, "minimiser at μ = 1", color=5),
        Line(at, paper, "minimiser as printed", color=3),
        Line(at, free, EXACT, theory=True),
    )
    masks = (
        Dots(at, *mean_interval(ended.sel(ratio="mask").to_numpy()), "trained μ", color=0),
        Line(at, mask, EXACT, theory=True),
    )
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
            Panel("γ while training", "time (learning rate × step)", GAMMA, tuple(curves)),
            Panel("γ at the end", TAU, GAMMA, gammas, xticks=ticks),
            Panel("attention to [MASK] at the end", TAU, "μ (ratio)", masks, xticks=ticks),
        ),
    )


def matrices(study: Optimum, run: Readings) -> Figure:
    """Draw trained attention between all words, for the three W^V."""
    names = {
        list(study.topic_cases)[1]: "Theorem 2's W^V",
        study.diagonal_case: "diagonal W^V",
        study.shuffled_case: "W^V of shuffled topics",
    }
    panels = []
    for case, title in names.items():
        weights = final(run.of(case).attention).sel(seed=0).to_numpy()
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


def _heat(run: Readings, index: int, value: str) -> Heat:
    excess = run.theory.excess.sel(value=value).isel(landscape=index).to_numpy()
    label = "loss (minimum 0, uniform 1)"
    return Heat(EDGES, EDGES, np.maximum(excess, FLOOR), label, log=True)


def _best(settings: list[li2023.TopicSetting], mask: li2023.stage2.MaskKey) -> np.ndarray:
    return np.array([li2023.best_gamma(setting, mask) for setting in settings])


def _landscape(study: Optimum, theorem: int) -> str:
    return (
        f"The exact loss of Stage 2 over α and β with Theorem {theorem}'s W^V, "
        f"T = {study.landscape_topics}, v = {study.landscape_words}, scaled to 0 at its minimum "
        "and 1 at uniform attention; α is the attention to another word of the own topic and β "
        "that to the word itself, both over that to a word of another topic."
    )


def tables(study: Optimum, run: Readings) -> list[Table]:
    """Tabulate minimisers with their bounds, and the end of training."""
    size = f"T = {study.landscape_topics}, v = {study.landscape_words}"
    known, minima, basins = run.theory, [], []
    gammas, pairs, far = (
        known.get(f"landscape_{name}").to_numpy() for name in ("gamma", "diagonal", "far")
    )
    for i, tau in enumerate(study.landscape_taus):
        bounds = li2023.gamma_bounds(study.landscape_setting(tau))
        paper, attended = map(float, gammas[i])
        loose = (paper / bounds.lower, bounds.upper / paper)
        minima.append((tau, bounds.lower, paper, attended, bounds.upper, *loose, float(far[i])))
        own, (alpha, beta) = li2023.diagonal_bounds(study.landscape_setting(tau)), pairs[i]
        most = own.alpha_per_beta * float(beta)
        basins.append((tau, own.beta.lower, float(beta), own.beta.upper, float(alpha), most))
    return [
        Table(
            "minima",
            f"Theorem 3 against the exact loss, {size}",
            (
                "τ",
                "λ₁(τ - 1)",
                "best γ",
                "best γ, [MASK] attended",
                "λ₂T",
                "best γ over lower bound",
                "upper bound over best γ",
                "best γ with 100 T topics",
            ),
            tuple(minima),
        ),
        Table(
            "minima-diagonal",
            f"Theorem 5 against the exact loss, diagonal W^V, {size}",
            ("τ", "λ₃τ", "best β", "λ₄T", "best α", "λ₅β"),
            tuple(basins),
        ),
        trained(study, run),
    ]


def trained(study: Optimum, run: Readings) -> Table:
    """Tabulate where training ends."""
    rows = []
    for case in study.cases:
        setting, own = study.setting(case), run.of(case)
        ratios = final(own.ratios).astype(float).mean("seed")
        best: list[float | None] = [None] * 5
        if case in study.topic_cases:
            here = li2023.best_gamma_at(setting, float(ratios.sel(ratio="mask")))
            names = ("gamma_best", "mask_best", "gamma_attended", "gamma_paper")
            best = [here, *(float(own.theory.get(name)[0]) for name in names)]
        elif case == study.diagonal_case:
            values = li2023.diagonal_value_blocks(setting)
            pair = li2023.best_attention(setting, values, "attended")
            best[3] = float(li2023.mean_ratio(setting, *pair))
        spread, loss = (float(final(each).mean()) for each in (own.spread, own.loss))
        rows.append((case, *ratios.to_numpy().tolist(), spread, *best, loss))
    columns = (
        "case",
        "α",
        "β",
        "γ",
        "μ, to [MASK]",
        "spread of γ over words",
        "best γ at this μ",
        "best γ, μ free",
        "best μ",
        "best γ at μ = 1",
        "best γ as printed",
        "loss",
    )
    size = f"T = {study.topics}, v = {study.words}"
    title = f"End of training, mean over {study.seeds} seeds, {size}"
    return Table("trained", title, columns, tuple(rows))
