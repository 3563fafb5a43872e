"""The tables of ``song2024.query_only``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.shares import share_interval
from attnscope.report.page import Cell, Table
from attnscope.trajectory import select
from attnscope.studies.song2024._query_only_cases import (
    KERNELS,
    SOLVED,
    STARTS,
    course,
    final_loss,
    speed,
)

if TYPE_CHECKING:
    from attnscope.studies.song2024.query_only import QueryOnly


def tables(study: QueryOnly, tree: xr.DataTree) -> list[Table]:
    """Return outcomes and gradients by start."""
    return [outcomes(study, tree), gradients(study, tree)]


def outcomes(study: QueryOnly, tree: xr.DataTree) -> Table:
    """Tabulate how many runs were solved, the median and the worst."""
    rows: list[tuple[Cell, ...]] = []
    for start in STARTS:
        for kernel in KERNELS:
            loss = final_loss(tree, kernel, start)
            share = share_interval(int((loss < SOLVED).sum()), len(loss))
            least = select(tree, "least_loss", f"{kernel}, {start}", "theory").to_numpy()
            rows.append(
                (
                    start,
                    kernel,
                    share.share,
                    share.low,
                    share.high,
                    float(np.median(loss)),
                    float(loss.max()),
                    None if np.isnan(least).any() else float(least.max()),
                )
            )
    columns = (
        "scale of the start",
        "kernel",
        f"share below {SOLVED:g}",
        "from",
        "to (95 %)",
        "median relative loss",
        "worst",
        "largest lower bound of any seed",
    )
    title = (
        f"W^Q trained alone: relative loss after gradient flow to time {study.time:g}, "
        f"{study.seeds} seeds"
    )
    return Table("outcomes", title, columns, tuple(rows))


def gradients(study: QueryOnly, tree: xr.DataTree) -> Table:
    """Tabulate gradients and saturation at both ends of the runs."""
    rows: list[tuple[Cell, ...]] = []
    for start in STARTS:
        for kernel in KERNELS:
            rate = speed(study, tree, kernel, start)
            cells: list[Cell] = [start, kernel]
            for point in (0, -1):
                cells += [float(np.median(rate[:, point]))]
                for name in ("jacobian", "saturated"):
                    cells += [float(np.median(course(tree, name, kernel, start)[:, point]))]
            rows.append(tuple(cells))
    heads = [
        f"{what}, {when}"
        for when in ("start", "end")
        for what in ("‖∂f/∂W^Q‖²/f (1/time)", "mean ‖∂s/∂c‖", "rows with ‖∂s/∂c‖ < 0.01")
    ]
    title = f"Where the gradient of W^Q gets lost, medians over {study.seeds} seeds"
    return Table("gradients", title, ("scale of the start", "kernel", *heads), tuple(rows))
