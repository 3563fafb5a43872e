"""The tables of ``snell2021.keyword``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.trajectory import select
from attnscope.studies.snell2021._keyword_cases import CASES
from attnscope.studies.snell2021._keyword_claims import WHEN
from attnscope.studies.snell2021._keyword_readings import (
    END,
    HALF,
    KEYWORD,
    LAST,
    PLACES,
    TWICE,
    at,
    moments,
    pick,
    reading,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.keyword import KeywordDrift


def tables(study: KeywordDrift, tree: xr.DataTree) -> list[Table]:
    """Return the four quantities at three moments, and attention at the end."""
    return [four(study, tree), attention(study, tree)]


def four(study: KeywordDrift, tree: xr.DataTree) -> Table:
    """Tabulate the four quantities early, just after learning, and at the end."""
    steps = tree["observables/time"].to_numpy()
    rows: list[tuple[Cell, ...]] = []
    for case in CASES:
        for when in (HALF, TWICE, END):
            points = moments(tree, case, when)
            step = _mean(np.where(points < 0, np.nan, steps[points]))
            gamma = at(tree, "gamma", case, when)
            values = [_mean(gamma[:, place]) for place in range(len(PLACES))]
            ahead = select(tree, "gamma_mean", case, "theory").to_numpy()
            two = _mean(pick(tree, ahead, case, when))
            accuracy = _mean(at(tree, "accuracy", case, when))
            rows.append((case, WHEN[when], step, *values, two, accuracy))
    columns = ("case", "when", "step", *PLACES, "mean γ by two plateaus", "accuracy")
    title = f"Log odds of positive sequences (nats), mean over {study.seeds} seeds"
    return Table("log-odds", title, columns, tuple(rows))


def attention(study: KeywordDrift, tree: xr.DataTree) -> Table:
    """Tabulate where attention goes, and when the last position overtakes the keyword."""
    rows: list[tuple[Cell, ...]] = []
    for case in CASES:
        alpha = at(tree, "alpha", case, END)
        places = [_mean(alpha[:, place]) for place in (KEYWORD, KEYWORD + 1, LAST)]
        rows.append((case, *places, _mean(_overtaken(tree, case))))
    columns = (
        "case",
        "α at the keyword",
        "α one after",
        "α at the last position",
        "γ_L exceeds γ_l* for good from step",
    )
    title = (
        f"Attention of positive sequences at the end, mean over {study.seeds} seeds, and the step "
        "from which the last position has the larger log odds; empty if that is not so at the end"
    )
    return Table("attention", title, columns, tuple(rows))


def _overtaken(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the first record step after which γ_L stays above γ_l*, NaN if there is none."""
    steps = tree["observables/time"].to_numpy()
    gamma = reading(tree, "gamma", case)
    found = []
    for run in gamma:
        behind = np.flatnonzero(run[:, LAST] <= run[:, KEYWORD])
        first = behind[-1] + 1 if behind.size else 0
        found.append(steps[first] if first < len(steps) else np.nan)
    return np.array(found)


def _mean(values: np.ndarray) -> Cell:
    value = float(np.mean(values))
    return None if np.isnan(value) else value
