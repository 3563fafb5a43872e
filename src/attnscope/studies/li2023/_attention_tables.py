"""The tables of ``li2023.attention``: Tables 3 and 4 beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims.claim import summarise
from attnscope.report.page import Cell, Table
from attnscope.studies.li2023 import _attention_claims as said
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention import Attention


def tables(study: Attention, tree: xr.DataTree) -> list[Table]:
    """Return Table 3, the runs that Table 4 is drawn from, and Table 4."""
    out = [_table3(study, tree)]
    if said.pool(study):
        out += [_runs(study, tree), _table4(study, tree)]
    return out


def _table3(study: Attention, tree: xr.DataTree) -> Table:
    rows = []
    for case in study.cases():
        ours = said.ends(tree, case)
        cells: list[Cell] = [case]
        for kind in range(len(said.KINDS)):
            mean, low, high, _ = summarise(ours[:, kind], each=False)
            paper = said.TABLE3.get(case)
            cells += [mean, (high - low) / 2, None if paper is None else paper[kind]]
        cells += [
            float((ours[:, said.TOPIC] / ours[:, said.OTHER]).mean()),
            float(select(tree, "masked", case).isel(snapshot=-1).mean()),
            float(select(tree, "loss", case).isel(step=-1).mean()),
        ]
        rows.append(tuple(cells))
    columns = ["setting"]
    for name in said.KINDS:
        columns += [name, f"± (95 %), {name}", f"paper, {name}"]
    columns += ["same topic / different topics", "attention to [MASK]", "held-out loss (nats)"]
    title = (
        f"Table 3: mean attention × length / 100 after {study.epochs:,} steps, {study.seeds} seeds"
    )
    return Table("table3", title, tuple(columns), tuple(rows))


def _runs(study: Attention, tree: xr.DataTree) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for case in said.pool(study):
        stands_out, ours = said.prominence(study, tree, case), said.ends(tree, case)
        for seed in range(study.seeds):
            visible = bool(stands_out[seed] > said.VISIBLE)
            rows.append((case, seed, float(stands_out[seed]), visible, *ours[seed].tolist()))
    columns = ("setting", "seed", "diagonal of W^V stands out (sd)", "chosen", *said.KINDS)
    return Table("table4-runs", "The runs that Table 4 chooses from", columns, tuple(rows))


def _table4(study: Attention, tree: xr.DataTree) -> Table:
    everything = np.concatenate([said.ends(tree, case) for case in said.pool(study)])
    chosen = said.diagonal_runs(study, tree)

    def row(name: str, values: np.ndarray) -> tuple[Cell, ...]:
        means = [float(mean) for mean in values.mean(axis=0)] if len(values) else [None] * 3
        return (name, len(values), *means)

    rows = (
        row("all runs", everything),
        row(f"diagonal stands out by more than {said.VISIBLE:g} sd", chosen),
        ("paper, chosen by eye from 10", 7, *said.TABLE4),
    )
    title = "Table 4: Adam, all runs and those chosen for a diagonal W^V"
    return Table("table4", title, ("runs", "number", *said.KINDS), rows)
