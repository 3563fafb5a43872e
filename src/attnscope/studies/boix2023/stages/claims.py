"""What the theorem of stages says of the runs, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.claims import Claim, above, below, within
from attnscope.studies.boix2023._head import numbers, stage_times, timed
from attnscope.theory import boix2023
from attnscope.trajectory import Readings, crossing, final

if TYPE_CHECKING:
    from attnscope.studies.boix2023.stages.study import StagesStudy

SEEN = 0.1
"""A singular value above this has appeared."""
LOUD = "full matrices, large start"
DESCENT = "gradient descent, smallest α"


def claims(study: StagesStudy) -> list[Claim]:
    """Return what the theorem says of these runs, and what follows from it."""
    (larger, size), (smallest, least) = study.last_two()
    first, last = (case for case, _ in study.last_two(full=True))
    largest = next(iter(study.sizes()))
    forgets = ("forgetful_time", "exponents set back to 1 at each stage: no memory")

    def off(run: Readings, kind: str) -> np.ndarray:
        return np.abs(study.extrapolated(run) / run.theory.get(kind).to_numpy() - 1).max(axis=1)

    def law(run: Readings, kind: str) -> np.ndarray:
        errors = [
            np.abs(stage_times(run, case) / run.theory.get(kind).to_numpy() - 1)
            * boix2023.rescaled(alpha)
            for case, alpha in ((larger, size), (smallest, least))
        ]
        return np.asarray(np.hypot.reduce(errors[0], axis=1) / np.hypot.reduce(errors[1], axis=1))

    def shift(run: Readings, given: float) -> np.ndarray:
        later = stage_times(run, DESCENT) / stage_times(run, smallest)
        known, slow = run.theory.stage_time.to_numpy(), study.stages(lr=given).times
        size = min(len(slow), len(known))
        return np.abs(later[:, :size] - slow[:size] / known[:size]).max(axis=1)

    def full_time(run: Readings, rank: int) -> np.ndarray:
        sizes = [case for case, _ in study.last_two(full=True)]
        found = [appeared(run, case)[:, 1, 0] for case in sizes]
        known = np.linalg.svd(study.start_gradient(), compute_uv=False)[rank]
        ahead = boix2023.extrapolate(
            found[0], study.full_alphas[-2], found[1], study.full_alphas[-1]
        )
        return np.abs(ahead * known - 1)

    return [
        Claim(
            "times",
            "Every product leaves zero when the greedy algorithm says, as α → 0.",
            off,
            "stage_time",
            below(0.02),
            forgets,
            "theorem of section 3",
            "the limit α → 0",
            f"largest |extrapolated / T - 1| over the stages, from α = {size:g} and {least:g}",
        ),
        Claim(
            "order",
            "Products leave zero in the order of the greedy algorithm.",
            order,
            (smallest, False),
            above(0.999),
            ((smallest, True), "the order of the gradients at the start"),
            "theorem of section 3",
            "the same order",
            f"share of places that agree, at α = {least:g}",
        ),
        Claim(
            "law",
            "What is left of the error at a finite α falls as 1/log(1/α).",
            law,
            "stage_time",
            within(0.8, 1.25),
            forgets,
            "beyond the paper",
            "not stated",
            f"error × log(1/α) at α = {size:g} over that at {least:g}, all stages together",
        ),
        Claim(
            "plateaus",
            "Between two stages the loss rests at the minimum over the products that have left "
            "zero.",
            plateau_error,
            smallest,
            below(0.01),
            (largest, f"a start that is not small: {largest}"),
            "theorem of section 3; Fig 1",
            "the limit α → 0",
            "largest |loss / predicted - 1| where each plateau but the last is flattest",
        ),
        Claim(
            "conserved",
            "u² - v² stays what it was, entry by entry.",
            lambda run, what: kept(run, smallest, what),
            "difference",
            below(1e-6),
            ("sum", "u² + v², which is 2|uv| or more"),
            "section 3",
            "exactly",
            "largest change over the largest |uv|",
        ),
        Claim(
            "descent",
            "Gradient descent is late by what its rates are slower: log(1 ± ηg)/η in place of ±g.",
            shift,
            study.descent_rate,
            below(0.01),
            (0.0, "the rates of the flow"),
            "beyond the paper",
            "not stated",
            f"largest |ratio of times - predicted| of a stage, at η = {study.descent_rate:.3g}",
        ),
        Claim(
            "full-first",
            "With full matrices the first singular value of W_V W_Oᵀ appears at 1/σ_max of the "
            "gradient at zero.",
            full_time,
            0,
            below(0.02),
            (1, "the second singular value of the gradient"),
            "beyond the paper",
            "not stated",
            "|extrapolated / predicted - 1|",
        ),
        Claim(
            "full-one-by-one",
            "With full matrices singular values of both products appear one at a time.",
            at_once,
            last,
            below(1.5),
            (LOUD, f"a start of {study.loud:g}"),
            "section 4, Fig 3",
            "at most one more each stage",
            f"singular values that passed {SEEN} together, at most",
        ),
        Claim(
            "full-rank",
            "With full matrices the ranks end at those of the teacher.",
            lambda run, case: too_many(study, run, case),
            first,
            below(0.5),
            (LOUD, f"a start of {study.loud:g}"),
            "beyond the paper",
            "not stated",
            f"singular values above {SEEN} at the end, beside the teacher's number",
        ),
    ]


def too_many(study: StagesStudy, run: Readings, case: str) -> np.ndarray:
    """Return how far the ranks at the end are from the teacher's."""
    _, teacher = study.task.sample()
    wanted = (teacher.abs() > SEEN).sum(dim=1).numpy()
    found = (final(run.of(case).singular_value) > SEEN).sum("rank").to_numpy()
    return np.asarray(np.abs(found - wanted).sum(axis=1))


def order(run: Readings, given: tuple[str, bool]) -> np.ndarray:
    """Return the share of places at which products grew in the order of theory, for each seed.

    Args:
        run: what was recorded.
        given: the case, and whether the order of the gradients at the start is meant.
    """
    case, naive = given
    wanted = numbers(run)
    if naive:
        wanted = np.argsort(-run.theory.start_gradient.to_numpy(), kind="stable")[: len(wanted)]
    sizes = abs(timed(run.of(case).product)).stack(number=("matrix", "entry"))
    times = crossing(sizes, SEEN).transpose("seed", "number").to_numpy()
    found = np.argsort(np.where(np.isnan(times), np.inf, times), axis=1, kind="stable")
    return np.asarray((found[:, : len(wanted)] == wanted).mean(axis=1))


def plateau_error(run: Readings, case: str) -> np.ndarray:
    """Return how far losses between stages are from those of theory, for each seed, at most."""
    time, known = run.loss["time"].to_numpy(), run.theory.stage_loss.to_numpy()
    worst = []
    for loss, times in zip(run.of(case).loss.to_numpy(), stage_times(run, case), strict=True):
        slope = np.abs(np.gradient(np.log(np.maximum(loss, 1e-300)), time))
        errors = []
        for stage in range(len(times) - 1):
            between = np.flatnonzero((time >= times[stage]) & (time <= times[stage + 1]))
            if not between.size:  # one jump ran into the next: there is no plateau
                errors.append(np.inf)
                continue
            errors.append(abs(loss[between[np.argmin(slope[between])]] / known[stage] - 1))
        worst.append(max(errors, default=np.nan))
    return np.array(worst)


def kept(run: Readings, case: str, what: str) -> np.ndarray:
    """Return the change of u² - v², or of u² + v² at least, over the largest |uv|."""
    largest = abs(run.of(case).product).max(("step", "matrix", "entry")).to_numpy()
    if what == "sum":
        return np.asarray(2 * largest / largest)
    return np.asarray(run.of(case).drift.max("step").to_numpy() / largest)


def appeared(run: Readings, case: str) -> np.ndarray:
    """Return when singular values passed ``SEEN``, shape ``(seed, matrix, rank)``."""
    return np.asarray(crossing(timed(run.of(case).singular_value), SEEN).to_numpy())


def at_once(run: Readings, case: str) -> np.ndarray:
    """Return the most singular values that appeared between two record points, for each seed."""
    count = (run.of(case).singular_value > SEEN).sum(("rank", "matrix")).to_numpy()
    return np.maximum(count[:, 0], np.diff(count, axis=1).max(axis=1))
