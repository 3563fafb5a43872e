"""The figures of ``snell2021.optimal_attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.agreement import random_baseline
from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule
from attnscope.studies.snell2021._optimal_readings import LEARNED, UNIFORM, curve

if TYPE_CHECKING:
    from attnscope.studies.snell2021.optimal_attention import BestAttention

PAPER = 0.53
"""A(α_opt, β) of the paper's model of Multi30k."""


def figures(study: BestAttention, tree: xr.DataTree) -> list[Figure]:
    """Return training, what attention is worth, and random problems."""
    return [training(study, tree), losses(study, tree), random_problems(study, tree)]


def training(study: BestAttention, tree: xr.DataTree) -> Figure:
    """Draw agreements and the gold position over steps."""
    steps = tree["observables/time"].to_numpy()
    agreements: list[Mark] = []
    names = (
        ("optimal_beta", "A(α_opt, β)"),
        ("optimal_attention", "A(α_opt, α)"),
        ("attention_beta", "A(α, β)"),
    )
    for i, (name, label) in enumerate(names):
        agreements += _curve(steps, curve(tree, name, LEARNED), label, i)
    chance = random_baseline([study.length + 1])
    agreements += [Rule(PAPER, "A(α_opt, β), Multi30k, paper"), Rule(chance, "chance")]
    gold: list[Mark] = []
    cases = (
        ("gold_optimal", LEARNED, "α_opt, learned attention"),
        ("gold_optimal", UNIFORM, "α_opt, uniform attention"),
        ("gold_attention", LEARNED, "α, learned attention"),
    )
    for i, (name, case, label) in enumerate(cases, 3):
        gold += _curve(steps, curve(tree, name, case), label, i)
    return Figure(
        "training",
        "Where attention should go, and where it goes",
        "Words of unseen sequences while a model with added output learns to copy, mean over "
        f"{study.seeds} seeds with their range. Left: agreement between optimal attention, "
        "attention and the lexical probe. Right: attention at the position that a word is copied "
        "from. Optimal attention finds it long before the model's own attention does, also if that "
        "is held at uniform.",
        (
            Panel("agreement (learned attention)", "step", "A(u, v)", tuple(agreements)),
            Panel("the right position", "step", "attention there", tuple(gold)),
        ),
        columns=2,
    )


def losses(study: BestAttention, tree: xr.DataTree) -> Figure:
    """Draw the loss with three attentions."""
    steps = tree["observables/time"].to_numpy()
    panels = []
    names = (
        ("loss", "the model's attention"),
        ("loss_optimal", "optimal attention"),
    )
    for case in (LEARNED, UNIFORM):
        marks: list[Mark] = []
        for i, (name, label) in enumerate(names):
            marks += _curve(steps, curve(tree, name, case), label, i)
        largest = curve(tree, "loss_largest", case).mean(axis=0)
        marks.append(Line(steps, largest, "all at the largest β", theory=True))
        panels.append(Panel(f"{case} attention", "step", "loss (nats)", tuple(marks)))
    return Figure(
        "losses",
        "What attention is worth",
        "Loss of the words of unseen sequences with the model's own attention, with the attention "
        "that minimises it, and with all attention where β is largest, mean over "
        f"{study.seeds} seeds with their range. The heuristic that attention goes to the largest β "
        "costs next to nothing here.",
        tuple(panels),
        columns=2,
    )


def random_problems(study: BestAttention, tree: xr.DataTree) -> Figure:
    """Draw how often the largest β is neglected with random logits."""
    x = np.array(study.outputs, dtype=float)
    panels = []
    for name, title, ylabel in (
        ("neglected", "largest β neglected", "share of problems"),
        ("agreed", "agreement", "A(α_opt, β)"),
    ):
        values = tree[f"theory/{name}"].to_numpy()
        marks: list[Mark] = []
        for i, spread in enumerate(study.spreads):
            part = values[:, i]
            mean, low, high = part.mean(axis=0), part.min(axis=0), part.max(axis=0)
            aside = 1.06 ** (i - (len(study.spreads) - 1) / 2)
            label = f"logits of size {spread:g}"
            marks += [Line(x * aside, mean, "", i), Dots(x * aside, mean, low, high, label, i)]
        ticks = tuple((float(o), str(o)) for o in study.outputs)
        panels.append(Panel(title, "outputs |O|", ylabel, tuple(marks), xscale="log", xticks=ticks))
    return Figure(
        "random",
        "Random logits: when the largest β is not where to look",
        f"{study.problems} problems of {study.positions} positions for each number of outputs, "
        f"with independent normal logits; mean over {study.seeds} draws with their range. Left: "
        "share in which the position with the largest β gets no optimal attention, which two "
        "outputs do not allow. Right: agreement of β with the optimal attention.",
        tuple(panels),
        columns=2,
    )


def _curve(steps: np.ndarray, values: np.ndarray, label: str, color: int) -> list[Mark]:
    band = Band(steps, values.min(axis=0), values.max(axis=0), color=color)
    return [band, Line(steps, values.mean(axis=0), label, color)]
