"""What an experiment would cost: a few steps of each case are measured, and nothing is kept."""

from __future__ import annotations

import math
import os
import resource
import sys
import time as clock
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Checkpoint, Record
from attnscope.experiment.base import Experiment
from attnscope.experiment.executor import one_thread
from attnscope.report.page import Table

BUDGET = 20.0
"""Seconds of measured steps, for all cases together."""
UNITS = ("bytes", "kB", "MB", "GB", "TB")
LONG = 1.0
"""Seconds from which on a reading is measured once: what it does for the first time is little."""
FEWEST = 3
"""Steps that are measured, however long they take."""


@dataclass(frozen=True)
class CaseCost:
    """What a run of one case takes.

    Args:
        case: which.
        runs: how many of it there are.
        steps: of a run; those of a flow are found on the way, and it is 0.
        measured: steps that were taken to find out.
        seconds: of the processor.
        bytes: of its readings before they are packed.
        done: how much of the run the measured steps were, between 0 and 1.
        stops: whether something may end it earlier, so that it takes less.
    """

    case: str
    runs: int
    steps: int
    measured: int
    seconds: float
    bytes: int
    done: float
    stops: bool = False


@dataclass(frozen=True)
class Estimate:
    """What all runs take.

    Args:
        cases: a run of each case.
        workers: processes side by side.
        memory: bytes of one process.
        checkpoint: bytes of a checkpoint.
    """

    cases: tuple[CaseCost, ...]
    workers: int
    memory: int
    checkpoint: int

    @property
    def runs(self) -> int:
        """How many."""
        return sum(case.runs for case in self.cases)

    @property
    def processor(self) -> float:
        """Seconds of processor time."""
        return sum(case.runs * case.seconds for case in self.cases)

    @property
    def seconds(self) -> float:
        """Seconds by the clock: no less than the longest run."""
        longest = max(case.seconds for case in self.cases)
        return max(longest, self.processor / min(self.workers, self.runs))

    @property
    def disk(self) -> int:
        """Bytes on disk at most: readings before they are packed, and checkpoints on the way."""
        kept = sum(case.runs * case.bytes for case in self.cases)
        return kept + min(self.workers, self.runs) * self.checkpoint

    def sentences(self) -> list[str]:
        """Say it."""
        steps = {case.steps for case in self.cases}
        length = f"{min(steps):,}" + (f" to {max(steps):,}" if len(steps) > 1 else "")
        taken = sum(case.measured for case in self.cases)
        what = f"{length} steps each" if any(steps) else "by gradient flow"
        said = [
            f"{self.runs} runs of {len(self.cases)} cases, {what}.",
            f"time: about {duration(self.seconds)} on {min(self.workers, self.runs)} processes "
            f"({duration(self.processor)} of processor time), by {taken:,} measured steps.",
            f"memory: about {size(self.memory)} a process, "
            f"{size(self.memory * min(self.workers, self.runs))} in all.",
            f"disk: at most {size(self.disk)}.",
        ]
        if any(case.stops and case.done < 1 for case in self.cases):
            said.append("Runs may end earlier, by conditions of the study: that is the most.")
        if any(not case.steps and case.done < 1 for case in self.cases):
            said.append(
                "A flow takes longer steps where little happens, so the time is a rough one."
            )
        return said

    def table(self) -> Table:
        """Return what a run of each case takes."""
        return Table(
            "cost",
            "A run of each case, by a few measured steps",
            ("case", "runs", "steps", "time", "disk"),
            tuple(
                (
                    c.case,
                    c.runs,
                    f"{c.steps:,}" if c.steps else "flow",
                    duration(c.seconds),
                    size(c.bytes),
                )
                for c in self.cases
            ),
        )


class _Trial:
    """A sink that lets a run go on for a while, and looks at the clock."""

    def __init__(self, budget: float) -> None:
        self.budget, self.steps, self.time = budget, 0, 0.0
        self.begun = clock.process_time()
        self.first = self.last = self.begun
        self.before = 0.0
        self.bytes: dict[int, int] = {}
        self.read: Counter[int] = Counter()
        self.points: list[int] = []
        self.checkpoint = 0

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Learn how many readings there would be."""
        self.points = [len(each) for each in times]
        self.begun = clock.process_time()

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Learn how large a reading is, and forget it."""
        self.bytes[record] = sum(each.numel() * max(2, each.element_size()) for each in values)
        if self.steps:
            self.read[record] += 1

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Go on until the time is up."""
        now = clock.process_time()
        if self.steps == 0:
            # Before the first step stand a gradient and the first readings.
            self.before = now - self.begun
            tensors = checkpoint().tensors.values()
            self.checkpoint = sum(each.numel() * each.element_size() for each in tensors)
            self.first = now = clock.process_time()
        self.steps, self.time, self.last = self.steps + 1, time, now
        return self.steps <= FEWEST or now - self.first < self.budget

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Nothing was kept."""


def estimate(
    experiment: Experiment, workers: int | None = None, budget: float = BUDGET
) -> Estimate:
    """Measure a few steps of each case and say what all runs would take.

    Args:
        experiment: what would be run.
        workers: processes side by side; one per core unless given.
        budget: seconds of measured steps, for all cases together.

    Raises:
        AttnscopeError: a run cannot be built, as when its data are not there.
    """
    cases = list(dict.fromkeys(case for case, _ in experiment.runs()))
    with one_thread():
        found = [_cost(experiment, case, budget / len(cases)) for case in cases]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = most if sys.platform == "darwin" else 1024 * most
    return Estimate(
        tuple(cost for cost, _ in found),
        workers or os.cpu_count() or 1,
        memory,
        max(bytes for _, bytes in found),
    )


def _cost(experiment: Experiment, case: str, budget: float) -> tuple[CaseCost, int]:
    begun = clock.process_time()
    seeds = [seed for each, seed in experiment.runs() if each == case]
    job = experiment.job(case, seeds[0])
    built = clock.process_time() - begun
    trial = _Trial(budget)
    solution = job.execute(trial, None)
    spent, taken = clock.process_time() - trial.first, max(1, trial.steps)
    # The last call came before a step that was refused.
    moving = max(trial.last - trial.first, 1e-9)
    kept = sum(trial.points[record] * bytes for record, bytes in trial.bytes.items())
    done = min(1.0, solution.time / job.end) if job.end else 1.0
    flows = bool(solution.gradients)
    if solution.outcome.value in ("finished", "stopped") or done >= 1:
        seconds, steps = spent, (0 if flows else solution.steps)
        return CaseCost(
            case, len(seeds), steps, taken, built + trial.before + seconds, kept, 1.0
        ), (trial.checkpoint)
    if flows:
        share = max(done, 1e-4)
        seconds, steps = moving / share, 0
    else:
        steps = round(job.end / (job.grid or 1.0))
        # Readings may be close together at first and far apart later, or at both ends alone, so
        # those that fell into the measured steps are told from the steps.
        each = [_seconds(record, job.model) for record in job.records]
        among = sum(trial.read[record] * cost for record, cost in enumerate(each))
        a_step = max(0.0, moving - among) / max(1, taken - 1)
        seconds = steps * a_step + sum(map(math.prod, zip(trial.points, each, strict=True)))
    cost = CaseCost(case, len(seeds), steps, taken, built + seconds, kept, done, job.stops)
    return cost, trial.checkpoint


def _seconds(record: Record, model: nn.Module) -> float:
    """Return what one reading of a record takes: the quicker of two, or one that takes long."""
    spent: list[float] = []
    with torch.no_grad():
        while not spent or (len(spent) == 1 and spent[0] < LONG):
            begun = clock.process_time()
            for observable in record.observables:
                observable.read(model)
            spent.append(clock.process_time() - begun)
    return min(spent)


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(8000)
    '2 h 13 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        hours, rest = divmod(round(seconds / 60), 60)
        return f"{hours} h {rest} min" if hours < 10 and rest else f"{hours} h"
    return f"{seconds / 86400:.0f} days"


def size(bytes: float) -> str:
    """Return bytes in words.

    >>> size(2_500_000)
    '2.5 MB'
    """
    power = 0
    while bytes >= 1000 and power < len(UNITS) - 1:
        bytes, power = bytes / 1000, power + 1
    whole = bytes >= 10 or power == 0
    return f"{bytes:.0f} {UNITS[power]}" if whole else f"{bytes:.1f} {UNITS[power]}"
