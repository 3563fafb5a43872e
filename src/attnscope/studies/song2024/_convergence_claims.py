"""The claims of ``song2024.convergence``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import below
from attnscope.claims.claim import Statistic
from attnscope.studies.old import Claim
from attnscope.studies.song2024._convergence_cases import (
    BELOW,
    CERTIFIED,
    DESCENTS,
    FLOWS,
    USUAL,
)
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence import Convergence

SOLVED = -6.0
"""log10 of the relative loss below which a problem counts as solved."""
SLACK = 1e-6
"""Rounding and the solver's tolerance, in the logarithm of a loss."""
FLOOR = 1e-11
"""Relative loss below which the solver's tolerance speaks, and bounds are not judged."""


def gather(
    tree: xr.DataTree, name: str, cases: Sequence[str], group: str = "observables"
) -> np.ndarray:
    """Return a variable of several cases, runs first."""
    return np.concatenate([select(tree, name, case, group).to_numpy() for case in cases])


def final_loss(tree: xr.DataTree, cases: Sequence[str]) -> np.ndarray:
    """Return log10 of the last relative loss of each run."""
    return np.asarray(np.log10(gather(tree, "relative_loss", cases)[:, -1]))


def excess(
    tree: xr.DataTree, cases: Sequence[str], bound: np.ndarray, where: np.ndarray | None = None
) -> np.ndarray:
    """Return the largest log(f/bound) of each run, over all points or those given.

    Both are cut at :data:`FLOOR`.
    """
    loss = gather(tree, "relative_loss", cases)
    over = np.log(np.maximum(loss, FLOOR)) - np.log(np.maximum(bound, FLOOR))
    return np.asarray(np.max(over if where is None else np.where(where, over, -np.inf), axis=1))


def with_constant(tree: xr.DataTree, cases: Sequence[str], name: str) -> np.ndarray:
    """Return f(0) exp(-βt) with some constant in place of β."""
    start = gather(tree, "relative_loss", cases)[:, :1]
    rates = gather(tree, name, cases, "theory")[:, None]
    return np.asarray(start * np.exp(-rates * tree["observables/time"].to_numpy()))


def claims(study: Convergence) -> tuple[Claim, ...]:
    """Return what is decided."""
    covered = (*FLOWS, *DESCENTS, *CERTIFIED)

    def rate(tree: xr.DataTree) -> np.ndarray:
        certified = gather(tree, "certified", covered, "theory") > 0
        return excess(tree, covered, gather(tree, "rate_bound", covered, "theory"), certified)

    def path(tree: xr.DataTree) -> np.ndarray:
        flows = (*FLOWS, *CERTIFIED)
        return excess(tree, flows, gather(tree, "path_bound", flows, "theory"))

    def too_fast(cases: Sequence[str]) -> Statistic:
        return lambda tree: excess(tree, cases, with_constant(tree, cases, "largest"))

    def descent(tree: xr.DataTree) -> np.ndarray:
        certified = gather(tree, "certified", DESCENTS, "theory") > 0
        steps = tree["observables/time"].to_numpy() / study.lr
        start = gather(tree, "relative_loss", DESCENTS)[:, :1]
        rates = gather(tree, "beta", DESCENTS, "theory")[:, None]
        bound = start * (1 - study.lr * rates) ** steps
        return excess(tree, DESCENTS, bound, certified)

    def value_alone(cases: Sequence[str]) -> Statistic:
        return lambda tree: np.log10(
            np.maximum(gather(tree, "value_residual", cases, "theory"), 1e-40)
        )

    def allowed(cases: Sequence[str]) -> Statistic:
        return lambda tree: (
            gather(tree, "shift", cases, "theory") / gather(tree, "room", cases, "theory")
        )

    def moved(tree: xr.DataTree) -> np.ndarray:
        return np.asarray(
            gather(tree, "feature_move", CERTIFIED).max(axis=1)
            / gather(tree, "shift", CERTIFIED, "theory")
        )

    alone_below = value_alone(BELOW)
    return (
        Claim(
            key="global-optimum",
            sentence="With HD >= Nn and W^Q, W^K, W^V trained, both kernels reach the optimum.",
            source="Theorem 1",
            paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
            statistic=lambda tree: final_loss(tree, USUAL),
            criterion=below(SOLVED),
            control_sentence="the best that W^V alone can do with HD < Nn",
            control=alone_below,
            measure="log10 of the relative loss at the end",
        ),
        Claim(
            key="rate",
            sentence="The loss stays below f(0) exp(-βt) for as long as the certificate covers.",
            source="Theorem 1",
            paper="(1 - ηβ)^t, β = σ²_min(W^O) σ²_min(B_0)",
            statistic=rate,
            criterion=below(SLACK),
            control_sentence="the largest singular value of B_0 in place of the smallest",
            control=too_fast(covered),
            measure="largest log(f/bound) along the certified part of a run",
        ),
        Claim(
            key="printed-bound",
            sentence="Gradient descent stays below (1 - ηβ)^t f(M_0), as printed.",
            source="Theorem 1",
            paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
            statistic=descent,
            criterion=below(SLACK),
            control_sentence="the largest singular value of B_0 in place of the smallest",
            control=too_fast(DESCENTS),
            measure="largest log(f/bound) along the certified part of a run",
        ),
        Claim(
            key="path-bound",
            sentence="Gradient flow stays below f(0) exp(-2∫μ) all the way, certified or not.",
            source="derived from Theorem 1's inequality",
            paper="none",
            statistic=path,
            criterion=below(SLACK),
            control_sentence="the largest singular value of B_0 in place of the smallest",
            control=too_fast((*FLOWS, *CERTIFIED)),
            measure="largest log(f/bound) along a run",
        ),
        Claim(
            key="start-exists",
            sentence="There is a start from which convergence is certain for all time: W^V = 0 and "
            "W^O large.",
            source="Theorem 1, 'there exists initialization'",
            paper="no start given",
            statistic=allowed(CERTIFIED),
            criterion=below(1.0),
            control_sentence="the usual start, with entries of size one",
            control=allowed(FLOWS),
            measure="how far B might move over how far it may",
        ),
        Claim(
            key="near-start",
            sentence="From the certified start B moves by no more than the bound allows.",
            source="Theorem 1, remark 'weights need to move a bit'",
            paper="'a bit'",
            statistic=moved,
            criterion=below(1.0),
            control_sentence="the move of B from the usual start, over the same bound",
            control=lambda tree: (
                gather(tree, "feature_move", FLOWS).max(axis=1)
                / gather(tree, "shift", CERTIFIED, "theory")
            ),
            measure="largest ‖B - B_0‖₂ of a run over the bound of its start",
        ),
        Claim(
            key="not-necessary",
            sentence="HD >= Nn is sufficient, not necessary: with HD < Nn training also reaches "
            "the optimum.",
            source="Theorem 1, 'Suppose HD >= Nn'",
            paper="nothing said of HD < Nn",
            statistic=lambda tree: final_loss(tree, BELOW),
            criterion=below(SOLVED),
            control_sentence="the best that W^V alone can do with HD < Nn",
            control=alone_below,
            measure="log10 of the relative loss at the end",
        ),
        Claim(
            key="value-alone",
            sentence="W^V alone fits every label exactly if HD >= Nn.",
            source="derived from Theorem 1: B has full row rank",
            paper="none",
            statistic=value_alone(USUAL),
            criterion=below(-10.0),
            control_sentence="HD < Nn",
            control=alone_below,
            measure="log10 of the least-squares residual",
        ),
    )
