"""The figures and tables of the training studies: accuracy, loss, gradients, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report import Cell, Figure, Mark, Panel, Rule, Table, band
from attnscope.studies.song2024._song import KERNELS, tabulate
from attnscope.studies.song2024._training_claims import (
    NORMALISED,
    RANDOM,
    UNIFORM,
    end_accuracy,
    gradient_share,
    mean_loss,
)
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.song2024._training import KernelTraining

COLORS = {"softmax": 0, "gaussian": 1, NORMALISED: 2, UNIFORM: 4, RANDOM: 3}
ENDS = (
    *("entropy / log(keys), start", "end", "largest share, start", "end "),
    *("sum of a row, start", "end  "),
)
"""Columns of what is read of attention at both ends of a run."""


def figures_of(study: KernelTraining, run: Readings) -> list[Figure]:
    """Draw accuracy and loss over steps, and what attention and its gradients do."""
    return [curves(study, run), anatomy(study, run)]


def curves(study: KernelTraining, run: Readings) -> Figure:
    """Draw accuracy and loss on unseen sequences, and training loss."""
    paper, held_out = study.published, run.held_out
    guess = Rule(float(np.log(2)), "log 2, a guess")
    accuracy = (
        *marks(held_out.sel(measure="accuracy")),
        Rule(paper.softmax, "softmax, Skyformer after 50,000 steps"),
        Rule(paper.gaussian, "Gaussian, Skyformer after 50,000 steps"),
        Rule(float(run.theory.bag_accuracy), f"{paper.bag} (least squares)"),
    )
    loss, train = marks(held_out.sel(measure="loss")), marks(run.train_loss)
    return Figure(
        "curves",
        "Softmax and Gaussian attention over training",
        f"Accuracy and loss on {study.unseen(study.held_out):,} unseen {paper.sequences} and "
        f"loss on {study.probe:,} training ones over {study.training.steps:,} steps, mean over "
        f"{study.seeds} seeds with 95 % bands. {study.scale_words()} Skyformer's end values are "
        "drawn for comparison; where sequences are shorter or steps fewer they are not what "
        "should be reached. Labels drawn by a coin must stay at one half.",
        (
            Panel("unseen, accuracy", "step", "accuracy", accuracy),
            Panel("unseen, loss", "step", "cross-entropy (nats)", (*loss, guess)),
            Panel("training, loss", "step", "cross-entropy (nats)", (*train, guess)),
        ),
    )


def anatomy(study: KernelTraining, run: Readings) -> Figure:
    """Draw gradients by matrix relative to that of values, entropy and largest share."""
    panels = []
    for name in ("W_Q", "W_K", "W_V"):
        drawn = marks(run.gradient_norm.sel(matrix=name), KERNELS, log=True)
        title = f"gradient by {name.replace('_', '^')}"
        panels.append(Panel(title, "step", "Frobenius norm", drawn, yscale="log"))
    for name, title, label in (
        ("entropy", "entropy of attention", "entropy / log(keys)"),
        ("largest", "largest weight of a row", "share of the row"),
    ):
        drawn = marks(run.attention.sel(statistic=name), KERNELS)
        panels.append(Panel(title, "step", label, drawn))
    return Figure(
        "anatomy",
        "Where the gradients go",
        "Gradients of the training loss by the matrices of attention (mean of the two layers, "
        f"geometric mean over {study.seeds} seeds), and how even a row of attention weights is "
        "(Gaussian rows divided by their sum), mean over seeds with 95 % bands. "
        + study.scale_words(),
        tuple(panels),
    )


def tables_of(study: KernelTraining, run: Readings) -> list[Table]:
    """Tabulate the end of the runs beside the published numbers, and the way there."""
    return [ends(study, run), on_the_way(study, run)]


def ends(study: KernelTraining, run: Readings) -> Table:
    """Tabulate accuracies at the end beside the published ones and those of baselines."""
    rows: list[dict[str, Cell]] = []

    def add(model: str, accuracy: float, **more: Cell) -> None:
        rows.append(
            {
                "model": model,
                "accuracy (%)": round(100 * accuracy, 2),
                "95 % interval of the mean": more.get("interval"),
                "by seed (%)": more.get("seeds"),
                "loss (nats)": more.get("loss"),
                "Skyformer (%)": more.get("paper"),
            }
        )

    def by_seed(accuracy: xr.DataArray) -> str:
        return ", ".join(f"{100 * value:.2f}" for value in accuracy)

    for case in study.cases:
        accuracy = end_accuracy(run, case).astype(float)
        mean, low, high = mean_interval(accuracy.to_numpy())
        paper = getattr(study.published, case, None)
        add(
            case,
            float(mean),
            interval=None if np.isnan(low) else f"{100 * low:.2f} to {100 * high:.2f}",
            seeds=by_seed(accuracy),
            loss=round(float(final(run.of(case).end_held_out).sel(measure="loss").mean()), 4),
            paper=None if paper is None else 100 * paper,
        )
    for kernel in KERNELS:
        accuracy = end_accuracy(run, kernel, initial)
        add(f"{kernel}, untrained", float(accuracy.mean()), seeds=by_seed(accuracy))
    for name, value in study.baselines(run).items():
        add(name, value)
    add("above chance from", study.chance())
    return tabulate(
        "accuracy",
        f"Accuracy on {study.unseen(study.last):,} unseen {study.published.sequences} at the end. "
        + study.scale_words(),
        rows,
    )


def on_the_way(study: KernelTraining, run: Readings) -> Table:
    """Tabulate the training loss, gradients and attention, averaged over the run."""
    rows: list[dict[str, Cell]] = []
    for case in study.cases:
        weights = run.of(case).attention.mean("layer").isel(step=[0, -1]).mean("seed")
        shown = weights.transpose("statistic", "step").to_numpy().ravel()
        learns = case != UNIFORM
        rows.append(
            {
                "case": case,
                "training loss (nats)": round(float(mean_loss(run, case).mean()), 4),
                "‖∇W^Q‖/‖∇W^V‖": short(float(gradient_share(run, case).mean())) if learns else None,
                **dict(zip(ENDS, map(short, shown), strict=True)),
            }
        )
    return tabulate(
        "training",
        "Training loss and gradients over the run, attention at both ends, mean over "
        f"{study.seeds} seeds",
        rows,
    )


def short(value: float) -> float:
    """Return three digits of a number."""
    return float(f"{value:.3g}")


def marks(
    reading: xr.DataArray, cases: Sequence[str] = tuple(COLORS), *, log: bool = False
) -> tuple[Mark, ...]:
    """Return band and line of each case."""
    each = (band(reading.sel(case=case), case, COLORS[case], log=log) for case in cases)
    return tuple(mark for found in each for mark in found)
