"""The tables of ``snell2021.initial_derivative``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.trajectory import select
from attnscope.studies.snell2021._derivative_readings import (
    MIXTURE,
    PERMUTATIONS,
    apart,
    error,
    limit,
    slopes,
    width_case,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.initial_derivative import InitialDerivative


def tables(study: InitialDerivative, tree: xr.DataTree) -> list[Table]:
    """Return slopes and errors by width, and the verdicts before training."""
    return [by_width(study, tree), knowledge(study, tree)]


def by_width(study: InitialDerivative, tree: xr.DataTree) -> Table:
    """Tabulate slopes, distances to the limit and errors of the predicted θ."""
    rows: list[tuple[Cell, ...]] = []
    for width in study.widths:
        case = width_case(width)
        size = np.sqrt((limit(tree, case) ** 2).sum(axis=(1, 2)))
        ahead = select(tree, "expected_error", case, "theory").to_numpy()
        rows.append(
            (
                width,
                _mean(slopes(tree, "logits_velocity", case, 1.0, False)),
                _mean(slopes(tree, "theta_velocity", case, 1.0, False)),
                _mean(slopes(tree, "theta_velocity", case, 1 / study.vocabulary, False)),
                _mean(100 * error(tree, case) / size),
                _mean(100 * ahead / size),
                float(apart(tree, case, "exact").max()),
                float(apart(tree, case, "limit").max()),
                float(apart(tree, case, "early").max()),
            )
        )
    columns = (
        "width d",
        "slope of logits (eq 54)",
        "slope of θ (eq 15 as printed)",
        "slope of θ (eq 15 corrected)",
        "distance to the limit (%)",
        "expected distance (%)",
        "largest error of θ, flow from the actual start",
        "largest error of θ, flow at infinite width",
        "largest error of θ, first order",
    )
    title = f"Derivative at time 0 and θ along the flow, {study.seeds} seeds: means and largest"
    return Table("widths", title, columns, tuple(rows))


def knowledge(study: InitialDerivative, tree: xr.DataTree) -> Table:
    """Tabulate what counts say before training, and what the proxy learned."""
    rows: list[tuple[Cell, ...]] = []
    names = {
        width_case(study.common): f"{study.length} of {study.types} words",
        PERMUTATIONS: "permutations",
        MIXTURE: "mixture of permutations",
    }
    for case, label in names.items():
        known = [study.knowledge(case, seed) for seed in range(study.seeds)]
        rows.append(
            (
                label,
                known[0].learnable,
                float(np.mean([k.table_variation for k in known])),
                float(np.mean([k.mean_variation for k in known])),
                float(np.mean([k.mean_gold_mass for k in known])),
                _mean(select(tree, "variation", case).isel(step=-1).to_numpy()),
                _mean(select(tree, "gold_mass", case).isel(step=-1).to_numpy()),
                _mean(select(tree, "gold_largest", case).isel(step=-1).to_numpy()),
            )
        )
    columns = (
        "task",
        "verdict from counts (seed 0)",
        "rows of Trans apart",
        "α^IBM from uniform",
        "α^IBM at gold",
        "β^px from uniform, end of run",
        "β^px at gold over its sum, end of run",
        "gold has the largest β^px, end of run",
    )
    title = (
        f"What counts say before training and what the proxy learned at d = {study.common:,}, "
        f"mean over {study.seeds} seeds"
    )
    return Table("knowledge", title, columns, tuple(rows))


def _mean(values: np.ndarray) -> Cell:
    return float(np.mean(values))
