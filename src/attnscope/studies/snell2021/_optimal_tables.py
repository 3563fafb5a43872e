"""The tables of ``snell2021.optimal_attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.snell2021._optimal_readings import LEARNED, QUANTITIES, UNIFORM, curve

if TYPE_CHECKING:
    from attnscope.studies.snell2021.optimal_attention import BestAttention


def tables(study: BestAttention, tree: xr.DataTree) -> list[Table]:
    """Return the counterexample, what was read along training, and random problems."""
    return [counterexample(tree), training(study, tree), random_problems(study, tree)]


def counterexample(tree: xr.DataTree) -> Table:
    """Tabulate eq 30."""
    alpha, beta = (
        tree[f"theory/{name}"].to_numpy() for name in ("counterexample", "counterexample_beta")
    )
    rows = tuple((at + 1, float(beta[at]), float(alpha[at])) for at in range(len(alpha)))
    title = f"The example of eq 30: p at α_opt is {float(tree['theory/counterexample_p']):.4f}"
    return Table("counterexample", title, ("position", "β", "α_opt"), rows)


def training(study: BestAttention, tree: xr.DataTree) -> Table:
    """Tabulate every quantity at some steps, mean over seeds."""
    steps = tree["observables/time"].to_numpy()
    shown = np.unique(np.linspace(0, len(steps) - 1, 4).round().astype(int))
    rows: list[tuple[Cell, ...]] = []
    for case in (LEARNED, UNIFORM):
        for name, meaning in QUANTITIES.items():
            # Uniform attention has no largest position to agree with.
            if case == UNIFORM and name in ("attention_beta", "optimal_attention"):
                continue
            values = curve(tree, name, case).mean(axis=0)[shown]
            rows.append((f"{case} attention", meaning, *(float(value) for value in values)))
    columns = ("case", "quantity", *(f"step {steps[at]:g}" for at in shown))
    title = f"Words of unseen sequences along training, mean over {study.seeds} seeds"
    return Table("training", title, columns, tuple(rows))


def random_problems(study: BestAttention, tree: xr.DataTree) -> Table:
    """Tabulate how often the largest β is neglected with random logits."""
    neglected, agreed = (tree[f"theory/{name}"].to_numpy() for name in ("neglected", "agreed"))
    rows: list[tuple[Cell, ...]] = []
    for i, spread in enumerate(study.spreads):
        for j, outputs in enumerate(study.outputs):
            cells = (100 * neglected[:, i, j].mean(), agreed[:, i, j].mean())
            rows.append((spread, outputs, *(float(cell) for cell in cells)))
    columns = ("size of logits", "outputs |O|", "largest β neglected (%)", "A(α_opt, β)")
    title = (
        f"Problems of {study.positions} positions with random logits, mean over {study.seeds} draws"
    )
    return Table("random", title, columns, tuple(rows))
