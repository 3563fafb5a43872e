"""The tables of ``song2024.convergence``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.song2024._convergence_cases import SETTINGS
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence import Convergence


def tables(study: Convergence, tree: xr.DataTree) -> list[Table]:
    """Return certificates along the runs, and what W^V alone can do."""
    return [certificates(study, tree), value_alone(study, tree)]


def certificates(study: Convergence, tree: xr.DataTree) -> Table:
    """Tabulate the certificate of the median start, and how it fared."""
    times = tree["observables/time"].to_numpy()
    rows: list[tuple[Cell, ...]] = []
    for case, setting in SETTINGS.items():
        beta = select(tree, "beta", case, "theory").to_numpy()
        certified = select(tree, "certified", case, "theory").to_numpy() > 0
        loss = select(tree, "relative_loss", case).to_numpy()
        bound = select(tree, "rate_bound", case, "theory").to_numpy()
        moved = select(tree, "moved", case).to_numpy()[:, -1]
        broken = int(((loss > bound * (1 + 1e-6)) & certified).any(axis=1).sum())
        until = [times[row.sum() - 1] if row.any() else 0.0 for row in certified]
        applies = bool((beta > 0).all())
        sigma = select(tree, "sigma_min", case).to_numpy()[:, 0]
        shift = select(tree, "feature_move", case).to_numpy().max(axis=1)
        rows.append(
            (
                case,
                study.heads * (study.wide if setting.start == "certified" else study.width),
                study.length * (study.sequences if setting.above else study.many_sequences),
                float(np.median(beta)) if applies else None,
                float(np.median(until)) if applies else None,
                broken if applies else None,
                float(np.exp(-np.median(beta) * study.time)) if applies else None,
                float(np.median(shift / sigma)) if applies else None,
                float(np.median(loss[:, -1])),
                float(loss[:, -1].max()),
                *(float(np.median(part)) for part in moved.T),
            )
        )
    columns = (
        "case",
        "HD",
        "Nn",
        "β (1/time)",
        "certified up to time",
        "runs above the bound while certified",
        "bound at the end / f(0)",
        "largest ‖B - B_0‖₂ / σ_min(B_0)",
        "relative loss at the end",
        "worst of any seed",
        "‖ΔW^Q‖",
        "‖ΔW^K‖",
        "‖ΔW^V‖",
    )
    title = (
        f"Certificates: medians over {study.seeds} seeds, runs to time {study.time:g}; empty where "
        "Theorem 1 does not apply"
    )
    return Table("certificates", title, columns, tuple(rows))


def value_alone(study: Convergence, tree: xr.DataTree) -> Table:
    """Tabulate the least-squares residual of W^V alone."""
    rows: list[tuple[Cell, ...]] = []
    for case, setting in SETTINGS.items():
        if setting.descent:
            continue
        residual = select(tree, "value_residual", case, "theory").to_numpy()
        sigma = select(tree, "sigma_min", case).to_numpy()[:, 0]
        rows.append(
            (
                case,
                float(np.median(sigma)),
                float(np.median(residual)),
                float(residual.min()),
                float(residual.max()),
                int((residual < 1e-10).sum()),
                len(residual),
            )
        )
    columns = (
        "case",
        "σ_Nn(B_0)",
        "residual, median",
        "smallest",
        "largest",
        "seeds below 1e-10",
        "seeds",
    )
    title = "W^V alone: smallest relative loss over all W^V at the W^Q, W^K and W^O of the start"
    return Table("value-alone", title, columns, tuple(rows))
