"""The figures of ``song2024.convergence``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Band, Figure, Line, Mark, Panel
from attnscope.studies.song2024._convergence_cases import KERNELS
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence import Convergence

FLOOR = 1e-10
"""Relative loss below which the solver's tolerance speaks."""


def figures(study: Convergence, tree: xr.DataTree) -> list[Figure]:
    """Return losses with bounds, and the constants along the runs."""
    return [losses(study, tree), constants(study, tree)]


def _spread(x: np.ndarray, values: np.ndarray, label: str, color: int) -> list[Mark]:
    """Draw the median over seeds and the range of all."""
    values = np.maximum(values, FLOOR)
    return [
        Band(x, values.min(axis=0), values.max(axis=0), color=color),
        Line(x, np.median(values, axis=0), label, color),
    ]


def losses(study: Convergence, tree: xr.DataTree) -> Figure:
    """Draw the loss of every kind of start, with the bounds of seed 0."""
    times = tree["observables/time"].to_numpy()[1:]
    panels = []
    few, many = study.length * study.sequences, study.length * study.many_sequences
    columns = study.heads * study.width
    for title, kind in (
        (f"HD = {columns}, Nn = {few}", "HD > Nn"),
        (f"HD = {columns}, Nn = {many}", "HD < Nn"),
        (f"HD = {study.heads * study.wide}, Nn = {few}, certified", "certified start"),
    ):
        marks: list[Mark] = []
        for color, kernel in enumerate(KERNELS):
            case = f"{kernel}, {kind}"
            loss = select(tree, "relative_loss", case).to_numpy()[:, 1:]
            marks += _spread(times, loss, kernel, color)
            if kind != "HD < Nn":
                bound = select(tree, "rate_bound", case, "theory").to_numpy()
                worst = int(np.argmax(bound[:, -1]))
                label = "" if color else "f(0) exp(-βt)"
                marks.append(Line(times, bound[worst, 1:], label, color, theory=True))
        panels.append(
            Panel(title, "time", "loss / ½‖y‖²", tuple(marks), xscale="log", yscale="log")
        )
    return Figure(
        "losses",
        "All weights trained: every label is fitted, above and below HD = Nn",
        f"Loss relative to ½‖y‖² along gradient flow, median and range of {study.seeds} seeds, cut "
        f"at {FLOOR:g}. Dashed: f(0) exp(-βt), the bound of Theorem 1, for the seed of each kernel "
        "with the smallest β. Left: the usual start. Middle: too few columns for Theorem 1, no "
        "bound, and the labels are fitted all the same. Right: W^V = 0 and W^O so large that it is "
        "certain for all time; time is divided by the square of that size.",
        tuple(panels),
    )


def constants(study: Convergence, tree: xr.DataTree) -> Figure:
    """Draw μ over β, and how far B has moved."""
    times = tree["observables/time"].to_numpy()[1:]
    ratio: list[Mark] = []
    move: list[Mark] = []
    for color, kernel in enumerate(KERNELS):
        for offset, kind in ((0, "HD > Nn"), (2, "certified start")):
            case, name = f"{kernel}, {kind}", f"{kernel}, {kind.replace('HD > Nn', 'usual start')}"
            beta = select(tree, "beta", case, "theory").to_numpy()[:, None]
            pl = select(tree, "pl", case).to_numpy()[:, 1:]
            ratio += _spread(times, pl / beta, name, color + offset)
            sigma = select(tree, "sigma_min", case).to_numpy()[:, :1]
            shift = select(tree, "feature_move", case).to_numpy()[:, 1:]
            move += _spread(times, shift / sigma, name, color + offset)
    ratio.append(Line(times, np.full(len(times), 0.5), "certified above", theory=True))
    room = np.full(len(times), 1 - np.sqrt(0.5))
    move.append(Line(times, room, "certain below", theory=True))
    return Figure(
        "constants",
        "How long the constant of the start stays good",
        "Left: the PL constant μ that W^V gives, over β of Theorem 1; the rate of the start is "
        "proven while it is above ½. Right: how far B has moved, over σ_min(B_0); below 0.29 "
        f"Weyl's inequality makes it certain. Median and range of {study.seeds} seeds. From the "
        "usual start B leaves that region early, and the labels are fitted nevertheless.",
        (
            Panel("PL constant", "time", "μ / β", tuple(ratio), xscale="log", yscale="log"),
            Panel(
                "move of B",
                "time",
                "‖B - B_0‖₂ / σ_min(B_0)",
                tuple(move),
                xscale="log",
                yscale="log",
            ),
        ),
        columns=2,
    )
