"""The figures of ``song2024.query_only``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule, Scale
from attnscope.studies.song2024._query_only_cases import (
    FIVE,
    KERNELS,
    SATURATED,
    STARTS,
    STOP,
    TWENTY,
    course,
    final_loss,
    speed,
)

if TYPE_CHECKING:
    from attnscope.studies.song2024.query_only import QueryOnly

Reader = Callable[[xr.DataTree, str, str], np.ndarray]


def figures(study: QueryOnly, tree: xr.DataTree) -> list[Figure]:
    """Return final losses, their course, and where gradients vanish."""
    return [outcomes(study, tree), courses(study, tree), anatomy(study, tree)]


def outcomes(study: QueryOnly, tree: xr.DataTree) -> Figure:
    """Draw every run's final loss by start."""
    marks: list[Mark] = []
    for color, kernel in enumerate(KERNELS):
        x = [np.full(study.seeds, i + 0.3 * color - 0.15) for i in range(len(STARTS))]
        y = [np.maximum(final_loss(tree, kernel, start), STOP) for start in STARTS]
        marks.append(Dots(np.concatenate(x), np.concatenate(y), label=kernel, color=color))
    marks.append(Rule(1.0, "output of zero"))
    ticks = tuple((float(i), f"{s.value:g}, {s.query:g}") for i, s in enumerate(STARTS.values()))
    panel = Panel(
        "W^Q trained alone",
        "scale of W^V, of W^Q and W^K",
        "loss / ½‖y‖² at the end",
        tuple(marks),
        yscale="log",
        xticks=ticks,
    )
    return Figure(
        "outcomes",
        "Softmax has a heavy tail of bad runs, Gaussian attention is bounded",
        f"Relative loss at the end of gradient flow of W^Q alone, a point for each of "
        f"{study.seeds} seeds; runs stop at {STOP:g}. Both kernels of a seed have the same data "
        "and start. Softmax runs may end far above the loss of an output of zero; Gaussian ones "
        "do not, since a query that is far from every key gives an output of zero.",
        (panel,),
        columns=1,
    )


def courses(study: QueryOnly, tree: xr.DataTree) -> Figure:
    """Draw the loss of every run over time."""
    times = tree["observables/time"].to_numpy()[1:]
    panels = []
    for start in (FIVE, TWENTY, SATURATED):
        marks: list[Mark] = []
        for color, kernel in enumerate(KERNELS):
            for seed, loss in enumerate(course(tree, "relative_loss", kernel, start)):
                y = np.maximum(loss[1:], STOP)
                label = "" if seed else kernel
                marks.append(Line(times, y, label, color, thin=True))
        panels.append(
            Panel(start, "time", "loss / ½‖y‖²", tuple(marks), xscale="log", yscale="log")
        )
    return Figure(
        "courses",
        "How runs get stuck",
        f"Relative loss along gradient flow of W^Q alone, {study.seeds} seeds, one line each. Time "
        "is divided by the square of the scale of W^V.",
        tuple(panels),
    )


def anatomy(study: QueryOnly, tree: xr.DataTree) -> Figure:
    """Draw where the gradient of W^Q is lost, for a small and a saturated start."""
    times = tree["observables/time"].to_numpy()[1:]
    panels = []
    for title, ylabel, read in (
        ("speed of W^Q", "‖∂f/∂W^Q‖² / f (1/time)", partial(speed, study)),
        ("Jacobian of the weights", "mean ‖∂s/∂c‖", _reader("jacobian")),
        ("rows without a gradient", "share of rows with ‖∂s/∂c‖ < 0.01", _reader("saturated")),
    ):
        marks: list[Mark] = []
        for offset, start in ((0, FIVE), (2, SATURATED)):
            for color, kernel in enumerate(KERNELS):
                values = read(tree, kernel, start)[:, 1:]
                low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
                marks += [
                    Band(times, low, high, color=color + offset),
                    Line(times, middle, f"{kernel}, {start}", color + offset),
                ]
        scale: Scale = "linear" if "share" in ylabel else "log"
        panels.append(Panel(title, "time", ylabel, tuple(marks), xscale="log", yscale=scale))
    return Figure(
        "anatomy",
        "Where the gradient of W^Q vanishes",
        "Left: the rate at which the gradient of W^Q shrinks the loss. Middle: mean Frobenius norm "
        "of the derivative of a row s of S by its exponents c, diag(s) - ssᵀ for softmax and "
        "diag(s) for Gaussian weights. Right: share of rows where it is below 0.01. Median and "
        f"quartiles of {study.seeds} seeds. From the saturated start both "
        "kernels lose their gradient, Gaussian attention more of it; it is stuck at an output of "
        "zero, softmax at outputs as large as W^V.",
        tuple(panels),
    )


def _reader(name: str) -> Reader:
    return lambda tree, kernel, start: course(tree, name, kernel, start)
