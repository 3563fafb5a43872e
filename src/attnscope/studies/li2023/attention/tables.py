"""The tables of ``li2023.attention``: Tables 3 and 4 beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.report import Cell, Table
from attnscope.studies.li2023._held_out import KINDS, ratio
from attnscope.studies.li2023.attention.claims import (
    TABLE3,
    TABLE4,
    VISIBLE,
    prominence,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention.study import AttentionStudy


def tables(study: AttentionStudy, run: Readings) -> list[Table]:
    """Print Tables 3 and 4 beside the paper's, and the runs that Table 4 is drawn from."""
    return [table3(study, run), *(table4(study, run) if study.pool else ())]


def table3(study: AttentionStudy, run: Readings) -> Table:
    """Tabulate the three means of every setting."""
    rows = []
    for case in study.cases:
        own, cells = run.of(case), list[Cell]()
        ours = final(own.attention)
        for kind, paper in zip(KINDS, TABLE3.get(case, (None,) * 3), strict=True):
            mean, low, high = mean_interval(ours.sel(kind=kind).to_numpy())
            cells += [float(mean), float(high - low) / 2, paper]
        more = (ratio(ours), final(own.masked), final(own.loss))
        rows.append((case, *cells, *(float(each.mean()) for each in more)))
    columns = [
        "setting",
        *(head for name in KINDS for head in (name, f"± (95 %), {name}", f"paper, {name}")),
        "same topic / different topics",
        "attention to [MASK]",
        "held-out loss (nats)",
    ]
    title = (
        f"Table 3: mean attention × length / 100 after {study.training.steps:,} steps, "
        f"{study.seeds} seeds"
    )
    return Table("table3", title, tuple(columns), tuple(rows))


def table4(study: AttentionStudy, run: Readings) -> tuple[Table, Table]:
    """Tabulate the runs that are chosen from, and means of all and of the chosen ones."""
    runs: list[tuple[Cell, ...]] = []
    for case in study.pool:
        ours = final(run.of(case).attention).to_numpy()
        for seed, stands_out in enumerate(prominence(run, case)):
            visible = bool(stands_out > VISIBLE)
            runs.append((case, seed, float(stands_out), visible, *ours[seed].tolist()))
    everything = np.array([row[4:] for row in runs])

    def row(name: str, values: np.ndarray) -> tuple[Cell, ...]:
        means = values.mean(axis=0).tolist() if len(values) else [None] * 3
        return (name, len(values), *means)

    rows = (
        row("all runs", everything),
        row(
            f"diagonal stands out by more than {VISIBLE:g} sd",
            everything[[bool(row[3]) for row in runs]],
        ),
        ("paper, chosen by eye from 10", 7, *TABLE4),
    )
    title = "Table 4: Adam, all runs and those chosen for a diagonal W^V"
    columns = ("setting", "seed", "diagonal of W^V stands out (sd)", "chosen", *KINDS)
    return (
        Table("table4-runs", "The runs that Table 4 chooses from", columns, tuple(runs)),
        Table("table4", title, ("runs", "number", *KINDS), rows),
    )
