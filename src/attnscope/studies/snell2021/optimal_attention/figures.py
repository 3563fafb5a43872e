"""The figures and tables of ``snell2021.optimal_attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.lexicon.agreement import random_baseline
from attnscope.report import Cell, Dots, Figure, Line, Mark, Panel, Rule, Table
from attnscope.studies.snell2021._snell import extent, ranged
from attnscope.studies.snell2021.optimal_attention.claims import curve
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.snell2021.optimal_attention.study import OptimalAttentionStudy

PAPER = 0.53
"""A(α_opt, β) of the paper's model of Multi30k."""


def figures_of(study: OptimalAttentionStudy, run: Readings) -> list[Figure]:
    """Draw agreement along training, what attention is worth, and random problems."""
    return [training(study, run), losses(study, run), random_problems(study, run)]


def training(study: OptimalAttentionStudy, run: Readings) -> Figure:
    """Draw agreements and the gold position over steps."""
    agreements = [
        *ranged(curve(run, "optimal_beta"), "A(α_opt, β)", 0),
        *ranged(curve(run, "optimal_attention"), "A(α_opt, α)", 1),
        *ranged(curve(run, "attention_beta"), "A(α, β)", 2),
        Rule(PAPER, "A(α_opt, β), Multi30k, paper"),
        Rule(random_baseline([study.length + 1]), "chance"),
    ]
    gold = [
        *ranged(curve(run, "gold_optimal"), "α_opt, learned attention", 3),
        *ranged(curve(run, "gold_optimal", "uniform"), "α_opt, uniform attention", 4),
        *ranged(curve(run, "gold_attention"), "α, learned attention", 5),
    ]
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


def losses(study: OptimalAttentionStudy, run: Readings) -> Figure:
    """Draw the loss with three attentions."""
    panels = []
    for case in study.cases:
        largest = curve(run, "loss_largest", case)
        x, y = largest["time"].to_numpy(), extent(largest)[0]
        marks = (
            *ranged(curve(run, "loss", case), "the model's attention", 0),
            *ranged(curve(run, "loss_optimal", case), "optimal attention", 1),
            Line(x, y, "all at the largest β", theory=True),
        )
        panels.append(Panel(f"{case} attention", "step", "loss (nats)", marks))
    return Figure(
        "losses",
        "What attention is worth",
        "Loss of the words of unseen sequences with the model's own attention, with the "
        "attention that minimises it, and with all attention where β is largest, mean over "
        f"{study.seeds} seeds with their range. The heuristic that attention goes to the "
        "largest β costs next to nothing here.",
        tuple(panels),
        columns=2,
    )


def random_problems(study: OptimalAttentionStudy, run: Readings) -> Figure:
    """Draw how often the largest β is neglected with random logits."""
    panels = []
    for name, title, ylabel in (
        ("neglected", "largest β neglected", "share of problems"),
        ("agreed", "agreement", "A(α_opt, β)"),
    ):
        marks: list[Mark] = []
        for i, spread in enumerate(study.spreads):
            mean, low, high = extent(run.theory.get(name).isel(spread=i), "draw")
            x = np.array(study.outputs) * 1.06 ** (i - (len(study.spreads) - 1) / 2)
            label = f"logits of size {spread:g}"
            marks += [Line(x, mean, "", i), Dots(x, mean, low, high, label, i)]
        ticks = tuple((float(count), str(count)) for count in study.outputs)
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


def tables_of(study: OptimalAttentionStudy, run: Readings) -> list[Table]:
    """Tabulate the counterexample, quantities along training, and random problems."""
    theory, steps = run.theory, run.optimal["time"].to_numpy()
    alpha, beta = theory.counterexample, theory.counterexample_beta
    example = [(at + 1, float(beta[at]), float(alpha[at])) for at in range(alpha.size)]
    shown = np.unique(np.linspace(0, len(steps) - 1, 4).round().astype(int))
    along: list[tuple[Cell, ...]] = [
        (f"{case} attention", meaning, *map(float, extent(curve(run, name, case))[0][shown]))
        for case in study.cases
        for name, meaning in study.quantities.items()
        # Uniform attention has no largest position to agree with.
        if case == "learned" or name not in ("attention_beta", "optimal_attention")
    ]
    neglected, agreed = 100 * theory.neglected.mean("draw"), theory.agreed.mean("draw")
    random = [
        (spread, outputs, float(neglected[i, j]), float(agreed[i, j]))
        for i, spread in enumerate(study.spreads)
        for j, outputs in enumerate(study.outputs)
    ]
    title = f"The example of eq 30: p at α_opt is {float(theory.counterexample_p):.4f}"
    words = f"Words of unseen sequences along training, mean over {study.seeds} seeds"
    when = (f"step {steps[at]:g}" for at in shown)
    seeds = f"mean over {study.seeds} draws"
    logits = f"Problems of {study.positions} positions with random logits, {seeds}"
    columns = ("size of logits", "outputs |O|", "largest β neglected (%)", "A(α_opt, β)")
    return [
        Table("counterexample", title, ("position", "β", "α_opt"), tuple(example)),
        Table("training", words, ("case", "quantity", *when), tuple(along)),
        Table("random", logits, columns, tuple(random)),
    ]
