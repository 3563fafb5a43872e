"""Replay recordings prefix by prefix, as they grew, and count what was said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from clinic_cases import Case

from attnscope.watched.chart import Chart
from attnscope.watched.diagnosis import diagnose_chart

FIRST = 3
"""The first reading at which anything could be said."""


@dataclass(frozen=True)
class Replayed:
    """What was said at every reading of a case.

    Args:
        case: the training.
        steps: of its readings.
        faults: names of the faults that were named at each, the gravest first.
        dated: the step since when the disease was said to be, at the end; -1 if it was not named.
    """

    case: Case
    steps: tuple[int, ...]
    faults: tuple[tuple[str, ...], ...]
    dated: int = -1

    @property
    def named(self) -> bool:
        """Whether the disease is the first thing that is said at the end."""
        return bool(self.faults) and self.faults[-1][:1] == (self.case.disease,)

    @property
    def delay(self) -> int:
        """Steps from the onset to the reading from which on the disease is named first."""
        wrong = [i for i, names in enumerate(self.faults) if names[:1] != (self.case.disease,)]
        first = wrong[-1] + 1 if wrong else 0
        return max(0, self.steps[min(first, len(self.steps) - 1)] - self.case.onset)

    @property
    def alarms(self) -> int:
        """Readings at which a fault was named: false alarms of a healthy training.

        Of a sick one those from before its onset.
        """
        sick = bool(self.case.disease)
        return sum(
            bool(names)
            for step, names in zip(self.steps, self.faults, strict=True)
            if not sick or step < self.case.onset
        )

    @property
    def readings(self) -> int:
        """Readings at which an alarm would have been false."""
        sick = bool(self.case.disease)
        return sum(not sick or step < self.case.onset for step in self.steps)


def replay(case: Case, chart: Chart, stride: int = 1) -> Replayed:
    """Diagnose a recording as it was known at each of its readings, or at every so many."""
    clock = chart.courses.get("weight_norm", chart.courses["loss"]).steps
    pause = int(np.diff(clock).min())
    # A model that has overflowed has no readings any more, but losses.
    steps = list(range(pause * (FIRST - 1), int(chart.courses["loss"].steps[-1]) + 1, pause))
    steps = [*steps[:-1:stride], steps[-1]]
    found = [diagnose_chart(chart.until(step)) for step in steps]
    dated = next((d.since_step for d in found[-1] if d.name == case.disease), -1)
    faults = tuple(tuple(d.name for d in each if d.kind == "fault") for each in found)
    return Replayed(case, tuple(steps), faults, dated)


def table(replayed: Iterable[Replayed]) -> str:
    """Return a line for each case and one for the whole, as text."""
    kept = list(replayed)
    lines = [
        f"{'case':58} {'half':7} {'named':6} {'delay':>6} {'since':>6} {'alarms':>9}  at the end"
    ]
    for one in kept:
        sick = bool(one.case.disease)
        lines.append(
            f"{one.case.name:58} {one.case.half:7} "
            f"{('yes' if one.named else 'NO') if sick else '':6} "
            f"{one.delay if sick and one.named else '':>6} {one.dated if sick else '':>6} "
            f"{one.alarms:>4}/{one.readings:<4}  {', '.join(one.faults[-1])}"
        )
    for half in ("fixing", "judged"):
        of = [one for one in kept if one.case.half == half]
        sick = [one for one in of if one.case.disease]
        alarms, readings = sum(o.alarms for o in of), sum(o.readings for o in of)
        delays = sorted(o.delay for o in sick if o.named)
        if not of:
            continue
        lines.append(
            f"{half}: {sum(o.named for o in sick)} of {len(sick)} diseases named, "
            f"{alarms} false alarms in {readings} readings "
            f"({1000 * alarms / max(readings, 1):.2g} per 1,000), median delay "
            f"{delays[len(delays) // 2] if delays else '-'} steps"
        )
    return "\n".join(lines)
