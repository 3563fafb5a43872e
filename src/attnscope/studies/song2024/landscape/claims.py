"""The claims of ``song2024.landscape``: what "smoother" comes to in numbers, and why."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.probes.landscapes.roughness import Roughness, roughness
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

SOFTMAX, GAUSSIAN, NORMALISED = "softmax", "gaussian", "normalised-gaussian"
TWIN, WIDE, STRETCHED = "softmax, other batches", "gaussian, wide", "gaussian, stretched"
CASES = SOFTMAX, GAUSSIAN, NORMALISED, WIDE, STRETCHED, TWIN
"""The kernel of the second stage. The last one is softmax again, on other batches at first: what
differs between it and softmax is chance."""
PAIR = ("W_Q", "W_K")
BLOCKS: dict[str, str | tuple[str, ...]] = {
    ", ".join(PAIR): PAIR,
    **{name: name for name in ("W_Q", "W_K", "W_V", "W_O")},
    "all": "*",
}
"""Blocks whose curvature is measured; the first is that of the poster's planes."""
HALF = math.log10(0.5)
"""One kernel is smoother than another if the number is at most half; log10 of it."""
MOST = math.log10(0.25)
"""What takes three quarters of the rise away is a reason; log10 of what is left."""
EQUAL = 0.05
"""Losses are equal if they differ by no more than so much, relative to the least."""


def surfaces_of(run: Readings, case: str) -> xr.DataArray:
    """Return the surfaces at the end, along ``seed, radius, draw, b, a``."""
    return final(run.of(case).surface)


def reached(run: Readings, case: str) -> np.ndarray:
    """Return which runs of a case came to both targets, by seed."""
    return np.asarray(final(run.of(case).reached).to_numpy() == 1)


def rough(study: Landscape, surfaces: np.ndarray, radius: int) -> list[list[Roughness]]:
    """Return the roughness of surfaces at one radius, by seed and draw."""
    axis = study.axis(radius)
    return [[roughness(axis, axis, surface) for surface in seed] for seed in surfaces]


def level(study: Landscape, surfaces: np.ndarray, radius: int, measure: str) -> np.ndarray:
    """Return log10 of a measure, mean over draws, by seed; NaN if there is nothing to measure."""
    if not np.isfinite(surfaces).all():
        return np.full(len(surfaces), np.nan)
    found = rough(study, surfaces, radius)
    means = np.array([np.mean([getattr(one, measure) for one in seed]) for seed in found])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(means > 0, np.log10(means), np.nan)


def by_radius(study: Landscape, run: Readings, case: str, measure: str) -> np.ndarray:
    """Return log10 of a measure of the planes of a case, along ``radius, seed``."""
    surfaces = surfaces_of(run, case).to_numpy()
    radii = range(len(study.radii))
    found = np.stack([level(study, surfaces[:, i], i, measure) for i in radii])
    return np.where(reached(run, case), found, np.nan)


def sharp(run: Readings, case: str, block: str) -> np.ndarray:
    """Return log10 of the top Hessian eigenvalue in a block, by seed."""
    top: Any = final(run.of(case).largest).sel(block=block)
    return np.where(reached(run, case), np.log10(top.to_numpy()), np.nan)


def split_level(study: Landscape, run: Readings, case: str, moves: str) -> np.ndarray:
    """Return log10 of the mean rise where only a part of the weights moves, by seed."""
    surfaces = final(run.of(case).split).sel(moves=moves).to_numpy()
    return np.where(reached(run, case), level(study, surfaces, study.middle, "rise"), np.nan)


def losses_at(run: Readings, when: str, first: float) -> xr.DataArray:
    """Return the losses of all cases at the end, or when the kernel has just changed."""
    if when == "end":
        return final(run.get("end_loss"))
    return run.probe.sel(measure="loss").sel(step=first, method="nearest")


def claims_of(study: Landscape) -> list[Claim]:
    """Return the readings of the poster's sentence, and the reasons behind what was found."""

    def planes(run: Readings, cases: tuple[str, str], measure: str) -> np.ndarray:
        ours, theirs = (by_radius(study, run, case, measure) for case in cases)
        return cast(np.ndarray, (ours - theirs).mean(axis=0))

    def eigenvalue(run: Readings, cases: tuple[str, str], block: str) -> np.ndarray:
        ours, theirs = (sharp(run, case, block) for case in cases)
        return ours - theirs

    def held(run: Readings, moves: str) -> np.ndarray:
        own = by_radius(study, run, GAUSSIAN, "rise")[study.middle]
        return split_level(study, run, GAUSSIAN, moves) - own

    def freed(run: Readings, given: tuple[str, str]) -> np.ndarray:
        case, moves = given
        own = by_radius(study, run, SOFTMAX, "rise")[study.middle]
        if moves == "own":
            return by_radius(study, run, case, "rise")[study.middle] - own
        return split_level(study, run, case, moves) - own

    def spread(run: Readings, when: str) -> np.ndarray:
        losses = losses_at(run, when, study.first)
        every = np.all([reached(run, case) for case in study.cases], axis=0)
        return np.where(every, (losses.max("case") / losses.min("case") - 1).to_numpy(), np.nan)

    unreached = (
        "where a run never came to the targets of loss and gradient (table ends) nothing is said."
    )
    short = "it takes less than that away, or the seeds do not tell by their interval"
    again = ((TWIN, SOFTMAX), "softmax again, after other batches: chance alone differs")
    smoother = partial(
        Claim,
        given=(GAUSSIAN, SOFTMAX),
        holds=below(HALF),
        control=again,
        source="poster, landscape visualisation and Fig 3",
        paper="'exhibit a more smooth landscape compared to transformers with Softmax attention'",
        each=False,
        reason="at equal loss the Gaussian kernel is not the smoother one: its rows do not sum to "
        f"one, and their sums move with W^Q and W^K (the claims on reasons); {unreached}",
    )
    reason = partial(
        Claim,
        holds=below(MOST),
        control=again,
        source="beyond the poster",
        paper="not compared",
        measure="log10 of the mean rise over planes of all radii, quotient of two trainings",
        each=False,
    )
    plane = "over filter-normalised planes in W^Q and W^K, mean over draws and over the logarithms "
    return [
        Claim(
            "equal-loss",
            "The models that are compared are at the same loss.",
            spread,
            "end",
            below(EQUAL),
            ("change", "the same runs when the kernel has just changed"),
            "condition of the comparison",
            "not given",
            "largest over least loss of all kernels, less 1",
            reason=unreached,
        ),
        smoother(
            "rise",
            "With the Gaussian kernel the loss rises less around the end: at most half as much as "
            "with softmax.",
            partial(planes, measure="rise"),
            measure=f"log10 of the mean rise of the loss {plane}at each radius, Gaussian over "
            "softmax",
        ),
        smoother(
            "laplacian",
            "With the Gaussian kernel the surface bends less: its Laplacian is at most half of "
            "that with softmax.",
            partial(planes, measure="laplacian"),
            measure=f"log10 of the root mean square Laplacian {plane}at each radius, Gaussian over "
            "softmax",
        ),
        smoother(
            "sharpness",
            "With the Gaussian kernel the loss is less sharp in W^Q and W^K: its top Hessian "
            "eigenvalue there is at most half of that with softmax.",
            partial(eigenvalue, block=", ".join(PAIR)),
            measure="log10 of the largest eigenvalue of the Hessian in W^Q and W^K of all layers, "
            "Gaussian over softmax",
        ),
        smoother(
            "sharpness-all",
            "With the Gaussian kernel the loss is less sharp: its top Hessian eigenvalue in all "
            "parameters is at most half of that with softmax.",
            partial(eigenvalue, block="all"),
            measure="log10 of the largest eigenvalue of the Hessian in all parameters, Gaussian "
            "over softmax",
        ),
        reason(
            "reason-normalisation",
            "Normalisation is a reason: trained with rows divided by their sum, the Gaussian "
            "kernel rises at most a quarter as much.",
            partial(planes, measure="rise"),
            given=(NORMALISED, GAUSSIAN),
            reason=f"{short}; {unreached}",
        ),
        reason(
            "reason-sums",
            "It is the sums that move: around the same Gaussian models, rises are at most a "
            "quarter when the sums of rows are held at their values in the middle.",
            held,
            given="shares",
            control=("sums", "the shares within rows are held, and their sums move"),
            measure="log10 of the mean rise at the middle radius, sums held over the model's own",
            reason=f"{short}; {unreached}",
        ),
        reason(
            "reason-sums-softmax",
            "Softmax is smooth because its rows are divided: around the same softmax models, rises "
            "are at least four times as large when the sums of rows are free to move.",
            freed,
            given=(SOFTMAX, "both"),
            holds=above(-MOST),
            control=((TWIN, "own"), "softmax again, after other batches: sums stay one"),
            measure="log10 of the mean rise at the middle radius, sums free over the model's own",
            reason=f"{short}; {unreached}",
        ),
        reason(
            "reason-bandwidth",
            "Bandwidth is a reason: trained with a bandwidth twice as wide, the Gaussian kernel "
            "rises at most a quarter as much.",
            partial(planes, measure="rise"),
            given=(WIDE, GAUSSIAN),
            reason="a bandwidth σ is the same as W^Q/σ and W^K/σ, and the weights learn their own "
            f"scale; {short}; {unreached}",
        ),
        reason(
            "reason-scale",
            "The scale of queries against keys is a reason: trained with queries twice as long and "
            "keys half as long, the Gaussian kernel rises at most a quarter as much.",
            partial(planes, measure="rise"),
            given=(STRETCHED, GAUSSIAN),
            reason=f"sums of rows move with longer queries as well; {unreached}",
        ),
    ]
