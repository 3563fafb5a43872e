"""Readings on disk: a Zarr v3 store that is written in whole chunks and readable half-way."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import zarr
from torch import Tensor, nn

from attnscope.engines.observe import Record
from attnscope.engines.sink import Checkpoint
from attnscope.engines.solution import Solution
from attnscope.errors import AttnscopeError
from attnscope.files import disk_full_as_sentence
from attnscope.trajectory.checkpoint import save_checkpoint
from attnscope.trajectory.folder import RunFolder, write_json

CHUNK = 128
"""Record points in a chunk. Writing whole chunks costs microseconds a point; one point at a time
costs a millisecond."""

SHARE = 50
"""Seconds of training for one of keeping checkpoints, at least."""


def create_store(
    folder: RunFolder,
    model: nn.Module,
    records: Sequence[Record],
    *,
    runs: int,
    until: float,
    grid: float | None,
    attrs: dict[str, Any],
) -> None:
    """Create every array of a trajectory, full of NaN, before the first run begins.

    Shapes are found by reading each observable once off ``model``.
    """
    with disk_full_as_sentence(folder.store):
        root = zarr.open_group(folder.store, mode="w", zarr_format=3, attributes=attrs)
        for name in ("observables", "params"):
            root.create_group(name)
        for record in records:
            group = root.require_group(record.group)
            times = record.times(until, grid)
            suffix = "" if record.dim == "step" else f"_{record.dim}"
            clock_axis = group.create_array(
                f"time{suffix}", data=times, dimension_names=(record.dim,)
            )
            clock_axis.attrs.update(unit="learning rate × steps", meaning="training time")
            for observable in record.observables:
                with torch.no_grad():
                    reading = observable.read(model)
                shape = tuple(reading.shape)
                if len(shape) != len(observable.dims):
                    raise AttnscopeError(
                        f"observable '{observable.name}' has dims {observable.dims} but returned "
                        f"an array of shape {shape}: expected one name per axis."
                    )
                array = group.create_array(
                    observable.name,
                    shape=(runs, len(times), *shape),
                    chunks=(1, min(CHUNK, len(times)), *(max(1, n) for n in shape)),
                    dtype=_numpy_dtype(reading),
                    fill_value=float("nan"),
                    dimension_names=("run", record.dim, *observable.dims),
                )
                array.attrs.update(
                    unit=observable.unit,
                    meaning=observable.meaning,
                    coordinates=f"time{suffix}",
                )


@dataclass
class _Buffer:
    """The chunk of one record that is being filled."""

    arrays: list[zarr.Array[Any]]
    chunk: list[np.ndarray]
    start: int = 0
    filled: int = 0
    dirty: bool = False


class ZarrSink:
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
        self.folder, self.run, self.every = folder, run, every
        self.progress, self.interrupted = progress, interrupted
        self.records: list[Record] = []
        self.buffers: list[_Buffer] = []
        self.counts: list[int] = []
        self.kept = self.told = self.begun = clock.monotonic()
        self.seconds = float(folder.state(run).get("seconds", 0.0))

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Find the arrays; a record's buffer is one chunk of each of its observables."""
        root = zarr.open_group(self.folder.store, mode="r+")
        self.records = records
        self.counts = [0] * len(records)
        for record, axis in zip(records, times, strict=True):
            arrays: list[Any] = [root[f"{record.group}/{o.name}"] for o in record.observables]
            length = min(CHUNK, len(axis))
            chunk = [np.full((length, *a.shape[2:]), np.nan, dtype=a.dtype) for a in arrays]
            self.buffers.append(_Buffer(arrays, chunk))

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Keep one point; write when the chunk is full."""
        buffer = self.buffers[record]
        length = len(buffer.chunk[0]) if buffer.chunk else 1
        if buffer.filled == 0 and point != buffer.start:
            # Going on from a checkpoint: the chunk begins with what is on disk already.
            buffer.start = point - point % length
            buffer.filled = point - buffer.start
            for array, chunk in zip(buffer.arrays, buffer.chunk, strict=True):
                if buffer.filled:
                    chunk[: buffer.filled] = array[self.run, buffer.start : point]
        for chunk, value in zip(buffer.chunk, values, strict=True):
            chunk[point - buffer.start] = value.detach().numpy()
        buffer.filled = point - buffer.start + 1
        buffer.dirty = True
        self.counts[record] = point + 1
        if buffer.filled == length:
            self._write(buffer)
            buffer.start += length
            buffer.filled = 0
            for chunk in buffer.chunk:
                chunk.fill(np.nan)
            self._tell_state("running")

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Keep a checkpoint now and then; stop if asked to."""
        now = clock.monotonic()
        if self.progress is not None and now - self.told > 0.1:
            self.told = now
            self.progress(time)
        if now - self.kept > self.every:
            self._keep(checkpoint)
            self.kept = clock.monotonic()
            self.every = max(self.every, SHARE * (self.kept - now))
        return not self.interrupted()

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Write what is buffered, and the checkpoint of a run that was interrupted."""
        if checkpoint is not None:
            self._keep(checkpoint)
        else:
            self._flush()

    def finish(self, solution: Solution) -> dict[str, Any]:
        """Say how the run ended; a run that can go on keeps its checkpoint."""
        state = self._tell_state(
            solution.outcome.value,
            status=solution.status,
            time=solution.time,
            loss=solution.loss,
            steps=solution.steps,
            evaluations=solution.evaluations,
            rejected=solution.rejected,
            plain_steps=solution.plain_steps,
        )
        if solution.outcome.value != "interrupted":
            self.folder.checkpoint_path(self.run).unlink(missing_ok=True)
        return state

    def _keep(self, checkpoint: Callable[[], Checkpoint]) -> None:
        # The readings first: a checkpoint must never speak of readings that are not on disk.
        self._flush()
        self._tell_state("running")
        save_checkpoint(self.folder.checkpoint_path(self.run), checkpoint())

    def _flush(self) -> None:
        for buffer in self.buffers:
            if buffer.filled and buffer.dirty:
                self._write(buffer)

    def _write(self, buffer: _Buffer) -> None:
        with disk_full_as_sentence(self.folder.store):
            for array, chunk in zip(buffer.arrays, buffer.chunk, strict=True):
                stop = min(buffer.start + len(chunk), array.shape[1])
                array[self.run, buffer.start : stop] = chunk[: stop - buffer.start]
        buffer.dirty = False

    def _tell_state(self, outcome: str, **more: Any) -> dict[str, Any]:
        recorded = {r.dim: n for r, n in zip(self.records, self.counts, strict=True)}
        seconds = self.seconds + clock.monotonic() - self.begun
        state = {"outcome": outcome, "recorded": recorded, "seconds": round(seconds, 3), **more}
        write_json(self.folder.state_path(self.run), state)
        return state


def _numpy_dtype(value: Tensor) -> np.dtype[Any]:
    # Points never reached are NaN, so counts and flags become floats wide enough for them.
    return np.result_type(value.detach().numpy().dtype, np.float16)
