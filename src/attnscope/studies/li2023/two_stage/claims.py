"""The claims of ``li2023.two_stage``: Fig 4, its limits, and what predicts both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.studies.li2023.onset.readings import onset
from attnscope.studies.li2023.two_stage.settings import (
    ADAM,
    ADAM_QUIET,
    ADAM_SLOW,
    FAST,
    FAST_QUIET,
    SETTINGS,
    SLOW,
    STILL,
    TWO_STAGES,
    UNIFORM,
    ZERO,
    reaches,
)
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.two_stage.study import TwoStage

FIG4 = "section on the two stages, Fig 4"
BEYOND = "beyond the paper; Fig 4"
LIMITS = "limitations: sensitive to hyper-parameters"
COMMON = "not visibly two-stage with common hyper-parameters"
LAG = (
    "step where the change of W^K or W^Q, the earlier, reaches 10 % of its maximum, over the same "
    "of W^V"
)


def claims(study: TwoStage) -> list[Claim]:
    """Return what the paper says of the two stages, and what predicts them."""

    def onset_error(run: Readings, case_factor: tuple[str, float]) -> np.ndarray:
        measured = onset(run.of(case_factor[0]).score_norm).to_numpy()
        return np.abs(study.predicted_onset(run, *case_factor) / measured - 1)

    def moved_by_step_10(run: Readings, case: str) -> xr.DataArray:
        change = run.of(case).change.sel(matrix="K")
        steps = change["step"].to_numpy()
        at = int(np.argmax(steps >= 10))
        return change.isel(step=at) / (SETTINGS[case].rate * steps[at] * study.width)

    return [
        Claim(
            "two-stages",
            "With SGD at learning rate 5 from noise 0.01, W^K and W^Q start after W^V: two stages.",
            lag,
            TWO_STAGES,
            above(2.0),
            (ADAM, "Adam at learning rate 0.01"),
            FIG4,
            "steps 0 to 400, then 400 to 1,000",
            LAG,
        ),
        Claim(
            "as-if-uniform",
            "Up to the onset W^V grows as if attention were frozen at uniform (SGD 5), which is "
            "the paper's simplification of stage 1.",
            apart,
            (TWO_STAGES, "onset"),
            below(0.01),
            ((FAST, "end"), "SGD 20 to the end, long past its onset"),
            FIG4 + "; simplification for theory",
            "W^K and W^Q frozen at 0",
            "largest relative gap of ‖W^V - W^V(0)‖ to the run without attention",
        ),
        Claim(
            "flat-values",
            "In stage 2 the norm of W^V stays relatively flat (SGD 5).",
            growth,
            TWO_STAGES,
            below(0.5),
            (UNIFORM, "the run with frozen uniform attention, which has no stage 2"),
            FIG4,
            "relatively flat from step 400 on",
            "growth of ‖W^V‖ per step after the onset over that before it",
            reason="under the cross-entropy W^V goes on growing in these steps, and as fast as it "
            "does without any attention: the control, which has no stage 2, gives nearly the same "
            "number. The two stages are in W^K and W^Q alone.",
        ),
        *(
            Claim(
                f"onset-{SETTINGS[case].rate:g}-{SETTINGS[case].noise:g}",
                f"{case}: an SGD run with frozen uniform attention says at which step attention "
                "starts.",
                onset_error,
                (case, 1.0),
                below(0.05),
                ((case, 0.1), "the same prediction for a tenth of the noise"),
                BEYOND,
                "near step 400, its learning rate not given",
                "relative error of the step where ‖W^Kᵀ W^Q‖₂ reaches 1",
                reason="one start is not the average start: the closed form puts 2ε²d_a in place "
                "of its |x - y|².",
            )
            for case in (TWO_STAGES, FAST, FAST_QUIET)
        ),
        Claim(
            "slow",
            f"At learning rate 1 attention does not start in {study.training.steps:,} steps, and "
            "the run without attention says so.",
            started,
            SLOW,
            below(1.0),
            (TWO_STAGES, "learning rate 5"),
            LIMITS,
            COMMON,
            "the larger of max ‖W^Kᵀ W^Q‖₂ and the last step over the predicted onset",
        ),
        Claim(
            "still",
            "At learning rate 0.03, a common one, SGD learns nothing in these steps.",
            lambda run, case: initial(run.of(case).loss) - run.of(case).loss.min("step"),
            STILL,
            below(0.05),
            (TWO_STAGES, "learning rate 5"),
            LIMITS,
            COMMON,
            "fall of the loss (nats)",
        ),
        Claim(
            "zero-start",
            "From W^K = W^Q = 0 exactly attention never starts: it is a saddle, not a start.",
            lambda run, case: run.of(case).change.sel(matrix=["K", "Q"]).max(("step", "matrix")),
            ZERO,
            below(1e-12),
            (TWO_STAGES, "noise 0.01"),
            BEYOND,
            "near-zero start; the released code starts at zero",
            "largest change of W^K and W^Q",
        ),
        *(
            Claim(
                case.lower().replace(" ", "-"),
                f"{case}: W^K starts with W^V, and there are no two stages.",
                lag,
                case,
                below(2.0),
                (TWO_STAGES, "SGD at learning rate 5"),
                LIMITS,
                COMMON,
                LAG,
            )
            for case in (ADAM, ADAM_SLOW)
        ),
        Claim(
            "adam-noise",
            "Adam starts W^K at nearly the same step from noise 1e-6 as from 1e-3, so no theory of "
            "growth from the noise applies.",
            delay,
            (ADAM_QUIET, ADAM),
            below(1.25),
            ((FAST_QUIET, FAST), "SGD at learning rate 20 from noise 1e-4 and 1e-2"),
            BEYOND,
            "not studied",
            "step where the change of W^K reaches 10 % of its maximum, over that from the larger "
            "noise",
        ),
        Claim(
            "adam-steps",
            "Why: Adam divides a gradient by its own size, so that W^K moves at the pace of the "
            "learning rate within ten steps, even from noise 1e-6.",
            moved_by_step_10,
            ADAM_QUIET,
            above(0.2),
            (TWO_STAGES, "SGD at learning rate 5"),
            BEYOND,
            "not studied",
            "root mean square change of an entry of W^K in the first 10 steps, over learning rate "
            "× steps",
        ),
    ]


def lag(run: Readings, case: str) -> xr.DataArray:
    """Return how many times later than W^V the earlier of W^K and W^Q starts."""
    starts = reaches(run.of(case))
    first = starts.sel(matrix=["K", "Q"]).min("matrix", skipna=False)
    return first / starts.sel(matrix="V")


def delay(run: Readings, cases: tuple[str, str]) -> xr.DataArray:
    """Return when W^K starts in one case over when it does in another."""
    quiet, loud = (reaches(run.of(case)).sel(matrix="K") for case in cases)
    return quiet / loud


def apart(run: Readings, case_until: tuple[str, str]) -> xr.DataArray:
    """Return how far W^V gets from the run without attention, up to the onset or to the end."""
    case, until = case_until
    change, frozen = (run.of(name).change.sel(matrix="V") for name in (case, SETTINGS[case].source))
    gaps = (abs(change - frozen) / frozen).isel(step=slice(1, None))
    last = onset(run.of(case).score_norm) if until == "onset" else np.inf
    return gaps.where(gaps["step"] <= last, 0.0).max("step")


def growth(run: Readings, case: str) -> xr.DataArray:
    """Return the growth of ‖W^V‖ per step after the onset of SGD 5 over that before it."""
    norms, at = run.of(case).norm.sel(matrix="V"), onset(run.of(TWO_STAGES).score_norm)
    steps = norms["step"].to_numpy()
    middle = at.copy(data=[np.interp(t, steps, own) for t, own in zip(at, norms, strict=True)])
    # Per step, so that stages of different length compare.
    after = (final(norms) - middle) / (steps[-1] - at)
    return after / ((middle - initial(norms)) / at)


def started(run: Readings, case: str) -> np.ndarray:
    """Return a number below 1 both if attention has not started and if it should not have."""
    norm, predicted = run.of(case).score_norm, run.of(case).theory.onset_ahead
    return np.maximum(norm.max("step"), norm["step"].to_numpy()[-1] / predicted)
