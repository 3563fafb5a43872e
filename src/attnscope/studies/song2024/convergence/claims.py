"""The claims of ``song2024.convergence``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnscope.claims import Claim, below
from attnscope.studies.song2024._song import CUT, KERNELS, SLACK, SOLVED
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence.study import Convergence

KINDS = ("HD > Nn", "HD < Nn", "HD > Nn, descent", "certified start")
ABOVE, BELOW, DESCENT, CERTIFIED = KINDS
"""The usual start, by flow, with too few columns, and by descent; W^V = 0 and W^O large."""
CASES = {f"{kernel}, {kind}": (kernel, kind) for kernel in KERNELS for kind in KINDS}


def of(reading: xr.DataArray, *kinds: str) -> xr.DataArray:
    """Return a reading of some kinds of runs with either kernel, case by case."""
    cases = [case for case, (_, kind) in CASES.items() if kind in kinds]
    return reading.sel(case=cases).drop_vars("case")


def claims_of(study: Convergence) -> list[Claim]:
    """Return what Theorem 1 says, and what it does not."""
    flows, covered = (ABOVE, CERTIFIED), (ABOVE, DESCENT, CERTIFIED)

    def reached(run: Readings, given: tuple[str, ...]) -> np.ndarray:
        """Return log10 of the loss of some kinds that all weights reach, or W^V alone."""
        weights, *kinds = given
        loss = final(run.relative_loss) if weights == "all" else run.theory.value_residual
        return np.log10(of(loss, *kinds).clip(1e-40))

    def excess(run: Readings, given: tuple[str, tuple[str, ...]]) -> Any:
        """Return the largest log(f/bound) of each run; rates are judged while certified."""
        name, kinds = given
        loss, theory = of(run.relative_loss, *kinds), run.theory
        steps, proven = loss["time"] / study.step, name in ("rate_bound", "descent")
        if name == "largest":
            bound = initial(loss) * np.exp(-of(theory.largest, *kinds) * loss["time"])
        elif name == "descent":
            bound = initial(loss) * (1 - study.step * of(theory.beta, *kinds)) ** steps
        else:
            bound = of(theory.get(name), *kinds)
        over: Any = np.log(loss.clip(CUT)) - np.log(bound.clip(CUT))
        certified = of(theory.certified, *kinds) > 0
        return (over.where(certified, -np.inf) if proven else over).max("step")

    def allowed(run: Readings, kind: str) -> xr.DataArray:
        return of(run.theory.shift, kind) / of(run.theory.room, kind)

    def moved(run: Readings, kind: str) -> xr.DataArray:
        return of(run.feature_move, kind).max("step") / of(run.theory.shift, CERTIFIED)

    bounded = partial(Claim, of=excess, holds=below(SLACK), source="Theorem 1")
    too_fast = "the largest singular value of B_0 in place of the smallest"
    along = "largest log(f/bound) along the certified part of a run"
    solved = partial(
        Claim,
        of=reached,
        holds=below(SOLVED),
        control=(("W^V", BELOW), "the best that W^V alone can do with HD < Nn"),
        measure="log10 of the relative loss at the end",
    )
    return [
        solved(
            "global-optimum",
            "With HD >= Nn and W^Q, W^K, W^V trained, both kernels reach the optimum.",
            given=("all", ABOVE, DESCENT),
            source="Theorem 1",
            paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
        ),
        bounded(
            "rate",
            "The loss stays below f(0) exp(-βt) for as long as the certificate covers.",
            given=("rate_bound", covered),
            control=(("largest", covered), too_fast),
            paper="(1 - ηβ)^t, β = σ²_min(W^O) σ²_min(B_0)",
            measure=along,
        ),
        bounded(
            "printed-bound",
            "Gradient descent stays below (1 - ηβ)^t f(M_0), as printed.",
            given=("descent", (DESCENT,)),
            control=(("largest", (DESCENT,)), too_fast),
            paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
            measure=along,
        ),
        bounded(
            "path-bound",
            "Gradient flow stays below f(0) exp(-2∫μ) all the way, certified or not.",
            given=("path_bound", flows),
            control=(("largest", flows), too_fast),
            source="derived from Theorem 1's inequality",
            paper="none",
            measure="largest log(f/bound) along a run",
        ),
        Claim(
            "start-exists",
            "There is a start from which convergence is certain for all time: W^V = 0 and "
            "W^O large.",
            allowed,
            CERTIFIED,
            below(1.0),
            (ABOVE, "the usual start, with entries of size one"),
            "Theorem 1, 'there exists initialization'",
            "no start given",
            "how far B might move over how far it may",
        ),
        Claim(
            "near-start",
            "From the certified start B moves by no more than the bound allows.",
            moved,
            CERTIFIED,
            below(1.0),
            (ABOVE, "the move of B from the usual start, over the same bound"),
            "Theorem 1, remark 'weights need to move a bit'",
            "'a bit'",
            "largest ‖B - B_0‖₂ of a run over the bound of its start",
        ),
        solved(
            "not-necessary",
            "HD >= Nn is sufficient, not necessary: with HD < Nn training also reaches "
            "the optimum.",
            given=("all", BELOW),
            source="Theorem 1, 'Suppose HD >= Nn'",
            paper="nothing said of HD < Nn",
        ),
        solved(
            "value-alone",
            "W^V alone fits every label exactly if HD >= Nn.",
            given=("W^V", ABOVE, DESCENT),
            holds=below(-10.0),
            control=(("W^V", BELOW), "HD < Nn"),
            source="derived from Theorem 1: B has full row rank",
            paper="none",
            measure="log10 of the least-squares residual",
        ),
    ]
