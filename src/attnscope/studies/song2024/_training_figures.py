"""The figures of the training studies: accuracy and loss over steps, gradients, attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Line, Mark, Panel, Rule
from attnscope.studies.song2024._training_names import KERNELS, RANDOM, bag
from attnscope.studies.song2024._training_readings import (
    ACCURACY,
    ENTROPY,
    LARGEST,
    LOSS,
    MATRICES,
)
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024._training import KernelTraining

COLORS = {"softmax": 0, "gaussian": 1, RANDOM: 3}


def figures(study: KernelTraining, tree: xr.DataTree) -> list[Figure]:
    """Return the curves of the poster, and what lies behind them."""
    return [curves(study, tree), anatomy(study, tree)]


def curves(study: KernelTraining, tree: xr.DataTree) -> Figure:
    """Draw accuracy and loss on unseen sequences, and training loss."""
    published = study.published
    held_out = [(case, select(tree, "held_out", case)) for case in study.cases()]
    accuracy = _marks((case, data.isel(measure=ACCURACY)) for case, data in held_out)
    accuracy += [
        Rule(published.softmax, "softmax, Skyformer after 50,000 steps"),
        Rule(published.gaussian, "Gaussian, Skyformer after 50,000 steps"),
        Rule(bag(tree), f"{published.bag} (least squares)"),
    ]
    loss = _marks((case, data.isel(measure=LOSS)) for case, data in held_out)
    train = _marks((case, select(tree, "train_loss", case)) for case in study.cases())
    chance = Rule(float(np.log(2)), "log 2, a guess")
    return Figure(
        "curves",
        "Softmax and Gaussian attention over training",
        f"Accuracy and loss on {study.seen_on_the_way():,} unseen {published.sequences} and loss "
        f"on {study.probe:,} training ones over {study.epochs:,} steps, mean over {study.seeds} "
        f"seeds with 95 % bands. {study.scale_words()} Skyformer's end values are drawn for "
        "comparison; where sequences are shorter or steps fewer they are not what should be "
        "reached. Labels drawn by a coin must stay at one half.",
        (
            Panel("unseen, accuracy", "step", "accuracy", tuple(accuracy)),
            Panel("unseen, loss", "step", "cross-entropy (nats)", (*loss, chance)),
            Panel("training, loss", "step", "cross-entropy (nats)", (*train, chance)),
        ),
    )


def anatomy(study: KernelTraining, tree: xr.DataTree) -> Figure:
    """Draw gradients by matrix relative to that of values, entropy and largest share."""
    panels = []
    for name in ("W_Q", "W_K", "W_V"):
        pairs = []
        for kernel in KERNELS:
            norms = select(tree, "gradient_norm", kernel).isel(matrix=MATRICES.index(name))
            pairs.append((kernel, norms.mean("layer")))
        title = f"gradient by {name.replace('_', '^')}"
        marks = tuple(_marks(pairs, geometric=True))
        panels.append(Panel(title, "step", "Frobenius norm", marks, yscale="log"))
    for statistic, title, label in (
        (ENTROPY, "entropy of attention", "entropy / log(keys)"),
        (LARGEST, "largest weight of a row", "share of the row"),
    ):
        shown = (
            (kernel, select(tree, "attention", kernel).isel(statistic=statistic).mean("layer"))
            for kernel in KERNELS
        )
        panels.append(Panel(title, "step", label, tuple(_marks(shown))))
    return Figure(
        "anatomy",
        "Where the gradients go",
        "Gradients of the training loss by the matrices of attention (mean of the two layers, "
        f"geometric mean over {study.seeds} seeds), and how even a row of attention weights is "
        "(Gaussian rows divided by their sum), mean over seeds with 95 % bands. "
        + study.scale_words(),
        tuple(panels),
    )


def _marks(pairs: Iterable[tuple[str, xr.DataArray]], *, geometric: bool = False) -> list[Mark]:
    """Return band and line of each case; ``geometric`` for a logarithmic axis."""
    marks: list[Mark] = []
    for case, data in pairs:
        steps, values = data["time"].to_numpy(), data.transpose("run", "step").to_numpy()
        mean, low, high = mean_interval(np.log(values) if geometric else values)
        if geometric:
            mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
        color = COLORS[case]
        marks += [Band(steps, low, high, color=color), Line(steps, mean, case, color)]
    return marks
