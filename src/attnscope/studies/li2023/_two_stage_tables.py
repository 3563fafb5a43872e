"""The tables of ``li2023.two_stage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.li2023._two_stage_readings import onset, predicted, reaches
from attnscope.studies.li2023._two_stage_settings import MATRICES, SETTINGS, VALUE
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.two_stage import TwoStage


def tables(study: TwoStage, tree: xr.DataTree) -> list[Table]:
    """Return when each matrix starts, and the onset with its prediction."""
    return [starts(study, tree), onsets(study, tree)]


def starts(study: TwoStage, tree: xr.DataTree) -> Table:
    """Tabulate the steps where changes reach 10 % and 50 % of their maximum."""
    rows: list[tuple[Cell, ...]] = []
    for case, setting in SETTINGS.items():
        noise = None if setting.attention == "uniform" else setting.noise
        cells: list[Cell] = [case, setting.lr, noise]
        for matrix in (VALUE, *range(VALUE)):
            cells += [_mean(reaches(tree, case, matrix, share)) for share in (0.1, 0.5)]
        cells += [_mean(select(tree, "loss", case).isel(step=-1).to_numpy())]
        rows.append(tuple(cells))
    heads = [
        f"W^{MATRICES[matrix]} reaches {share} % (step)"
        for matrix in (VALUE, *range(VALUE))
        for share in (10, 50)
    ]
    return Table(
        "starts",
        "Steps where the change of a matrix reaches 10 % and 50 % of its maximum, mean over "
        f"{study.seeds} seeds",
        ("case", "learning rate", "noise", *heads, "loss at the end (nats)"),
        tuple(rows),
    )


def onsets(study: TwoStage, tree: xr.DataTree) -> Table:
    """Tabulate measured and predicted onset."""
    rows: list[tuple[Cell, ...]] = []
    for case, setting in SETTINGS.items():
        if setting.attention == "uniform":
            continue
        found, ahead = onset(tree, case), predicted(tree, case)
        error = 100 * float(np.max(np.abs(ahead / found - 1)))
        rows.append((case, _mean(found), _mean(ahead), None if np.isnan(error) else error))
    columns = (
        "case",
        "measured onset (step)",
        "predicted onset (step)",
        "largest error of any seed (%)",
    )
    title = (
        f"Step where ‖W^Kᵀ W^Q‖₂ reaches 1, mean over {study.seeds} seeds; empty where it does "
        "not, and where the theory does not apply"
    )
    return Table("onsets", title, columns, tuple(rows))


def _mean(values: np.ndarray) -> Cell:
    value = float(np.mean(values))
    return None if np.isnan(value) else value
