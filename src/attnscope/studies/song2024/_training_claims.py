"""The claims of the training studies: who learns, who learns more easily, who ends higher."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above
from attnscope.studies.old import Claim
from attnscope.studies.song2024._training_names import KERNELS, RANDOM, bag, end_accuracy
from attnscope.studies.song2024._training_readings import MATRICES
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024._training import KernelTraining

OBSERVED = "poster, introduction: some observations"
TABLE = "Skyformer (Chen et al. 2021), table of test accuracies; the poster has curves alone"
GRADIENT = "poster, conclusions: a vanishing gradient issue in softmax attention"
BEYOND = "beyond the poster"
ERRORS = 3.0
"""Standard errors above one half that count as above chance."""
TIMES = 2.0
"""How many times larger a gradient must be to count as another size."""


def claims(study: KernelTraining) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        *(_learns(study, kernel) for kernel in KERNELS),
        _easier(study),
        _order(study),
        _gradient(),
        _beyond_counting(study),
    )


def chance(study: KernelTraining) -> float:
    """Return the accuracy that counts as above chance: 1/2 + 3 standard errors of a fair coin."""
    return 0.5 + ERRORS * 0.5 / math.sqrt(study.unseen())


def _learns(study: KernelTraining, kernel: str) -> Claim:
    softmax = kernel == "softmax"
    figure = study.published.softmax if softmax else study.published.gaussian
    return Claim(
        key=f"{kernel}-learns",
        sentence=f"A two-layer transformer with {kernel} attention learns {study.published.task}.",
        source=OBSERVED,
        paper=f"{100 * figure:.2f} % (Skyformer, 50,000 steps at full length)",
        statistic=lambda tree: end_accuracy(tree, kernel),
        criterion=above(chance(study)),
        control_sentence="the same training on labels that a coin has drawn"
        if softmax
        else "the same model before training",
        control=(lambda tree: end_accuracy(tree, RANDOM))
        if softmax
        else (lambda tree: end_accuracy(tree, kernel, at=0)),
        measure=f"accuracy on {study.unseen():,} unseen {study.published.sequences} at the end; "
        "chance is one half, and the criterion three standard errors above it",
        reason="the loss on unseen sequences is still about log 2, that of a guess: the run ends "
        "before learning begins.",
    )


def mean_loss(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the training loss averaged over the run, the start left out, by seed."""
    return select(tree, "train_loss", case).isel(step=slice(1, None)).mean("step").to_numpy()


def _easier(study: KernelTraining) -> Claim:
    return Claim(
        key="gaussian-easier",
        sentence="Training is easier with Gaussian than with softmax attention: over the run its "
        "training loss is lower.",
        source=OBSERVED,
        paper="easier in some cases",
        statistic=lambda tree: mean_loss(tree, "softmax") - mean_loss(tree, "gaussian"),
        criterion=above(0.0),
        control_sentence="softmax in place of Gaussian: no kernel is easier than itself",
        control=lambda tree: mean_loss(tree, "softmax") - mean_loss(tree, "softmax"),
        each=False,
        measure="mean training loss over the run with softmax, less that with Gaussian (nats)",
        reason="with the same start and batches this is a difference of one number a seed; if its "
        "interval holds 0, more seeds are needed to tell.",
    )


def _order(study: KernelTraining) -> Claim:
    published = study.published
    names = ("gaussian", "softmax")
    if published.softmax > published.gaussian:
        names = ("softmax", "gaussian")
    first, second = names
    gap = 100 * abs(published.softmax - published.gaussian)

    def lead(tree: xr.DataTree, better: str, worse: str) -> np.ndarray:
        return np.asarray(100 * (end_accuracy(tree, better) - end_accuracy(tree, worse)))

    return Claim(
        key="order",
        sentence=f"At the end {first} attention classifies unseen {published.sequences} better "
        f"than {second} attention.",
        source=TABLE,
        paper=f"by {gap:.2f} points",
        statistic=lambda tree: lead(tree, first, second),
        criterion=above(0.0),
        control_sentence=f"{second} in place of {first}: no kernel is better than itself",
        control=lambda tree: lead(tree, second, second),
        each=False,
        measure=f"accuracy with {first} less that with {second} (points)",
        reason="runs of this scale do not separate the two kernels if the interval holds 0; "
        "Skyformer's gap is of three seeds without an interval.",
    )


def gradient_share(tree: xr.DataTree, case: str, name: str = "W_Q") -> np.ndarray:
    """Return ‖∇W‖ over ‖∇W^V‖, the geometric mean over run and layers, by seed."""
    norms = select(tree, "gradient_norm", case).to_numpy()
    own, value = (norms[..., MATRICES.index(which)] for which in (name, "W_V"))
    return np.asarray(np.exp(np.log(own / value).mean(axis=(1, 2))))


def _gradient() -> Claim:
    def ratio(tree: xr.DataTree, name: str) -> np.ndarray:
        gaussian, softmax = (gradient_share(tree, case, name) for case in ("gaussian", "softmax"))
        return np.asarray(gaussian / softmax)

    return Claim(
        key="query-gradient",
        sentence="Queries get less gradient with softmax than with Gaussian attention, relative "
        "to values.",
        source=GRADIENT,
        paper="the difference between kernels implies it",
        statistic=lambda tree: ratio(tree, "W_Q"),
        criterion=above(TIMES),
        control_sentence="W^O in place of W^Q: its gradient does not go through the kernel",
        control=lambda tree: ratio(tree, "W_O"),
        measure="‖∇W^Q‖/‖∇W^V‖, geometric mean over run and layers, Gaussian over softmax",
        reason="the gradient is larger with Gaussian attention, but not twice as large in every "
        "seed; rows of softmax are far from saturated here (table training).",
    )


def _beyond_counting(study: KernelTraining) -> Claim:
    def lead(tree: xr.DataTree, *cases: str) -> np.ndarray:
        best = np.max([end_accuracy(tree, case) for case in cases], axis=0)
        return np.asarray(100 * (best - bag(tree)))

    return Claim(
        key="beyond-counting",
        sentence=f"The better of the two kernels does better than {study.published.bag}, which "
        "knows no order.",
        source=BEYOND,
        paper="not compared",
        statistic=lambda tree: lead(tree, *KERNELS),
        criterion=above(100 * (chance(study) - 0.5)),
        control_sentence="the transformer on labels that a coin has drawn",
        control=lambda tree: lead(tree, RANDOM),
        measure="accuracy of the better kernel less that of least squares on counts (points); the "
        "criterion is three standard errors",
        reason=study.counting,
    )
