"""The tables of the training studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims.claim import summarise
from attnscope.report.page import Cell, Table
from attnscope.studies.song2024._training_claims import chance, gradient_share, mean_loss
from attnscope.studies.song2024._training_names import KERNELS, RANDOM, bag, end_accuracy
from attnscope.studies.song2024._training_readings import ENTROPY, LARGEST, LOSS, MASS
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024._training import KernelTraining


def tables(study: KernelTraining, tree: xr.DataTree) -> list[Table]:
    """Return the end of the runs, and what happened on the way."""
    return [ends(study, tree), on_the_way(study, tree)]


def ends(study: KernelTraining, tree: xr.DataTree) -> Table:
    """Tabulate accuracies at the end beside the published ones and those of baselines."""
    published = {"softmax": study.published.softmax, "gaussian": study.published.gaussian}
    rows: list[tuple[Cell, ...]] = []
    for case in study.cases():
        values = 100 * end_accuracy(tree, case)
        mean, low, high, _ = summarise(values, each=False)
        figure = published.get(case)
        loss = select(tree, "end_held_out", case).isel(end=-1, measure=LOSS).to_numpy()
        rows.append(
            (
                case,
                round(mean, 2),
                None if np.isnan(low) else f"{low:.2f} to {high:.2f}",
                ", ".join(f"{value:.2f}" for value in values),
                round(float(loss.mean()), 4),
                None if figure is None else 100 * figure,
            )
        )
    for kernel in KERNELS:
        values = 100 * end_accuracy(tree, kernel, at=0)
        every = ", ".join(f"{value:.2f}" for value in values)
        rows.append(
            (f"{kernel}, untrained", round(float(values.mean()), 2), None, every, None, None)
        )
    baselines = [(study.published.bag, bag(tree)), *study.baselines(tree)]
    rows += [(name, round(100 * value, 2), None, None, None, None) for name, value in baselines]
    rows.append(("above chance from", round(100 * chance(study), 2), None, None, None, None))
    return Table(
        "accuracy",
        f"Accuracy on {study.unseen():,} unseen {study.published.sequences} at the end. "
        + study.scale_words(),
        (
            "model",
            "accuracy (%)",
            "95 % interval of the mean",
            "by seed (%)",
            "loss (nats)",
            "Skyformer (%)",
        ),
        tuple(rows),
    )


def on_the_way(study: KernelTraining, tree: xr.DataTree) -> Table:
    """Tabulate the training loss, gradients and attention, averaged over the run."""
    rows: list[tuple[Cell, ...]] = []
    for case in (*KERNELS, RANDOM):
        weights = select(tree, "attention", case).mean("layer").isel(step=[0, -1]).mean("run")
        entropy, largest, mass = (
            weights.isel(statistic=which).to_numpy() for which in (ENTROPY, LARGEST, MASS)
        )
        rows.append(
            (
                case,
                round(float(mean_loss(tree, case).mean()), 4),
                float(f"{gradient_share(tree, case).mean():.3g}"),
                *(float(f"{value:.3g}") for part in (entropy, largest, mass) for value in part),
            )
        )
    return Table(
        "training",
        f"Training loss and gradients over the run, attention at both ends, mean over "
        f"{study.seeds} seeds",
        (
            "case",
            "training loss (nats)",
            "‖∇W^Q‖/‖∇W^V‖",
            "entropy / log(keys), start",
            "end",
            "largest share, start",
            "end ",
            "sum of a row, start",
            "end  ",
        ),
        tuple(rows),
    )
