"""A row of the table: what, compared with what, the ratio, and what keeps it from being more.

The ratio is always the reference's number over ours, so more is better: of seconds, of gradients,
of megabytes, of a difference that is allowed over the one that was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


class Skip(Exception):
    """A row cannot be measured here; the sentence says why."""


@dataclass(frozen=True)
class Measured:
    """What a row found.

    Args:
        reference: the reference's number.
        ours: ours, in the same unit.
        how: what else there is to say.
        ratios: of every turn; their median is the row's, not that of medians.
    """

    reference: float
    ours: float
    how: str = ""
    ratios: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """The reference's number over ours."""
        return median(self.ratios) if self.ratios else self.reference / self.ours


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Args:
        name: module and row, ``lu2021.flow_tc``; ``--only`` takes either.
        what: what is measured.
        reference: what it is compared with.
        limit: what keeps the ratio from being more.
        measure: does it. It raises :class:`Skip`, an ImportError or an AttnscopeError where it
            cannot.
        unit: of the two numbers.
    """

    name: str
    what: str
    reference: str
    limit: str
    measure: Callable[[], Measured]
    unit: str = "s"


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Processor time of one call: on one thread it is the clock's, less what others took."""
    start = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - start) / times


def turns(
    reference: Callable[[], object],
    ours: Callable[[], object],
    repeats: int = 5,
    *,
    calls: tuple[int, int] = (1, 1),
    times: float = 1.0,
    warm: bool = True,
) -> Measured:
    """Time both in turns, each first every other time.

    Args:
        reference: a call of the reference.
        ours: a call of ours.
        repeats: how many turns.
        calls: how often each is called in a turn.
        times: how many of the reference's calls one of ours stands for.
        warm: whether both are called once before.
    """
    if warm:
        reference()
        ours()
    slow, fast = [], []
    for turn in range(repeats):
        if turn % 2:
            fast.append(seconds(ours, calls[1]))
        slow.append(times * seconds(reference, calls[0]))
        if not turn % 2:
            fast.append(seconds(ours, calls[1]))
    ratios = tuple(a / b for a, b in zip(slow, fast, strict=True))
    return Measured(median(slow), median(fast), spread(ratios), ratios)


def spread(ratios: tuple[float, ...]) -> str:
    return f"{len(ratios)} ratios from {min(ratios):.3g} to {max(ratios):.3g}"
