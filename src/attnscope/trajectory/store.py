"""The trajectory of a study on disk: its arrays are known beforehand, and runs can go on later."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines.observe import Record
from attnscope.engines.sink import Checkpoint
from attnscope.engines.solution import Solution
from attnscope.errors import AttnscopeError
from attnscope.files import disk_full_as_sentence, sync_all
from attnscope.trajectory.arrays import ChunkedArray, Store, Variable, clock_name
from attnscope.trajectory.channel import Channel
from attnscope.trajectory.checkpoint import save_checkpoint
from attnscope.trajectory.folder import RunFolder
from attnscope.trajectory.pace import Paced

CHUNK = 128
"""Record points in a chunk of a study: whoever looks on sees a run grow by so many."""


def create_store(
    folder: RunFolder,
    model: nn.Module,
    records: Sequence[Record],
    *,
    runs: int,
    until: float,
    grid: float | None,
    attrs: dict[str, Any],
    labels: Mapping[str, Sequence[str | int | float]] = MappingProxyType({}),
) -> list[str]:
    """Create every array of a trajectory, full of NaN, before the first run begins.

    Shapes are found by reading each observable once off ``model``.

    Args:
        folder: the run's folder.
        model: what is read.
        records: what is recorded, and when.
        runs: how many there are.
        until: the time at which they end.
        grid: time of one step, if times are multiples of it.
        attrs: attributes of the store.
        labels: names of the entries of dimensions, for observables that have none of their own.

    Returns:
        The names of the arrays, ``group/variable``.

    Raises:
        AttnscopeError: dims or labels do not fit what an observable returns, or another observable.
    """
    with disk_full_as_sentence(folder.store):
        store = Store(folder.store, attrs)
        for run in range(runs):
            folder.write_state(run, {})  # One that is missing is then known to be lost.
        for record in records:
            times = torch.from_numpy(record.times(until, grid))
            clock_axis = Variable(
                clock_name(record.dim),
                along=record.dim,
                unit="learning rate × steps",
                meaning="training time",
                group=record.group,
            )
            made = store.create(clock_axis, times[0], points=len(times), length=len(times))
            made.write(0, times.numpy().tobytes())
            for observable in record.observables:
                with torch.no_grad():
                    reading = observable.read(model)
                own = {dim: labels[dim] for dim in observable.dims if dim in labels}
                variable = Variable(
                    observable.name,
                    observable.dims,
                    record.dim,
                    observable.unit,
                    observable.meaning,
                    record.group,
                    {**own, **observable.coords},
                )
                shape = tuple(reading.shape)
                if store.fitted(variable, shape).dims != variable.dims:
                    raise AttnscopeError(
                        f"observable '{observable.name}' has dims {observable.dims} and returned "
                        f"an array of shape {shape}, and another observable has such a dim with "
                        "another length or other labels: expected one length and one list of "
                        "labels of a name."
                    )
                store.create(
                    variable, reading, points=len(times), length=CHUNK, runs=runs, packed=True
                )
    return store.names


class ZarrSink(Paced):
    """Writes one run of a trajectory and its checkpoints.

    Args:
        folder: the run's folder, its store already created.
        run: which index along the dimension ``run``.
        every: seconds between two checkpoints; more where keeping one takes long.
        progress: is told the time reached, at most ten times a second.
        interrupted: is asked before each step whether to stop.
    """

    def __init__(
        self,
        folder: RunFolder,
        run: int,
        *,
        every: float = 5.0,
        progress: Callable[[float], None] | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(every, progress, interrupted)
        self.folder, self.run = folder, run
        self.records: list[Record] = []
        self.channels: list[list[Channel]] = []
        self.counts: list[int] = []
        self.synced: dict[Channel, int] = {}
        self.seconds = float(folder.state(run).get("seconds", 0.0))

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Find the arrays, which :func:`create_store` has made."""
        self.records, self.counts = records, [0] * len(records)
        for record in records:
            group = self.folder.store / record.group
            arrays = [ChunkedArray.open(group / o.name, self.run) for o in record.observables]
            self.channels.append([Channel(array) for array in arrays])
        # What is on disk from before may be written again, a part of a chunk first.
        self._tell_state("running")

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Keep one point; write when the chunk is full."""
        full = False
        for channel, value in zip(self.channels[record], values, strict=True):
            if channel.count != point:
                channel.go_to(point)  # from a checkpoint
            full |= channel.put(value)
        self.counts[record] = point + 1
        if full:
            self._tell_state("running")

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Write what is buffered, and the checkpoint of a run that was interrupted."""
        if checkpoint is not None:
            self.keep(checkpoint)
        else:
            self._flush()

    def finish(self, solution: Solution) -> dict[str, Any]:
        """Say how the run ended; a run that can go on keeps its checkpoint."""
        self._sync()
        state = self._tell_state(
            solution.outcome.value,
            status=solution.status,
            time=solution.time,
            loss=solution.loss,
            steps=solution.steps,
            evaluations=solution.evaluations,
            rejected=solution.rejected,
            plain_steps=solution.plain_steps,
            **solution.details(),
        )
        if solution.outcome.value != "interrupted":
            self.folder.checkpoint_path(self.run).unlink(missing_ok=True)
        return state

    def keep(self, checkpoint: Callable[[], Checkpoint]) -> None:
        """Write all readings so far, and then a checkpoint."""
        # The readings first: a checkpoint must never speak of readings that are not on disk.
        self._flush()
        self._sync()
        self._tell_state("running")
        save_checkpoint(self.folder.checkpoint_path(self.run), checkpoint())

    def _flush(self) -> None:
        for channels in self.channels:
            for channel in channels:
                channel.flush()

    def _sync(self) -> None:
        """Have what was written since the last time on the disk."""
        channels = [channel for each in self.channels for channel in each]
        files = [file for c in channels for file in c.files(self.synced.get(c, 0))]
        sync_all(files, self.folder.store)
        self.synced = {channel: channel.flushed // channel.length for channel in channels}

    def _tell_state(self, outcome: str, **more: Any) -> dict[str, Any]:
        recorded = {r.dim: n for r, n in zip(self.records, self.counts, strict=True)}
        seconds = self.seconds + clock.monotonic() - self.begun
        channels = {
            f"{record.group}/{observable.name}": channel
            for record, channels in zip(self.records, self.channels, strict=True)
            for observable, channel in zip(record.observables, channels, strict=True)
        }
        ended = outcome != "running"
        state = {
            "outcome": outcome,
            "recorded": recorded,
            "chunks": {name: channel.written for name, channel in channels.items()},
            "sums": {name: channel.sums_of(ended) for name, channel in channels.items()},
            "seconds": round(seconds, 3),
            **more,
        }
        self.folder.write_state(self.run, state, sync=ended)
        return state
