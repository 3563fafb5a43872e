"""The figures and tables of ``song2024.convergence``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report import Band, Cell, Figure, Line, Mark, Panel, Table
from attnscope.studies.song2024._song import KERNELS, tabulate
from attnscope.studies.song2024.convergence.claims import (
    ABOVE,
    BELOW,
    CASES,
    CERTIFIED,
    DESCENT,
)
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence.study import Convergence

CUT = 1e-10
"""Relative loss below which the solver's tolerance speaks."""


def figures_of(study: Convergence, run: Readings) -> list[Figure]:
    """Draw losses with their bounds, and the constants along the runs."""
    return [losses(study, run), constants(study, run)]


def losses(study: Convergence, run: Readings) -> Figure:
    """Draw the loss of every kind of start, with the largest bound of any seed."""
    times, panels = run.pl["time"].to_numpy()[1:], []
    for kind in (ABOVE, BELOW, CERTIFIED):
        marks: list[Mark] = []
        for color, kernel in enumerate(KERNELS):
            own = run.of(f"{kernel}, {kind}")
            marks += spread(own.relative_loss, kernel, color)
            if kind != BELOW:
                bound = own.theory.rate_bound.to_numpy()
                worst, label = np.argmax(bound[:, -1]), "" if color else "f(0) exp(-βt)"
                marks.append(Line(times, bound[worst, 1:], label, color, theory=True))
        title = "HD = {}, Nn = {}".format(*study.sizes(kind))
        title += ", certified" if kind == CERTIFIED else ""
        panels.append(Panel(title, "time", "loss / ½‖y‖²", tuple(marks), "log", "log"))
    return Figure(
        "losses",
        "All weights trained: every label is fitted, above and below HD = Nn",
        f"Loss relative to ½‖y‖² along gradient flow, median and range of {study.seeds} seeds, "
        f"cut at {CUT:g}. Dashed: f(0) exp(-βt), the bound of Theorem 1, for the seed of "
        "each kernel with the smallest β. Left: the usual start. Middle: too few columns for "
        "Theorem 1, no bound, and the labels are fitted all the same. Right: W^V = 0 and W^O "
        "so large that it is certain for all time; time is divided by the square of that size.",
        tuple(panels),
    )


def constants(study: Convergence, run: Readings) -> Figure:
    """Draw μ over β, and how far B has moved."""
    ratio: list[Mark] = []
    move: list[Mark] = []
    for color, kernel in enumerate(KERNELS):
        for offset, kind, name in ((0, ABOVE, "usual start"), (2, CERTIFIED, CERTIFIED)):
            own, label = run.of(f"{kernel}, {kind}"), f"{kernel}, {name}"
            ratio += spread(own.pl / own.theory.beta, label, color + offset)
            shift = own.feature_move / initial(own.sigma_min)
            move += spread(shift, label, color + offset)
    times = run.pl["time"].to_numpy()[1:]
    room = np.full(len(times), 1 - np.sqrt(0.5))
    ratio.append(Line(times, np.full(len(times), 0.5), "certified above", theory=True))
    move.append(Line(times, room, "certain below", theory=True))
    moved = "‖B - B_0‖₂ / σ_min(B_0)"
    return Figure(
        "constants",
        "How long the constant of the start stays good",
        "Left: the PL constant μ that W^V gives, over β of Theorem 1; the rate of the start is "
        "proven while it is above ½. Right: how far B has moved, over σ_min(B_0); below 0.29 "
        f"Weyl's inequality makes it certain. Median and range of {study.seeds} seeds. From the "
        "usual start B leaves that region early, and the labels are fitted nevertheless.",
        (
            Panel("PL constant", "time", "μ / β", tuple(ratio), "log", "log"),
            Panel("move of B", "time", moved, tuple(move), "log", "log"),
        ),
        columns=2,
    )


def tables_of(study: Convergence, run: Readings) -> list[Table]:
    """Tabulate the certificate of the median start and how it fared, and W^V alone."""
    certificates: list[dict[str, Cell]] = []
    alone: list[dict[str, Cell]] = []
    for case, (_, kind) in CASES.items():
        own, theory = run.of(case), run.of(case).theory
        loss, beta, certified = own.relative_loss, theory.beta, theory.certified > 0
        sigma, residual, end = initial(own.sigma_min), theory.value_residual, final(loss)
        broken = ((loss > theory.rate_bound * (1 + 1e-6)) & certified).any("step")
        proven = {
            "β (1/time)": middle(beta),
            "certified up to time": middle(loss["time"].where(certified, 0.0).max("step")),
            "runs above the bound while certified": int(broken.sum()),
            "bound at the end / f(0)": float(np.exp(-middle(beta) * study.end)),
            "largest ‖B - B_0‖₂ / σ_min(B_0)": middle(own.feature_move.max("step") / sigma),
        }
        certificates.append(
            {
                "case": case,
                **dict(zip(("HD", "Nn"), study.sizes(kind), strict=True)),
                **(proven if (beta > 0).all() else dict.fromkeys(proven)),
                "relative loss at the end": middle(end),
                "worst of any seed": float(end.max()),
                **{f"‖ΔW^{m}‖": middle(final(own.moved).sel(matrix=m)) for m in "QKV"},
            }
        )
        if kind != DESCENT:
            alone.append(
                {
                    "case": case,
                    "σ_Nn(B_0)": middle(sigma),
                    "residual, median": middle(residual),
                    "smallest": float(residual.min()),
                    "largest": float(residual.max()),
                    "seeds below 1e-10": int((residual < 1e-10).sum()),
                    "seeds": len(residual),
                }
            )
    return [
        tabulate(
            "certificates",
            f"Certificates: medians over {study.seeds} seeds, runs to time {study.end:g}; empty "
            "where Theorem 1 does not apply",
            certificates,
        ),
        tabulate(
            "value-alone",
            "W^V alone: smallest relative loss over all W^V at the W^Q, W^K and W^O of the start",
            alone,
        ),
    ]


def middle(values: xr.DataArray) -> float:
    """Return the median over seeds."""
    return float(values.median())


def spread(reading: xr.DataArray, label: str, color: int) -> list[Mark]:
    """Draw the median over seeds and the range of all, after the start."""
    shown = reading.isel(step=slice(1, None)).clip(CUT)
    times = shown["time"].to_numpy()
    return [
        Band(times, shown.min("seed").to_numpy(), shown.max("seed").to_numpy(), color=color),
        Line(times, shown.median("seed").to_numpy(), label, color),
    ]
