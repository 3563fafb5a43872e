"""The claims of ``li2023.value``: Theorem 2, how W^V gets there, and what finite N changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below, call, within
from attnscope.probes.topics.topic_blocks import block_matrix, block_means
from attnscope.studies.li2023._topic_blocks import GAP, SHUFFLED
from attnscope.studies.li2023.value.cases import (
    ENTROPY,
    NOISE,
    OTHER_TAU,
    SAMPLED,
    SGD,
    ZERO,
    ZERO_SMALL,
    penalised,
)
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.value.study import Value

BLOCK_DISTANCE = "relative distance of the blocks' averages, Frobenius norm"


def claims(study: Value) -> list[Claim]:
    """Return what Theorem 2 says of these runs, and what lies beyond it."""
    high, second, *_ = names = [penalised(penalty) for penalty in study.penalties]
    least = names[-1]
    sampled, lengths = study.case(SGD).penalty, f"{study.shortest} to {study.longest} words"
    topic, other = study.population().topic_of, study.population(study.other_tau)
    other_end = li2023.ridge_value_blocks(other, study.penalties[1]).matrix(other)
    excess = li2023.diagonal_excess(
        study.population(), sampled, li2023.shortness(study.sampled_task())
    )

    def away(run: Readings, case_factor: tuple[str, float]) -> np.ndarray:
        return off(end(run, case_factor[0]), study.exact(*case_factor))

    def blocks_away(run: Readings, case_factor: tuple[str, float | None]) -> np.ndarray:
        """Average over blocks, which takes sampling noise out; without a factor N is finite."""
        case, factor = case_factor
        target = study.solution(case).end if factor is None else study.exact(case, factor)
        return off(block_matrix(final(run.of(case).blocks).to_numpy(), topic), target)

    def slope(run: Readings, cases: tuple[str, str]) -> np.ndarray:
        errors = [off(end(run, case), study.exact(ZERO)) for case in cases]
        penalties = [study.case(case).penalty for case in cases]
        return np.asarray(np.log(errors[0] / errors[1]) / np.log(penalties[0] / penalties[1]))

    def clock_error(run: Readings, stretch: float) -> np.ndarray:
        measured, known = run.of(least).distance, run.of(least).theory.distance.to_numpy()
        clock = measured["time"].to_numpy()
        curves = np.stack([np.interp(stretch * clock, clock, curve) for curve in known])
        return np.asarray(abs(measured - curves).max("step"))

    def diagonal(run: Readings, case: str) -> xr.DataArray:
        return (block(run, case, "diagonal") - block(run, case, "same topic")) / excess

    return [
        *(
            Claim(
                f"ridge-{penalty:g}",
                "The flow on the population takes W^V to the one minimum at "
                f"λ = {penalty:g}, from {start}.",
                away,
                (case, 1),
                below(0.01),
                ((case, 10), f"the solution at the wrong λ: {10 * penalty:g}"),
                "Theorem 2, at a λ above 0",
                "the minimum is unique",
                "relative distance to the exact solution, Frobenius norm",
            )
            for case, penalty, start in (
                *((penalised(penalty), penalty, "noise") for penalty in study.penalties),
                (ZERO_SMALL, study.small, "zero"),
            )
        ),
        Claim(
            "limit",
            "W^V approaches Theorem 2 as λ → 0, and its distance falls in proportion to λ.",
            slope,
            (least, ZERO_SMALL),
            within(0.9, 1.1),
            (
                (high, second),
                f"the two largest λ, {study.penalties[0]:g} and {study.penalties[1]:g}, above what "
                "tells topics apart",
            ),
            "Theorem 2, the limit λ → 0",
            "the limit; its rate is not given",
            "power of λ in the distance, between the two smallest λ",
        ),
        Claim(
            "gap",
            f"At λ = {study.small:g} words of one topic exceed words of two by c₃/v in W^V.",
            study.by_topic("W_V", ZERO_SMALL, lambda w, topic: study.gap(block_means(w, topic))),
            False,
            within(0.98, 1.02),
            (True, SHUFFLED),
            "Theorem 2, W_same - W_diff",
            f"c₃/v = {study.expected:.4f}",
            GAP,
        ),
        Claim(
            "mask-row",
            "The row of [MASK] is zero: it is never the word to predict.",
            lambda run, case: block(run, case, "mask row") / block(run, case, "same topic"),
            least,
            below(0.01),
            (NOISE, "the same start without a penalty"),
            "Theorem 2, W_0j = 0",
            "0",
            "largest |W_0j| over the mean same-topic entry",
        ),
        Claim(
            "tau",
            f"Documents of {study.other_tau} topics lead to the same W^V as documents of "
            f"{study.tau}.",
            call,
            lambda run: off(end(run, OTHER_TAU), end(run, ZERO)),
            below(0.01),
            (
                lambda run: off(end(run, second), other_end),
                f"the same at λ = {study.penalties[1]:g}, away from the limit, where τ matters",
            ),
            "Theorem 2, where τ does not enter",
            "equal",
            "relative distance of the two, Frobenius norm",
        ),
        Claim(
            "least-norm",
            "Without any penalty the flow from zero finds Theorem 2's W^V, the optimum of least "
            "norm.",
            away,
            (ZERO, 1),
            below(0.01),
            ((NOISE, 1), "the flow from noise, which nothing makes forget its start"),
            "beyond the paper; Theorem 2 and Theorem 4",
            "not stated",
            "relative distance to Theorem 2, Frobenius norm",
        ),
        Claim(
            "clock",
            f"At λ = {min(study.penalties):g} the distance to the solution is known at all times "
            "before training: three rates, of what documents share, of topics, and 2λ.",
            clock_error,
            1.0,
            below(0.01),
            (2.0, "the same prediction with twice the learning rate"),
            "beyond the paper",
            "not stated",
            "largest error of the relative distance, over all times",
        ),
        Claim(
            "cross-entropy",
            "With cross-entropy, the loss of the experiments, the gap leaves c₃/v behind: there is "
            "no finite optimum and the closed form does not apply.",
            study.final_gap,
            ENTROPY,
            above(3),
            (ZERO, "squared loss on the same documents"),
            "the synthetic experiments; the theory is for squared loss",
            "not stated",
            "average same-topic minus different-topic entry at the end, over c₃/v",
        ),
        Claim(
            "long-documents",
            f"Documents of {lengths} count as long: SGD on them ends at the solution for infinite "
            "length.",
            blocks_away,
            (SGD, 1),
            below(0.05),
            ((SGD, 10), f"the solution at the wrong λ: {10 * sampled:g}"),
            "Assumption 1, with the lengths of the synthetic experiments",
            "N → ∞",
            BLOCK_DISTANCE,
            reason="documents of N words add (diag(E y) - E yyᵀ)/N to the second moments of what "
            "is visible, which is all there is in the directions within a topic. The closed form "
            "with this term holds (see the next claim): the limits of long documents and of λ → 0 "
            "do not commute.",
        ),
        *(
            Claim(
                key,
                f"{how} documents takes the blocks of W^V to the exact solution for documents of "
                f"{lengths}.",
                blocks_away,
                (case, None),
                below(most),
                ((case, 1), "the solution for documents of infinite length"),
                "beyond the paper",
                "not stated",
                BLOCK_DISTANCE,
            )
            for key, case, how, most in (
                ("sgd", SGD, "SGD on fresh", 0.02),
                ("sampled", SAMPLED, f"The flow on {study.documents:,} sampled", 0.1),
            )
        ),
        Claim(
            "diagonal",
            "Documents of finite length give W^V a diagonal: W_ii exceeds the rest of its block by "
            "p_c/(1 - m + λTv/h), h = E 1/N.",
            diagonal,
            SGD,
            within(0.9, 1.1),
            (least, "the population, where documents are of infinite length"),
            "beyond the paper; Theorem 2 has W_ii = W_same",
            "0",
            "W_ii minus the same-topic mean, over p_c/(1 - m + λTv/h)",
        ),
    ]


def off(found: Any, target: Any) -> np.ndarray:
    """Return ‖W - W*‖/‖W*‖ of each matrix, by the last two axes."""
    norms = [np.linalg.norm(each, axis=(-2, -1)) for each in (found - target, target)]
    return np.asarray(norms[0] / norms[1])


def end(run: Readings, case: str) -> xr.DataArray:
    """Return W^V at the end of the runs of a case."""
    return final(run.of(case).W_V)


def block(run: Readings, case: str, name: str) -> xr.DataArray:
    """Return the mean of a block at the end of the runs of a case."""
    return final(run.of(case).blocks).sel(block=name)
