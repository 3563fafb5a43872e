"""A published statement, a number that decides it, and a case where it must fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy.special import stdtrit

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Criterion:
    """The statistic lies between ``low`` and ``high``."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"< {self.high:g}"
        if math.isinf(self.high):
            return f"> {self.low:g}"
        return f"{self.low:g} to {self.high:g}"

    def judge(self, low: float, high: float) -> Verdict:
        """Judge an interval of the mean: inside, outside, or on the edge."""
        if math.isnan(low) or math.isnan(high):
            return "undecided"
        if self.low < low and high < self.high:
            return "holds"
        if high <= self.low or low >= self.high:
            return "fails"
        return "undecided"

    def judge_each(self, values: np.ndarray) -> Verdict:
        """Judge a statement about every seed, which one seed is enough to refute."""
        if np.isnan(values).any() or values.size == 0:
            return "undecided"
        return "holds" if self.inside(values).all() else "fails"

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Return which values satisfy the criterion."""
        return np.asarray((self.low < values) & (values < self.high))


def below(value: float) -> Criterion:
    """The statistic is below ``value``."""
    return Criterion(high=value)


def above(value: float) -> Criterion:
    """The statistic is above ``value``."""
    return Criterion(low=value)


def within(low: float, high: float) -> Criterion:
    """The statistic lies between ``low`` and ``high``."""
    return Criterion(low, high)


Statistic = Callable[[xr.DataTree], np.ndarray]
"""Maps a trajectory to one number per seed."""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, made decidable.

    Args:
        key: short name, unique within the study.
        sentence: the statement in words.
        source: where the paper says it.
        paper: the paper's own value, as text.
        statistic: one number per seed.
        criterion: what the number must satisfy; fixed here, before any run.
        control_sentence: a case in which the statement must fail.
        control: the same statistic in that case.
        each: every seed must satisfy the criterion, the interval is their range, and the control
            must fail for every seed. Otherwise the interval is Student's 95 % interval of the mean
            over seeds, and both are judged by it.
        reason: why it does not hold as printed, shown if it fails.
        measure: what the statistic is, in words.
    """

    key: str
    sentence: str
    source: str
    paper: str
    statistic: Statistic
    criterion: Criterion
    control_sentence: str
    control: Statistic
    each: bool = True
    reason: str = ""
    measure: str = ""


@dataclass(frozen=True)
class Finding:
    """What a claim came to on one trajectory. All fields are JSON values."""

    key: str
    sentence: str
    source: str
    paper: str
    criterion: str
    ours: float
    low: float
    high: float
    seeds: int
    interval: str
    verdict: Verdict
    control_sentence: str
    control: float
    control_low: float
    control_high: float
    control_fails: bool
    reason: str
    measure: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary; JSON has no NaN, so what is unknown is ``None``."""
        values = asdict(self)
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Finding:
        """Rebuild a finding from what :meth:`to_json` returned."""
        known: dict[str, Any] = {k: math.nan if v is None else v for k, v in values.items()}
        return cls(**known)


def examine(claim: Claim, tree: xr.DataTree) -> Finding:
    """Compute the statistic and its control on a trajectory, and judge both."""
    values, control_values = _numbers(claim.statistic(tree)), _numbers(claim.control(tree))
    ours, low, high, count = summarise(values, claim.each)
    control, control_low, control_high, _ = summarise(control_values, claim.each)
    if claim.each:
        verdict = claim.criterion.judge_each(values)
        known = control_values.size > 0 and not np.isnan(control_values).any()
        control_fails = bool(known and not claim.criterion.inside(control_values).any())
    else:
        verdict = claim.criterion.judge(low, high)
        control_fails = claim.criterion.judge(control_low, control_high) == "fails"
    return Finding(
        key=claim.key,
        sentence=claim.sentence,
        source=claim.source,
        paper=claim.paper,
        criterion=str(claim.criterion),
        ours=ours,
        low=low,
        high=high,
        seeds=count,
        interval="range over seeds" if claim.each else "95 % interval of the mean",
        verdict=verdict,
        control_sentence=claim.control_sentence,
        control=control,
        control_low=control_low,
        control_high=control_high,
        control_fails=control_fails,
        reason=claim.reason if verdict != "holds" else "",
        measure=claim.measure,
    )


def summarise(values: np.ndarray, each: bool) -> tuple[float, float, float, int]:
    """Return mean, lower end, upper end and number of seeds of one number per seed.

    With a single seed there is no interval of the mean, and the ends are not a number.
    """
    values = _numbers(values)
    if values.size == 0:
        return math.nan, math.nan, math.nan, 0
    mean = float(values.mean())
    if each:
        return mean, float(values.min()), float(values.max()), values.size
    if values.size == 1:
        return mean, math.nan, math.nan, 1
    # Student's quantile; scipy.stats, which has it too, takes a second to import.
    half = float(stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / math.sqrt(values.size))
    return mean, mean - half, mean + half, values.size


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.atleast_1d(np.asarray(values, dtype=float))
