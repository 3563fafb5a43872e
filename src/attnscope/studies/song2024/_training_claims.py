"""The claims of the training studies: who learns, who learns more easily, who ends higher."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above
from attnscope.studies.song2024._song import KERNELS
from attnscope.trajectory import Readings, crossing, final, initial

if TYPE_CHECKING:
    from attnscope.studies.song2024._training import KernelTraining

RANDOM = "softmax, random labels"
"""The case whose labels are drawn by a coin."""
UNIFORM = "frozen at uniform"
"""The case whose attention weighs all tokens alike and does not learn; the rest does."""
NORMALISED = "normalised-gaussian"
"""Gaussian weights divided by their sum over the row."""
LATE, AHEAD = 1.5, 0.05
"""Attention starts late if it is so much more accurate so many times later than the first stage."""
FALLEN = 0.03
"""The first stage begins where the training loss is so much (nats) below log 2, that of a coin."""
TIMES = 2.0
"""How many times larger a gradient must be to count as another size."""
OBSERVED = "poster, introduction: some observations"


def end_accuracy(
    run: Readings, case: str, when: Callable[[xr.DataArray], xr.DataArray] = final
) -> xr.DataArray:
    """Return the accuracy on unseen sequences at the end of each run, by seed."""
    return when(run.of(case).end_held_out).sel(measure="accuracy")


def mean_loss(run: Readings, case: str) -> xr.DataArray:
    """Return the training loss averaged over the run, the start left out, by seed."""
    return run.of(case).train_loss.isel(step=slice(1, None)).mean("step")


def gradient_share(run: Readings, case: str, name: str = "W_Q") -> xr.DataArray:
    """Return ‖∇W‖ over ‖∇W^V‖, the geometric mean over run and layers, by seed."""
    norms = run.of(case).gradient_norm
    log: Any = np.log(norms.sel(matrix=name) / norms.sel(matrix="W_V"))
    return cast(xr.DataArray, np.exp(log.mean(("step", "layer"))))


def lead_begins(run: Readings, case: str, other: str) -> xr.DataArray:
    """Return the step at which a case is five points ahead of another on unseen ones, by seed."""
    ours, theirs = (run.of(name).held_out.sel(measure="accuracy") for name in (case, other))
    return crossing(ours - theirs, AHEAD)


def loss_falls(run: Readings, case: str) -> xr.DataArray:
    """Return the step at which the training loss has left that of a coin, by seed.

    The loss, not the accuracy on unseen sequences: these are chosen so that what is learned first,
    where the discs of an image are, says nothing about them.
    """
    return crossing(math.log(2) - run.of(case).train_loss, FALLEN)


def claims_of(study: KernelTraining) -> list[Claim]:
    """Return what the poster and Skyformer's table say of these runs."""
    paper, chance, count = study.published, study.chance(), study.unseen(study.last)
    second, first = sorted(KERNELS, key=lambda kernel: getattr(paper, kernel))
    controls = {
        "softmax": ((RANDOM, final), "the same training on labels that a coin has drawn"),
        "gaussian": (("gaussian", initial), "the same model before training"),
    }

    def end(run: Readings, given: tuple[str, Callable[..., xr.DataArray]]) -> xr.DataArray:
        return end_accuracy(run, *given)

    def easier(run: Readings, kernel: str) -> xr.DataArray:
        return mean_loss(run, "softmax") - mean_loss(run, kernel)

    def lead(run: Readings, kernels: tuple[str, str]) -> xr.DataArray:
        better, worse = (end_accuracy(run, kernel) for kernel in kernels)
        return 100 * (better - worse)

    def ratio(run: Readings, matrix: str) -> xr.DataArray:
        gaussian, softmax = (gradient_share(run, k, matrix) for k in ("gaussian", "softmax"))
        return gaussian / softmax

    def beyond(run: Readings, cases: Sequence[str]) -> xr.DataArray:
        ends = final(run.end_held_out).sel(case=list(cases), measure="accuracy")
        return 100 * (ends.max("case") - float(run.theory.bag_accuracy))

    def carried(run: Readings, cases: tuple[str, str]) -> xr.DataArray:
        ours, theirs = (end_accuracy(run, case) for case in cases)
        return 100 * (ours - theirs)

    def late(run: Readings, cases: tuple[str, str | None]) -> xr.DataArray:
        # A twin that stays at chance begins at the end of the run, at the earliest; one whose loss
        # is low before training, on few sequences, at the first step.
        first = loss_falls(run, UNIFORM).fillna(float(study.training.steps)).clip(min=1.0)
        second = first if cases[1] is None else lead_begins(run, cases[0], cases[1])
        return second / first

    return [
        *(
            Claim(
                f"{kernel}-learns",
                f"A two-layer transformer with {kernel} attention learns {paper.task}.",
                end,
                (kernel, final),
                above(chance),
                control,
                OBSERVED,
                f"{100 * getattr(paper, kernel):.2f} % (Skyformer, 50,000 steps at full length)",
                f"accuracy on {count:,} unseen {paper.sequences} at the end; chance is one "
                "half, and the criterion three standard errors above it",
                reason="the loss on unseen sequences is still about log 2, that of a guess: "
                "the run ends before learning begins.",
            )
            for kernel, control in controls.items()
        ),
        Claim(
            "gaussian-easier",
            "Training is easier with Gaussian than with softmax attention: over the run its "
            "training loss is lower.",
            easier,
            "gaussian",
            above(0.0),
            ("softmax", "softmax in place of Gaussian: no kernel is easier than itself"),
            OBSERVED,
            "easier in some cases",
            "mean training loss over the run with softmax, less that with Gaussian (nats)",
            each=False,
            reason="with the same start and batches this is a difference of one number a seed; "
            "if its interval holds 0, more seeds are needed to tell.",
        ),
        Claim(
            "order",
            f"At the end {first} attention classifies unseen {paper.sequences} better than "
            f"{second} attention.",
            lead,
            (first, second),
            above(0.0),
            (
                (second, second),
                f"{second} in place of {first}: no kernel is better than itself",
            ),
            "Skyformer (Chen et al. 2021), table of test accuracies; the poster has curves alone",
            f"by {100 * abs(paper.softmax - paper.gaussian):.2f} points",
            f"accuracy with {first} less that with {second} (points)",
            each=False,
            reason="runs of this scale do not separate the two kernels if the interval holds "
            "0; Skyformer's gap is of three seeds without an interval.",
        ),
        Claim(
            "query-gradient",
            "Queries get less gradient with softmax than with Gaussian attention, relative "
            "to values.",
            ratio,
            "W_Q",
            above(TIMES),
            ("W_O", "W^O in place of W^Q: its gradient does not go through the kernel"),
            "poster, conclusions: a vanishing gradient issue in softmax attention",
            "the difference between kernels implies it",
            "‖∇W^Q‖/‖∇W^V‖, geometric mean over run and layers, Gaussian over softmax",
            reason="the gradient is larger with Gaussian attention, but not twice as large in "
            "every seed; rows of softmax are far from saturated here (table training).",
        ),
        *(
            Claim(
                f"{kernel}-carries",
                f"Attention carries the accuracy: with {kernel} it ends far above the same "
                "transformer whose attention is frozen at uniform.",
                carried,
                (kernel, UNIFORM),
                above(study.carried),
                ((RANDOM, UNIFORM), "a transformer that has learned labels of a coin"),
                "beyond the poster",
                "not compared",
                f"accuracy with {kernel} attention less that of its frozen twin at the end "
                "(points)",
                reason="attention has not started yet when the run ends, or what is learned needs "
                "no attention; the curves show which.",
            )
            for kernel in KERNELS
        ),
        Claim(
            "attention-late",
            "Two stages: attention starts to bring something clearly later than the same "
            "transformer with uniform attention starts to learn what it can.",
            late,
            ("softmax", UNIFORM),
            above(LATE),
            ((UNIFORM, None), "the first stage in place of the second: none is later than itself"),
            "beyond the poster; on other models Li 2023, section 5, and Snell 2021",
            "not compared",
            f"step at which softmax attention is {100 * AHEAD:.0f} points ahead of its frozen "
            f"twin on unseen {paper.sequences}, over the step at which the twin's training loss is "
            f"{FALLEN:g} nats below that of a coin",
            reason="attention and the rest start together here, or attention never comes to lead "
            "by as much; the curves show which.",
        ),
        Claim(
            "beyond-counting",
            f"The better of the two kernels does better than {paper.bag}, which knows no order.",
            beyond,
            KERNELS,
            above(100 * (chance - 0.5)),
            ((RANDOM,), "the transformer on labels that a coin has drawn"),
            "beyond the poster",
            "not compared",
            "accuracy of the better kernel less that of least squares on counts (points); the "
            "criterion is three standard errors",
            reason=paper.counting,
        ),
    ]
