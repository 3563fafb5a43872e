"""The claims of ``li2023.value``: Theorem 2, how W^V gets there, and what finite N changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.studies.li2023._block_means import (
    DIAGONAL,
    MASK_ROW,
    SAME,
    block_matrix,
    block_means,
    gap,
    shuffled,
)
from attnscope.studies.li2023._value_cases import (
    ENTROPY,
    NOISE,
    OTHER_TAU,
    SAMPLED,
    SGD,
    ZERO,
    ZERO_SMALL,
    penalised,
)
from attnscope.studies.li2023._value_solution import diagonal_excess, shortness
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.value import Value

SHORT = (
    "documents of N words add (diag(E y) - E yyᵀ)/N to the second moments of what is visible, "
    "which is all there is in the directions within a topic. The closed form with this term "
    "holds (see the next claim): the limits of long documents and of λ → 0 do not commute."
)


def claims(study: Value) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        *(_ridge(study, penalised(penalty)) for penalty in study.penalties),
        _ridge(study, ZERO_SMALL),
        _limit(study),
        _gap(study),
        _mask_row(study),
        _tau(study),
        _least_norm(study),
        _clock(study),
        _entropy(study),
        _long(study),
        *(_short(study, case, most) for case, most in ((SGD, 0.02), (SAMPLED, 0.1))),
        _diagonal(study),
    )


def ends(tree: xr.DataTree, case: str) -> np.ndarray:
    """W^V at the end of the runs of a case, shape ``(seed, word, word)``."""
    return select(tree, "W_V", case).isel(snapshot=-1).to_numpy()


def end_blocks(tree: xr.DataTree, case: str) -> np.ndarray:
    """Block means of W^V at the end of the runs of a case, shape ``(seed, 5)``."""
    return select(tree, "blocks", case).isel(step=-1).to_numpy()


def off(matrices: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Relative distance ‖W - W*‖/‖W*‖ of each matrix."""
    return np.asarray(np.linalg.norm(matrices - target, axis=(-2, -1)) / np.linalg.norm(target))


def _exact(study: Value, case: str, factor: float = 1.0) -> np.ndarray:
    """W^V of documents of infinite length at a case's λ, or at a multiple of it."""
    what = study.case(case)
    population = study.population(what.tau)
    return li2023.ridge_value_blocks(population, factor * what.penalty).matrix(population)


def _ridge(study: Value, case: str) -> Claim:
    penalty = study.case(case).penalty
    return Claim(
        key=f"ridge-{penalty:g}",
        sentence=f"The flow on the population takes W^V to the one minimum at λ = {penalty:g}"
        + (", from zero." if case == ZERO_SMALL else ", from noise."),
        source="Theorem 2, at a λ above 0",
        paper="the minimum is unique",
        statistic=lambda tree: off(ends(tree, case), _exact(study, case)),
        criterion=below(0.01),
        control_sentence=f"the solution at the wrong λ: {10 * penalty:g}",
        control=lambda tree: off(ends(tree, case), _exact(study, case, 10)),
        measure="relative distance to the exact solution, Frobenius norm",
    )


def _limit(study: Value) -> Claim:
    def slope(tree: xr.DataTree, first: str, second: str) -> np.ndarray:
        target = _exact(study, ZERO)
        errors = [off(ends(tree, case), target) for case in (first, second)]
        penalties = [study.case(case).penalty for case in (first, second)]
        return np.asarray(np.log(errors[0] / errors[1]) / np.log(penalties[0] / penalties[1]))

    high, low = penalised(study.penalties[0]), penalised(study.penalties[1])
    least = penalised(study.penalties[-1])
    return Claim(
        key="limit",
        sentence="W^V approaches Theorem 2 as λ → 0, and its distance falls in proportion to λ.",
        source="Theorem 2, the limit λ → 0",
        paper="the limit; its rate is not given",
        statistic=lambda tree: slope(tree, least, ZERO_SMALL),
        criterion=within(0.9, 1.1),
        control_sentence=f"the two largest λ, {study.penalties[0]:g} and {study.penalties[1]:g}, "
        "above what tells topics apart",
        control=lambda tree: slope(tree, high, low),
        measure="power of λ in the distance, between the two smallest λ",
    )


def _gap(study: Value) -> Claim:
    topic = study.population(study.tau).topic_of
    expected = li2023.topic_gap(study.population(study.tau))

    def ratio(tree: xr.DataTree, mixed: bool) -> np.ndarray:
        matrices = ends(tree, ZERO_SMALL)
        topics = [shuffled(topic, seed) if mixed else topic for seed in range(len(matrices))]
        means = [block_means(w, t) for w, t in zip(matrices, topics, strict=True)]
        return np.array([gap(mean, study.words) / expected for mean in means])

    return Claim(
        key="gap",
        sentence=f"At λ = {study.small:g} words of one topic exceed words of two by c₃/v in W^V.",
        source="Theorem 2, W_same - W_diff",
        paper=f"c₃/v = {expected:.4f}",
        statistic=lambda tree: ratio(tree, False),
        criterion=within(0.98, 1.02),
        control_sentence="topics dealt to the words at random",
        control=lambda tree: ratio(tree, True),
        measure="average same-topic minus different-topic entry, over c₃/v",
    )


def _mask_row(study: Value) -> Claim:
    def share(tree: xr.DataTree, case: str) -> np.ndarray:
        means = end_blocks(tree, case)
        return np.asarray(means[:, MASK_ROW] / means[:, SAME])

    least = penalised(min(study.penalties))
    return Claim(
        key="mask-row",
        sentence="The row of [MASK] is zero: it is never the word to predict.",
        source="Theorem 2, W_0j = 0",
        paper="0",
        statistic=lambda tree: share(tree, least),
        criterion=below(0.01),
        control_sentence="the same start without a penalty",
        control=lambda tree: share(tree, NOISE),
        measure="largest |W_0j| over the mean same-topic entry",
    )


def _tau(study: Value) -> Claim:
    second = penalised(study.penalties[1])
    other = study.population(study.other_tau)

    def with_penalty(tree: xr.DataTree) -> np.ndarray:
        target = li2023.ridge_value_blocks(other, study.penalties[1]).matrix(other)
        return off(ends(tree, second), target)

    return Claim(
        key="tau",
        sentence=f"Documents of {study.other_tau} topics lead to the same W^V as documents of "
        f"{study.tau}.",
        source="Theorem 2, where τ does not enter",
        paper="equal",
        statistic=lambda tree: np.array(
            [
                off(theirs, ours)
                for theirs, ours in zip(ends(tree, OTHER_TAU), ends(tree, ZERO), strict=True)
            ]
        ),
        criterion=below(0.01),
        control_sentence=f"the same at λ = {study.penalties[1]:g}, away from the limit, where τ "
        "matters",
        control=with_penalty,
        measure="relative distance of the two, Frobenius norm",
    )


def _least_norm(study: Value) -> Claim:
    return Claim(
        key="least-norm",
        sentence="Without any penalty the flow from zero finds Theorem 2's W^V, the optimum of "
        "least norm.",
        source="beyond the paper; Theorem 2 and Theorem 4",
        paper="not stated",
        statistic=lambda tree: off(ends(tree, ZERO), _exact(study, ZERO)),
        criterion=below(0.01),
        control_sentence="the flow from noise, which nothing makes forget its start",
        control=lambda tree: off(ends(tree, NOISE), _exact(study, NOISE)),
        measure="relative distance to Theorem 2, Frobenius norm",
    )


def _clock(study: Value) -> Claim:
    least = penalised(min(study.penalties))

    def error(tree: xr.DataTree, stretch: float) -> np.ndarray:
        measured = select(tree, "distance", least)
        known = select(tree, "distance", least, "theory").to_numpy()
        clock = measured["time"].to_numpy()
        curves = np.stack([np.interp(stretch * clock, clock, curve) for curve in known])
        return np.asarray(np.abs(measured.to_numpy() - curves).max(axis=1))

    return Claim(
        key="clock",
        sentence=f"At λ = {min(study.penalties):g} the distance to the solution is known at all "
        "times before training: three rates, of what documents share, of topics, and 2λ.",
        source="beyond the paper",
        paper="not stated",
        statistic=lambda tree: error(tree, 1.0),
        criterion=below(0.01),
        control_sentence="the same prediction with twice the learning rate",
        control=lambda tree: error(tree, 2.0),
        measure="largest error of the relative distance, over all times",
    )


def _entropy(study: Value) -> Claim:
    expected = li2023.topic_gap(study.population(study.tau))

    def ratio(tree: xr.DataTree, case: str) -> np.ndarray:
        return gap(end_blocks(tree, case), study.words) / expected

    return Claim(
        key="cross-entropy",
        sentence="With cross-entropy, the loss of the experiments, the gap leaves c₃/v behind: "
        "there is no finite optimum and the closed form does not apply.",
        source="the synthetic experiments; the theory is for squared loss",
        paper="not stated",
        statistic=lambda tree: ratio(tree, ENTROPY),
        criterion=above(3),
        control_sentence="squared loss on the same documents",
        control=lambda tree: ratio(tree, ZERO),
        measure="average same-topic minus different-topic entry at the end, over c₃/v",
    )


def block_error(study: Value, tree: xr.DataTree, case: str, target: np.ndarray) -> np.ndarray:
    """Relative distance of W^V averaged over blocks, which takes sampling noise out."""
    topic = study.population(study.tau).topic_of
    averaged = [block_matrix(means, topic) for means in end_blocks(tree, case)]
    return off(np.stack(averaged), target)


def _long(study: Value) -> Claim:
    return Claim(
        key="long-documents",
        sentence=f"Documents of {study.shortest} to {study.longest} words count as long: SGD on "
        "them ends at the solution for infinite length.",
        source="Assumption 1, with the lengths of the synthetic experiments",
        paper="N → ∞",
        statistic=lambda tree: block_error(study, tree, SGD, _exact(study, SGD)),
        criterion=below(0.05),
        control_sentence=f"the solution at the wrong λ: {10 * study.case(SGD).penalty:g}",
        control=lambda tree: block_error(study, tree, SGD, _exact(study, SGD, 10)),
        measure="relative distance of the blocks' averages, Frobenius norm",
        reason=SHORT,
    )


def _short(study: Value, case: str, most: float) -> Claim:
    how = "SGD on fresh" if case == SGD else f"The flow on {study.documents:,} sampled"
    return Claim(
        key="sgd" if case == SGD else "sampled",
        sentence=f"{how} documents takes the blocks of W^V to the exact solution for documents of "
        f"{study.shortest} to {study.longest} words.",
        source="beyond the paper",
        paper="not stated",
        statistic=lambda tree: block_error(study, tree, case, study.solution(case).end),
        criterion=below(most),
        control_sentence="the solution for documents of infinite length",
        control=lambda tree: block_error(study, tree, case, _exact(study, case)),
        measure="relative distance of the blocks' averages, Frobenius norm",
    )


def _diagonal(study: Value) -> Claim:
    expected = diagonal_excess(
        study.population(study.tau), study.case(SGD).penalty, shortness(study.sampled_task())
    )

    def ratio(tree: xr.DataTree, case: str) -> np.ndarray:
        means = end_blocks(tree, case)
        return np.asarray((means[:, DIAGONAL] - means[:, SAME]) / expected)

    return Claim(
        key="diagonal",
        sentence="Documents of finite length give W^V a diagonal: W_ii exceeds the rest of its "
        "block by p_c/(1 - m + λTv/h), h = E 1/N.",
        source="beyond the paper; Theorem 2 has W_ii = W_same",
        paper="0",
        statistic=lambda tree: ratio(tree, SGD),
        criterion=within(0.9, 1.1),
        control_sentence="the population, where documents are of infinite length",
        control=lambda tree: ratio(tree, penalised(min(study.penalties))),
        measure="W_ii minus the same-topic mean, over p_c/(1 - m + λTv/h)",
    )
