"""A published statement, a number that decides it, and a case where it must fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from attnscope.bounds import fits, hints
from attnscope.errors import AttnscopeError
from attnscope.probes.intervals import mean_interval
from attnscope.trajectory import Readings

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


Statistic = Callable[[Readings, Any], Any]
"""Maps readings and an argument to one number per seed."""


def call(run: Readings, statistic: Callable[[Readings], Any]) -> Any:
    """Return what a statistic of the readings alone is.

    It is the ``of`` of a claim whose statement and control are two functions.
    """
    return statistic(run)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, made decidable: one function, and two arguments of it.

    The function is evaluated with the statement's argument, and must satisfy the criterion; then
    with the control's, where it must fail::

        Claim(
            "corollary1",
            "the norm of every topic word is √(2(s + (exp(s) - 1)/m)).",
            of=deviation,  # deviation(run, m) returns one number per seed
            given=20,
            holds=below(0.02),
            control=(40, "the wrong m"),
        )

    Args:
        key: short name, unique within the study.
        sentence: the statement in words.
        of: the statistic, a function of readings and an argument that returns one number per seed.
        given: the argument of the statement.
        holds: what the number must satisfy; fixed here, before any run.
        control: the argument with which the statement must fail, and the case in words.
        source: where the paper says it.
        paper: the paper's own value, as text.
        measure: what the statistic is, in words.
        each: every seed must satisfy the criterion, the interval is their range, and the control
            must fail for every seed. Otherwise the interval is Student's 95 % interval of the mean
            over seeds, and both are judged by it.
        reason: why it does not hold as printed, shown if it fails.
        per: cases that it is stated of, one by one. The statistic then gets the readings of the
            case, ``{case}`` in the sentence is its name, and the key ends with it.

    Raises:
        AttnscopeError: statement and control have the same argument.
    """

    key: str
    sentence: str
    of: Statistic
    given: Any
    holds: Criterion
    control: tuple[Any, str]
    source: str = ""
    paper: str = ""
    measure: str = ""
    each: bool = True
    reason: str = ""
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.control[0]) is type(self.given) and np.all(self.control[0] == self.given):
            raise AttnscopeError(
                f"claim '{self.key}' has {self.given!r} as the argument of its statement and of "
                "its control: expected a control that can fail where the statement holds."
            )

    def expanded(self) -> list[tuple[Claim, str | None]]:
        """Return the claim once for each case it is stated of, with the case."""
        if not self.per:
            return [(self, None)]
        words = ("sentence", "reason", "measure")
        return [
            (
                replace(
                    self,
                    key=f"{self.key}-{case}",
                    per=(),
                    control=(self.control[0], self.control[1].replace("{case}", case)),
                    **{name: getattr(self, name).replace("{case}", case) for name in words},
                ),
                case,
            )
            for case in self.per
        ]


@dataclass(frozen=True, repr=False)
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
    control_undecided: bool = False
    """Whether the control neither fails nor passes: one seed, or an interval across the edge."""

    def __repr__(self) -> str:
        return f"Finding({self.key}: {self.verdict}, {self.ours:.4g} must be {self.criterion})"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary; JSON has no NaN, so what is unknown is ``None``."""
        values = asdict(self)
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Finding:
        """Rebuild a finding from what :meth:`to_json` returned.

        Raises:
            TypeError: it is of another form, or of an unknown verdict.
        """
        known: dict[str, Any] = {k: math.nan if v is None else v for k, v in values.items()}
        kind: Any = cls
        for name, hint in hints(kind).items():
            if name in known and not fits(known[name], hint):
                raise TypeError(f"{name} is of another kind")
        return cls(**known)


def examine(claim: Claim, run: Readings | xr.DataTree, case: str | None = None) -> Finding:
    """Compute the statistic and its control on a trajectory, and judge both.

    Args:
        claim: of one case, or of all of them together; see :meth:`Claim.expanded`.
        run: the readings.
        case: whose readings the statistic gets; all of them unless given.
    """
    view = run if isinstance(run, Readings) else Readings(run)
    view = view if case is None else view.of(case)
    argument, control_sentence = claim.control
    values = _numbers(claim.of(view, claim.given))
    control_values = _numbers(claim.of(view, argument))
    ours, low, high, count = summarise(values, claim.each)
    control, control_low, control_high, _ = summarise(control_values, claim.each)
    if claim.each:
        verdict = claim.holds.judge_each(values)
        known = control_values.size > 0 and not np.isnan(control_values).any()
        control_fails = bool(known and not claim.holds.inside(control_values).any())
        control_undecided = not known
    else:
        verdict = claim.holds.judge(low, high)
        judged = claim.holds.judge(control_low, control_high)
        control_fails, control_undecided = judged == "fails", judged == "undecided"
    return Finding(
        key=claim.key,
        sentence=claim.sentence,
        source=claim.source,
        paper=claim.paper,
        criterion=str(claim.holds),
        ours=ours,
        low=low,
        high=high,
        seeds=count,
        interval="range over seeds" if claim.each else "95 % interval of the mean",
        verdict=verdict,
        control_sentence=control_sentence,
        control=control,
        control_low=control_low,
        control_high=control_high,
        control_fails=control_fails,
        control_undecided=control_undecided,
        reason=claim.reason if verdict != "holds" else "",
        measure=claim.measure,
    )


def examine_all(claims: Iterable[Claim], run: Readings | xr.DataTree) -> list[Finding]:
    """Decide every claim, case by case where it is stated of several."""
    return [examine(each, run, case) for claim in claims for each, case in claim.expanded()]


def summarise(values: np.ndarray, each: bool) -> tuple[float, float, float, int]:
    """Return mean, lower end, upper end and number of seeds of one number per seed.

    With a single seed there is no interval of the mean, and the ends are not a number.
    """
    values = _numbers(values)
    if values.size == 0:
        return math.nan, math.nan, math.nan, 0
    if each:
        return float(values.mean()), float(values.min()), float(values.max()), values.size
    mean, low, high = mean_interval(values)
    return float(mean), float(low), float(high), values.size


def _numbers(values: Any) -> np.ndarray:
    return np.atleast_1d(np.asarray(values, dtype=float))
