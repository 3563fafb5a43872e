"""The claims of ``snell2021.initial_derivative``: eq 15, its erratum, its limit, what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.trajectory import select
from attnscope.studies.snell2021._derivative_readings import (
    MIXTURE,
    PERMUTATIONS,
    apart,
    error,
    predicted_theta,
    slopes,
    start,
    theta,
    width_case,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.initial_derivative import InitialDerivative

EQ15, EQ55 = "section 4.1, eq 15", "appendix A.2, eq 54 and 55"
BEYOND = "beyond the paper; section 4.1"
SLOPE = "slope of the measured derivative against the formula, over all pairs of words"


def claims(study: InitialDerivative) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _logits(study),
        _printed(study),
        _corrected(study),
        _falls(study),
        _error(study),
        _exact(study),
        _early(study),
        _limit_flow(study),
        _exact_flow(study),
        _gold(study),
        *(_uniform(study, case) for case in (PERMUTATIONS, MIXTURE)),
    )


def _logits(study: InitialDerivative) -> Claim:
    case = width_case(study.widths[-1])
    return Claim(
        key="logits",
        sentence=f"At d = {study.widths[-1]:,} the logits start with 2(C - mean_o C).",
        source=EQ55,
        paper="slope 1 as d → ∞",
        statistic=lambda tree: slopes(tree, "logits_velocity", case, 1.0, False),
        criterion=within(0.99, 1.01),
        control_sentence="the entries of the formula shuffled",
        control=lambda tree: slopes(tree, "logits_velocity", case, 1.0, True),
        measure=SLOPE,
    )


def _printed(study: InitialDerivative) -> Claim:
    case = width_case(study.widths[-1])
    return Claim(
        key="printed",
        sentence=f"At d = {study.widths[-1]:,} the probabilities start with 2(C - mean_o C), as "
        "printed.",
        source=EQ15,
        paper="slope 1 as d → ∞",
        statistic=lambda tree: slopes(tree, "theta_velocity", case, 1.0, False),
        criterion=within(0.99, 1.01),
        control_sentence="the entries of the formula shuffled",
        control=lambda tree: slopes(tree, "theta_velocity", case, 1.0, True),
        measure=SLOPE,
        reason="2(C - mean_o C) is the derivative of the logits. The softmax starts uniform, where "
        f"its own derivative is 1/|O|, here 1/{study.vocabulary} = {1 / study.vocabulary:.4f}, "
        "which is the slope measured.",
    )


def _corrected(study: InitialDerivative) -> Claim:
    case, share = width_case(study.widths[-1]), 1 / study.vocabulary
    return Claim(
        key="corrected",
        sentence=f"At d = {study.widths[-1]:,} the probabilities start with (2/|O|)(C - mean_o C).",
        source=f"{EQ15}, corrected",
        paper="not printed",
        statistic=lambda tree: slopes(tree, "theta_velocity", case, share, False),
        criterion=within(0.99, 1.01),
        control_sentence="eq 15 as printed, without 1/|O|",
        control=lambda tree: slopes(tree, "theta_velocity", case, 1.0, False),
        measure=SLOPE,
    )


def _falls(study: InitialDerivative) -> Claim:
    def exponent(tree: xr.DataTree, centred: bool) -> np.ndarray:
        errors = []
        for width in study.widths:
            case = width_case(width)
            if centred:
                errors.append(error(tree, case))
                continue
            counts = select(tree, "counts", case, "data").to_numpy()
            gap = start(tree, "logits_velocity", case) - 2 * counts
            errors.append(np.sqrt((gap**2).sum(axis=(1, 2))))
        return np.polyfit(np.log(study.widths), np.log(np.stack(errors)), 1)[0]

    return Claim(
        key="falls",
        sentence="The distance to the limit falls as 1/√d.",
        source="appendix A.2, eq 48 to 50",
        paper="exponent -0.5, by the central limit theorem",
        statistic=lambda tree: exponent(tree, True),
        criterion=within(-0.6, -0.4),
        control_sentence="the distance to 2C, not centred, which is no limit",
        control=lambda tree: exponent(tree, False),
        measure="exponent of d in ‖measured - limit‖, fitted over all widths",
    )


def _error(study: InitialDerivative) -> Claim:
    def ratio(tree: xr.DataTree, factor: float) -> np.ndarray:
        cases = [width_case(width) for width in study.widths]
        found = [
            error(tree, case) / select(tree, "expected_error", case, "theory").to_numpy()
            for case in cases
        ]
        return np.asarray(np.mean(found, axis=0) * factor)

    return Claim(
        key="error",
        sentence="The distance is √(((|I| + |O| + 2)‖G₀‖² + 4(|O| - 1)‖S‖²/|O|²)/d), with no "
        "constant left open.",
        source=BEYOND,
        paper="not given",
        statistic=lambda tree: ratio(tree, 1.0),
        criterion=within(0.8, 1.25),
        control_sentence="the same formula for four times the width",
        control=lambda tree: ratio(tree, 2.0),
        measure="measured over predicted distance, mean over widths",
    )


def _exact(study: InitialDerivative) -> Claim:
    def gap(tree: xr.DataTree, kind: str) -> np.ndarray:
        found = []
        for width in study.widths:
            case = width_case(width)
            measured = start(tree, "logits_velocity", case)
            known = select(tree, f"logits_{kind}", case, "theory").to_numpy()
            worst = np.abs(measured - known).max(axis=(1, 2)) / np.abs(known).max(axis=(1, 2))
            found.append(worst)
        return np.asarray(np.max(found, axis=0))

    return Claim(
        key="exact",
        sentence="At every width the derivative is G W Wᵀ + e eᵀ G, with no limit taken.",
        source=BEYOND,
        paper="not given",
        statistic=lambda tree: gap(tree, "exact"),
        criterion=below(1e-9),
        control_sentence="the limit d → ∞ in its place",
        control=lambda tree: gap(tree, "limit"),
        measure="largest error of any entry over the largest entry, over all widths",
    )


def _early(study: InitialDerivative) -> Claim:
    case = width_case(study.widths[-1])

    def relative(tree: xr.DataTree, step: int) -> np.ndarray:
        measured, ahead = (
            values[:, step] for values in (theta(tree, case), predicted_theta(tree, case, "early"))
        )
        moved = measured - theta(tree, case)[:, 0]
        miss = np.sqrt(((measured - ahead) ** 2).sum(axis=(1, 2)))
        return np.asarray(miss / np.sqrt((moved**2).sum(axis=(1, 2))))

    return Claim(
        key="early",
        sentence="At first β^px grows as the corrected eq 15 says.",
        source=f"{EQ15}, corrected",
        paper="β^px is likely to be larger if C is large",
        statistic=lambda tree: relative(tree, 1),
        criterion=below(0.2),
        control_sentence="the same prediction at the end of the run",
        control=lambda tree: relative(tree, -1),
        measure="‖θ - predicted‖ over ‖θ - θ(0)‖ at the first record after the start",
    )


def _limit_flow(study: InitialDerivative) -> Claim:
    case = width_case(study.widths[-1])
    return Claim(
        key="limit-flow",
        sentence=f"At d = {study.widths[-1]:,} the flow at infinite width, known from the pairs "
        "alone, gives β^px at all times.",
        source=BEYOND,
        paper="not given",
        statistic=lambda tree: apart(tree, case, "limit"),
        criterion=below(0.02),
        control_sentence="eq 15, corrected, to first order",
        control=lambda tree: apart(tree, case, "early"),
        measure="largest error of any θ at any time",
    )


def _exact_flow(study: InitialDerivative) -> Claim:
    case = width_case(study.widths[0])
    return Claim(
        key="exact-flow",
        sentence=f"At d = {study.widths[0]:,} the flow of the inner products alone gives β^px at "
        "all times.",
        source=BEYOND,
        paper="not given",
        statistic=lambda tree: apart(tree, case, "exact"),
        criterion=below(1e-3),
        control_sentence="the flow at infinite width",
        control=lambda tree: apart(tree, case, "limit"),
        measure="largest error of any θ at any time",
    )


def _gold(study: InitialDerivative) -> Claim:
    def share(tree: xr.DataTree, case: str) -> np.ndarray:
        return select(tree, "gold_largest", case).isel(step=-1).to_numpy()

    return Claim(
        key="gold",
        sentence=f"With {study.length} of {study.types} words, counts say that words can be "
        "learned, and β^px is largest at the gold word.",
        source="sections 3.3 and 4.3",
        paper="learns every time",
        statistic=lambda tree: share(tree, width_case(study.common)),
        criterion=above(0.99),
        control_sentence="permutations of the same words",
        control=lambda tree: share(tree, PERMUTATIONS),
        measure="share of target words whose gold word has the largest β^px at the end",
    )


def _uniform(study: InitialDerivative, case: str) -> Claim:
    def variation(tree: xr.DataTree, name: str) -> np.ndarray:
        return select(tree, "variation", name).isel(step=-1).to_numpy()

    what = {
        PERMUTATIONS: "With permutations of the same words",
        MIXTURE: "With permutations of one of two sets of words",
    }[case]
    return Claim(
        key=case,
        sentence=f"{what}, β^px stays uniform over positions.",
        source="section 3.3, footnote 3" if case == PERMUTATIONS else "appendix A.3, Fig 8",
        paper="provably cannot learn" if case == PERMUTATIONS else "the same for every position",
        statistic=lambda tree: variation(tree, case),
        criterion=below(0.02),
        control_sentence=f"{study.length} of {study.types} words",
        control=lambda tree: variation(tree, width_case(study.common)),
        measure="total variation distance of β^px from uniform at the end, mean over target words",
    )
