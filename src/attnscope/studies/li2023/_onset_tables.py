"""The tables of ``li2023.onset``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.li2023._onset_readings import error, measured, predicted

if TYPE_CHECKING:
    from attnscope.studies.li2023.onset import Onset


def tables(study: Onset, tree: xr.DataTree) -> list[Table]:
    """Return predicted and measured onset: means over seeds, and every seed by flow."""
    rows: list[tuple[Cell, ...]] = []
    each: list[tuple[Cell, ...]] = []
    for case, (rate, noise) in study.settings().items():
        found, closed, ahead = (
            measured(tree, case),
            predicted(tree, case, "closed"),
            predicted(tree, case, "ahead"),
        )
        engine = "flow" if rate is None else f"{rate:g}"
        rows.append(
            (
                engine,
                noise,
                _mean(found),
                _mean(closed),
                _mean(ahead),
                _largest(100 * error(tree, case, "closed")),
                _largest(100 * error(tree, case, "ahead")),
            )
        )
        if rate is None and noise in study.noises:
            for seed in range(study.seeds):
                cells = (found[seed], closed[seed], ahead[seed])
                each.append((noise, seed, *(_number(cell) for cell in cells)))
    columns = (
        "learning rate",
        "noise",
        "measured onset (time)",
        "closed form (time)",
        "linear system (time)",
        "largest error of the closed form (%)",
        "largest error of the linear system (%)",
    )
    title = f"Onset of attention, mean over {study.seeds} seeds; errors are the largest of any seed"
    heads = (
        "noise",
        "seed",
        "measured onset (time)",
        "closed form (time)",
        "linear system (time)",
    )
    return [
        Table("onset", title, columns, tuple(rows)),
        Table("seeds", "Onset by flow, seed by seed", heads, tuple(each)),
    ]


def _mean(values: np.ndarray) -> Cell:
    return _number(float(np.mean(values)))


def _largest(values: np.ndarray) -> Cell:
    return _number(float(np.max(values)))


def _number(value: float) -> Cell:
    return None if math.isnan(value) else float(value)
