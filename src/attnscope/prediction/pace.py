"""When attention starts and when it is half way, from the texts alone; with what it was fitted on.

What is followed is the mean over texts of 1 - H(α)/ln L: 0 while attention is uniform, 1 when it
is on one word. It *starts* when it has gone a tenth, and is *half way* when it has gone half, of
its way from the first step to its largest value in the run. Both depend on how long the run is.

The bag of words with attention (Lu 2021) is followed by the two-variable system
(:mod:`attnscope.theory.lu2021.two_variables`), whose times are multiplied by one factor, the
geometric mean of measured over said on the sets it was calibrated on. For the LSTM with attention
(Snell 2021) there is no such theory: its times are taken as proportional to those of the system
under the same optimizer, an empirical law. The interval of a prediction is that of one more set:
exp(m ± t s √(1 + 1/n)), with mean m and standard deviation s of the log ratios of n sets.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from attnscope.errors import AttnscopeError
from attnscope.probes.evidence.bags import LabelledBags
from attnscope.theory.lu2021 import mean_concentration, two_variable_adam, two_variable_descent

Moment = Literal["start", "half"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)
PARTS = {"start": 0.1, "half": 0.5}
"""Part of the way that has been gone at each moment."""
KEPT = "pace.json"
MODELS = ("Lu 2021", "Snell 2021")
SURE = 0.95
WIDE = 10.0
"""An interval whose ends are further apart than this, as a ratio, says nothing."""
FINE = 121
"""Points of the curve that is followed."""


@dataclass(frozen=True)
class Plan:
    """How a model is trained.

    Args:
        model: ``"Lu 2021"`` or ``"Snell 2021"``.
        optimizer: ``"SGD"`` or ``"Adam"``.
        rate: learning rate.
        steps: how many.
        batch: texts in a step.
        dim: length of embeddings.
    """

    model: str
    optimizer: str
    rate: float
    steps: int
    batch: int = 32
    dim: int = 50

    @property
    def name(self) -> str:
        """Model and optimizer."""
        return f"{self.model}, {self.optimizer}"


PLANS = (
    Plan("Lu 2021", "SGD", 12.5, 2400),
    Plan("Lu 2021", "Adam", 4e-3, 1200),
    Plan("Snell 2021", "SGD", 1.0, 2400),
    Plan("Snell 2021", "Adam", 4e-3, 1200),
)
"""What was calibrated: the trainings of the studies predict.when and predict.labelled."""


def system_plan(plan: Plan) -> Plan:
    """Return the training of the bag of words that a plan's times are told from."""
    own = next((p for p in PLANS if p.name == f"{MODELS[0]}, {plan.optimizer}"), None)
    if own is None:
        raise AttnscopeError(f"optimizer = '{plan.optimizer}': expected SGD or Adam.")
    return plan if plan.model == MODELS[0] else own


def system_curve(bags: LabelledBags, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return steps, and the concentration of attention that the two-variable system has there.

    Args:
        bags: training texts of two classes.
        plan: how the bag of words is trained.
    """
    spaced = np.geomspace(1.0, plan.steps, FINE)
    steps = np.unique(np.round(np.concatenate([np.zeros(1), spaced]))).astype(np.float64)
    if plan.optimizer == "SGD":
        found = two_variable_descent(bags.counts, bags.labels, steps, rate=plan.rate)
    else:
        found = two_variable_adam(
            bags.counts, bags.labels, steps, rate=plan.rate, batch=plan.batch, dim=plan.dim
        )
    return steps, mean_concentration(found.scores, bags.counts)


def moments(steps: NDArray[np.float64], curve: NDArray[np.float64]) -> dict[Moment, float]:
    """Return the step of each moment of a curve, NaN where it never rises.

    >>> moments(np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.25, 1.0]))
    {'start': 4.0, 'half': 13.333333333333332}
    """
    way = float(np.max(curve) - curve[0])
    if not way > 0:
        return {moment: math.nan for moment in MOMENTS}
    gone = (curve - curve[0]) / way
    found: dict[Moment, float] = {}
    for moment in MOMENTS:
        at = int(np.argmax(gone > PARTS[moment]))
        part = (PARTS[moment] - gone[at - 1]) / (gone[at] - gone[at - 1])
        found[moment] = float(steps[at - 1] + part * (steps[at] - steps[at - 1]))
    return found


def said_by_system(bags: LabelledBags, plan: Plan) -> dict[Moment, float]:
    """Return the steps of the two-variable system, before anything is calibrated."""
    return moments(*system_curve(bags, system_plan(plan)))


@dataclass(frozen=True)
class Timed:
    """What came of one set.

    Args:
        name: the set.
        role: ``"chosen on"``, which is what factors are fitted on, or ``"judged on"``.
        model: ``"Lu 2021"`` or ``"Snell 2021"``.
        optimizer: ``"SGD"`` or ``"Adam"``.
        said: steps of the two-variable system, by moment.
        shuffled: the same with shuffled labels.
        seen: measured steps of each seed, by moment.
    """

    name: str
    role: str
    model: str
    optimizer: str
    said: dict[Moment, float]
    shuffled: dict[Moment, float]
    seen: dict[Moment, tuple[float, ...]]

    def measured(self, moment: Moment) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.seen[moment]))


@lru_cache(maxsize=1)
def timed() -> tuple[Timed, ...]:
    """Return what is kept in the package."""
    rows = json.loads(files(__package__).joinpath(KEPT).read_text(encoding="utf-8"))
    return tuple(Timed(**row) for row in rows)


@dataclass(frozen=True)
class Pace:
    """Measured steps over those of the system, on the sets that were fitted.

    Args:
        factor: their geometric mean.
        low: lower end of the factor of one more set, 95 %.
        high: upper end.
        constant: geometric mean of the measured steps: what is said without looking at the data.
        sets: names.
    """

    factor: float
    low: float
    high: float
    constant: float
    sets: tuple[str, ...]


def fitted(rows: tuple[Timed, ...], plan: Plan, moment: Moment) -> Pace:
    """Fit the factor of a plan on the sets that are there to be fitted on.

    Raises:
        AttnscopeError: there are fewer than two.
    """
    own = [
        row
        for row in rows
        if (row.model, row.optimizer, row.role) == (plan.model, plan.optimizer, "chosen on")
    ]
    if len(own) < 2:
        raise AttnscopeError(
            f"{plan.name} was measured on {len(own)} sets to fit on: expected two or more."
        )
    logs = np.log([row.measured(moment) / row.said[moment] for row in own])
    mean, spread = float(logs.mean()), float(logs.std(ddof=1))
    wide = float(student.ppf((1 + SURE) / 2, len(own) - 1)) * spread * math.sqrt(1 + 1 / len(own))
    constant = float(np.exp(np.mean(np.log([row.measured(moment) for row in own]))))
    return Pace(
        math.exp(mean),
        math.exp(mean - wide),
        math.exp(mean + wide),
        constant,
        tuple(row.name for row in own),
    )


def known(plan: Plan) -> bool:
    """Whether times of this training can be told: any for the bag of words, else as calibrated."""
    return plan.model == MODELS[0] or plan in PLANS


def is_fitted(plan: Plan) -> bool:
    """Whether what is kept has sets on which the factors of a plan were fitted."""
    try:
        return bool(pace(plan, MOMENTS[0]).sets)
    except AttnscopeError:
        return False


def pace(plan: Plan, moment: Moment) -> Pace:
    """Return the factor of a plan, from what is kept."""
    return fitted(timed(), plan, moment)


@dataclass(frozen=True)
class Told:
    """What is said of one moment of a training, in steps.

    Args:
        system: by the two-variable system alone.
        step: the prediction, calibrated.
        low: lower end of its 95 % interval.
        high: upper end.
        constant: what would be said without looking at the data.
    """

    system: float
    step: float
    low: float
    high: float
    constant: float


NOTHING = Told(math.nan, math.nan, math.nan, math.nan, math.nan)


def tell_when(bags: LabelledBags, plan: Plan) -> dict[Moment, Told]:
    """Say when attention starts and when it is half way.

    Args:
        bags: training texts of two classes, as the model will see them.
        plan: how it is trained. What cannot be told (:func:`known`) is NaN.
    """
    if not known(plan):
        return dict.fromkeys(MOMENTS, NOTHING)
    said = said_by_system(bags, plan)
    return {moment: calibrated(said[moment], plan, moment) for moment in MOMENTS}


def calibrated(system: float, plan: Plan, moment: Moment) -> Told:
    """Turn a step of the two-variable system into a prediction with its interval.

    It is NaN where the interval is so wide (:data:`WIDE`) that nothing is known.
    """
    own = pace(plan, moment)
    if own.high > WIDE * own.low:
        return Told(system, math.nan, math.nan, math.nan, own.constant)
    return Told(system, system * own.factor, system * own.low, system * own.high, own.constant)
