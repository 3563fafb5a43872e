"""The claims of ``li2023.two_stage``: Fig 4, its limits, and what predicts both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.studies.li2023._two_stage_readings import lag, onset, predicted, reaches
from attnscope.studies.li2023._two_stage_settings import (
    ADAM,
    ADAM_QUIET,
    ADAM_SLOW,
    FAST,
    FAST_QUIET,
    KEY,
    QUERY,
    SETTINGS,
    SLOW,
    STILL,
    TWO_STAGES,
    UNIFORM,
    VALUE,
    ZERO,
)
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.two_stage import TwoStage

FIG4 = "section on the two stages, Fig 4"
BEYOND = "beyond the paper; Fig 4"
LIMITS = "limitations: sensitive to hyper-parameters"
LAG = (
    "step where the change of W^K or W^Q, the earlier, reaches 10 % of its maximum, over the same "
    "of W^V"
)


def claims(study: TwoStage) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _two_stages(),
        _as_if_uniform(),
        _flat_values(),
        *(_onset(study, case) for case in (TWO_STAGES, FAST, FAST_QUIET)),
        _slow(study),
        _still(),
        _zero(),
        *(_adam(case) for case in (ADAM, ADAM_SLOW)),
        _adam_noise(),
        _adam_steps(study),
    )


def _two_stages() -> Claim:
    return Claim(
        key="two-stages",
        sentence="With SGD at learning rate 5 from noise 0.01, W^K and W^Q start after W^V: two "
        "stages.",
        source=FIG4,
        paper="steps 0 to 400, then 400 to 1,000",
        statistic=lambda tree: lag(tree, TWO_STAGES),
        criterion=above(2.0),
        control_sentence="Adam at learning rate 0.01",
        control=lambda tree: lag(tree, ADAM),
        measure=LAG,
    )


def _as_if_uniform() -> Claim:
    def apart(tree: xr.DataTree, case: str, until: np.ndarray | float) -> np.ndarray:
        change, frozen = (
            select(tree, "change", name).isel(matrix=VALUE).to_numpy()
            for name in (case, SETTINGS[case].source)
        )
        gaps = np.abs(change - frozen)[:, 1:] / frozen[:, 1:]
        steps = tree["observables/time"].to_numpy()[1:]
        before = steps <= np.broadcast_to(until, len(gaps))[:, None]
        return np.asarray(np.where(before, gaps, 0.0).max(axis=1))

    return Claim(
        key="as-if-uniform",
        sentence="Up to the onset W^V grows as if attention were frozen at uniform (SGD 5), which "
        "is the paper's simplification of stage 1.",
        source=FIG4 + "; simplification for theory",
        paper="W^K and W^Q frozen at 0",
        statistic=lambda tree: apart(tree, TWO_STAGES, onset(tree, TWO_STAGES)),
        criterion=below(0.01),
        control_sentence="SGD 20 to the end, long past its onset",
        control=lambda tree: apart(tree, FAST, np.inf),
        measure="largest relative gap of ‖W^V - W^V(0)‖ to the run without attention",
    )


def _flat_values() -> Claim:
    def growth(tree: xr.DataTree, case: str) -> np.ndarray:
        norms = select(tree, "norm", case).isel(matrix=VALUE).to_numpy()
        steps, at = tree["observables/time"].to_numpy(), onset(tree, TWO_STAGES)
        middle = np.array([np.interp(t, steps, run) for t, run in zip(at, norms, strict=True)])
        # Per step, so that stages of different length compare.
        after = (norms[:, -1] - middle) / (steps[-1] - at)
        return np.asarray(after / ((middle - norms[:, 0]) / at))

    return Claim(
        key="flat-values",
        sentence="In stage 2 the norm of W^V stays relatively flat (SGD 5).",
        source=FIG4,
        paper="relatively flat from step 400 on",
        statistic=lambda tree: growth(tree, TWO_STAGES),
        criterion=below(0.5),
        control_sentence="the run with frozen uniform attention, which has no stage 2",
        control=lambda tree: growth(tree, UNIFORM),
        measure="growth of ‖W^V‖ per step after the onset over that before it",
        reason="under the cross-entropy W^V goes on growing in these steps, and as fast as it does "
        "without any attention: the control, which has no stage 2, gives nearly the same number. "
        "The two stages are in W^K and W^Q alone.",
    )


def _onset(study: TwoStage, case: str) -> Claim:
    setting = SETTINGS[case]

    def error(tree: xr.DataTree, factor: float) -> np.ndarray:
        if factor == 1:
            return np.abs(predicted(tree, case) / onset(tree, case) - 1)
        source = SETTINGS[setting.source]
        steps = tree["observables/time"].to_numpy()
        sigma = select(tree, "sigma", setting.source).isel(rank=0).to_numpy()
        noise, words = setting.noise * factor, study.task().vocabulary
        times = [
            li2023.predicted_onset(source.lr * steps, run, noise, words, setting.lr).time
            for run in sigma
        ]
        return np.abs(np.array(times) / setting.lr / onset(tree, case) - 1)

    return Claim(
        key=f"onset-{setting.lr:g}-{setting.noise:g}",
        sentence=f"{case}: an SGD run with frozen uniform attention says at which step attention "
        "starts.",
        source=BEYOND,
        paper="near step 400, its learning rate not given",
        statistic=lambda tree: error(tree, 1.0),
        criterion=below(0.05),
        control_sentence="the same prediction for a tenth of the noise",
        control=lambda tree: error(tree, 0.1),
        measure="relative error of the step where ‖W^Kᵀ W^Q‖₂ reaches 1",
        reason="one start is not the average start: the closed form puts 2ε²d_a in place of its "
        "|x - y|².",
    )


def _slow(study: TwoStage) -> Claim:
    def started(tree: xr.DataTree, case: str) -> np.ndarray:
        # Below 1 both if attention has not started and if it should not have.
        end = tree["observables/time"].to_numpy()[-1]
        norm = select(tree, "score_norm", case).max("step").to_numpy()
        return np.asarray(np.maximum(norm, end / predicted(tree, case)))

    return Claim(
        key="slow",
        sentence=f"At learning rate 1 attention does not start in {study.epochs:,} steps, and the "
        "run without attention says so.",
        source=LIMITS,
        paper="not visibly two-stage with common hyper-parameters",
        statistic=lambda tree: started(tree, SLOW),
        criterion=below(1.0),
        control_sentence="learning rate 5",
        control=lambda tree: started(tree, TWO_STAGES),
        measure="the larger of max ‖W^Kᵀ W^Q‖₂ and the last step over the predicted onset",
    )


def _still() -> Claim:
    def fallen(tree: xr.DataTree, case: str) -> np.ndarray:
        loss = select(tree, "loss", case)
        return np.asarray((loss.isel(step=0) - loss.min("step")).to_numpy())

    return Claim(
        key="still",
        sentence="At learning rate 0.03, a common one, SGD learns nothing in these steps.",
        source=LIMITS,
        paper="not visibly two-stage with common hyper-parameters",
        statistic=lambda tree: fallen(tree, STILL),
        criterion=below(0.05),
        control_sentence="learning rate 5",
        control=lambda tree: fallen(tree, TWO_STAGES),
        measure="fall of the loss (nats)",
    )


def _zero() -> Claim:
    def moved(tree: xr.DataTree, case: str) -> np.ndarray:
        change = select(tree, "change", case).isel(matrix=[KEY, QUERY])
        return np.asarray(change.max(("step", "matrix")).to_numpy())

    return Claim(
        key="zero-start",
        sentence="From W^K = W^Q = 0 exactly attention never starts: it is a saddle, not a start.",
        source=BEYOND,
        paper="near-zero start; the released code starts at zero",
        statistic=lambda tree: moved(tree, ZERO),
        criterion=below(1e-12),
        control_sentence="noise 0.01",
        control=lambda tree: moved(tree, TWO_STAGES),
        measure="largest change of W^K and W^Q",
    )


def _adam(case: str) -> Claim:
    return Claim(
        key=case.lower().replace(" ", "-"),
        sentence=f"{case}: W^K starts with W^V, and there are no two stages.",
        source=LIMITS,
        paper="not visibly two-stage with common hyper-parameters",
        statistic=lambda tree: lag(tree, case),
        criterion=below(2.0),
        control_sentence="SGD at learning rate 5",
        control=lambda tree: lag(tree, TWO_STAGES),
        measure=LAG,
    )


def _adam_noise() -> Claim:
    def ratio(tree: xr.DataTree, quiet: str, loud: str) -> np.ndarray:
        return np.asarray(reaches(tree, quiet, KEY) / reaches(tree, loud, KEY))

    return Claim(
        key="adam-noise",
        sentence="Adam starts W^K at nearly the same step from noise 1e-6 as from 1e-3, so no "
        "theory of growth from the noise applies.",
        source=BEYOND,
        paper="not studied",
        statistic=lambda tree: ratio(tree, ADAM_QUIET, ADAM),
        criterion=below(1.25),
        control_sentence="SGD at learning rate 20 from noise 1e-4 and 1e-2",
        control=lambda tree: ratio(tree, FAST_QUIET, FAST),
        measure="step where the change of W^K reaches 10 % of its maximum, over that from the "
        "larger noise",
    )


def _adam_steps(study: TwoStage) -> Claim:
    def size(tree: xr.DataTree, case: str) -> np.ndarray:
        change = select(tree, "change", case).isel(matrix=KEY).to_numpy()
        steps, entries = tree["observables/time"].to_numpy(), study.task().vocabulary
        at = int(np.argmax(steps >= 10))
        return np.asarray(change[:, at] / (SETTINGS[case].lr * steps[at] * entries))

    return Claim(
        key="adam-steps",
        sentence="Why: Adam divides a gradient by its own size, so that W^K moves at the pace of "
        "the learning rate within ten steps, even from noise 1e-6.",
        source=BEYOND,
        paper="not studied",
        statistic=lambda tree: size(tree, ADAM_QUIET),
        criterion=above(0.2),
        control_sentence="SGD at learning rate 5",
        control=lambda tree: size(tree, TWO_STAGES),
        measure="root mean square change of an entry of W^K in the first 10 steps, over learning "
        "rate × steps",
    )
