"""One run, ready to go: what is recorded, until when, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from attnscope.engines import Checkpoint, Record, Sink, Solution


@dataclass(frozen=True)
class Job:
    """A run of an experiment.

    Args:
        records: what is recorded.
        model: what it is read off; shapes are found by reading it once.
        end: time at which the run ends.
        grid: time of a step, ``None`` if steps have no length.
        execute: does the run, from a checkpoint if there is one.
        stops: whether something may end it earlier.
    """

    records: Sequence[Record]
    model: nn.Module
    end: float
    grid: float | None
    execute: Callable[[Sink, Checkpoint | None], Solution]
    stops: bool = False
