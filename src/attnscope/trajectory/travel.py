"""Readings and checkpoints that travel: recorded in one process, written by another.

A run on another computer has no disk in common with the one that asked for it. What it records
goes there as messages, whole chunks of readings at a time, and is written by the same code, in the
same order, as a run here would write it. So the files are the same, and a run whose computer is
lost can go on elsewhere from the last checkpoint that has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from attnscope.engines.observe import Given, Observable, Record
from attnscope.engines.sink import Checkpoint
from attnscope.engines.solution import Solution
from attnscope.trajectory.folder import RunFolder
from attnscope.trajectory.pace import Paced
from attnscope.trajectory.store import CHUNK, ZarrSink

LOAD = 2**22
"""Bytes of readings that travel together at most, unless a single one is larger."""

Point = tuple[int, int, list[Tensor]]
"""A record's number, which of its points, and the readings there."""


@dataclass(frozen=True)
class Opened:
    """What will be recorded: dimension, group and names of each record."""

    records: list[tuple[str, Any, list[str]]]


@dataclass(frozen=True)
class Load:
    """Readings, in the order they were taken."""

    points: list[Point]


@dataclass(frozen=True)
class Kept:
    """Where the run can go on from; all readings before it have been sent."""

    checkpoint: Checkpoint


@dataclass(frozen=True)
class Ended:
    """How the run ended."""

    solution: Solution


Message = Opened | Load | Kept | Ended


class Sender(Paced):
    """A sink that sends what it is told.

    Args:
        send: takes one message at a time.
        every: seconds between two checkpoints; more where sending one takes long.
        progress: is told the time reached, at most ten times a second.
        interrupted: is asked before each step whether to stop.
    """

    def __init__(
        self,
        send: Callable[[Message], object],
        *,
        every: float = 5.0,
        progress: Callable[[float], None] | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(every, progress, interrupted)
        self.send = send
        self.points: list[Point] = []
        self.bytes = 0

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Say what will be recorded."""
        self.send(Opened([(r.dim, r.group, [o.name for o in r.observables]) for r in records]))

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Take the readings of one point; send them when there are enough for a chunk."""
        # A reading may be a view of the parameters, which move on before it is sent.
        copies = [value.detach().cpu().clone() for value in values]
        self.points.append((record, point, copies))
        self.bytes += sum(copy.numel() * copy.element_size() for copy in copies)
        if (point + 1) % CHUNK == 0 or self.bytes >= LOAD:
            self._send_load()

    def keep(self, checkpoint: Callable[[], Checkpoint]) -> None:
        """Send all readings, and then a checkpoint."""
        self._send_load()
        taken = checkpoint()
        tensors = {name: value.detach().cpu().clone() for name, value in taken.tensors.items()}
        self.send(Kept(Checkpoint(tensors, taken.values)))

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Send what is left, and the checkpoint of a run that was interrupted."""
        if checkpoint is not None:
            self.keep(checkpoint)
        else:
            self._send_load()

    def finish(self, solution: Solution) -> None:
        """Say how the run ended."""
        self.send(Ended(solution))

    def _send_load(self) -> None:
        if self.points:
            self.send(Load(self.points))
        self.points, self.bytes = [], 0


class Receiver:
    """Writes one run as its messages come.

    Args:
        folder: the run's folder, its store already created.
        run: which index along the dimension ``run``.
    """

    def __init__(self, folder: RunFolder, run: int) -> None:
        self.folder, self.run = folder, run
        self.sink = ZarrSink(folder, run)

    def hear(self, message: Message) -> None:
        """Write what came; a run that is opened again goes on from its last checkpoint."""
        match message:
            case Opened(records):
                self.sink = ZarrSink(self.folder, self.run)
                self.sink.open(nn.Module(), [_record(*each) for each in records], [])
            case Load(points):
                for record, point, values in points:
                    self.sink.put(record, point, values)
            case Kept(checkpoint):
                self.sink.keep(lambda: checkpoint)
            case Ended(solution):
                if solution.outcome.value != "interrupted":
                    self.sink.close(None)
                self.sink.finish(solution)


def _record(dim: str, group: Any, names: Sequence[str]) -> Record:
    """Return a record by whose names the arrays are found; nothing is read here."""

    def read(model: nn.Module) -> Tensor:
        raise NotImplementedError

    return Record(tuple(Observable(name, read) for name in names), Given(()), dim, group)
