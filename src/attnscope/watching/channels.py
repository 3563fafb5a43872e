"""Arrays that grow with training: written in whole chunks, beside the training, readable half-way.

A channel is one variable of the trajectory. Its readings go into a buffer of one chunk; a full
buffer is handed to a thread that writes it while training goes on, and another takes its place.
Chunks are plain bytes (Zarr v3 with the codec ``bytes`` alone), so a chunk is one file written at
once: tens of microseconds, where an array library needs a millisecond.

While training goes on every array is said to be ``ENDLESS``, and the state of the run says how much
of it is there; so nothing has to be changed when another reading comes, and whoever looks on sees
all variables equally long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import torch
import zarr
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes
from attnscope.trajectory.folder import ENDLESS

CHUNK_BYTES = 2**22
"""A chunk is at most so large, and at most ``CHUNK_POINTS`` long, and always one point at least."""
CHUNK_POINTS = 512
LARGE = 1024
"""Readings of so many numbers and more have a tensor for every point of a chunk."""
SPARES = 2
"""Full buffers of a channel that may wait for the disk. With more, training waits."""


@dataclass(frozen=True)
class Variable:
    """What a channel holds.

    Args:
        name: the variable's name in the trajectory.
        dims: names of the axes of one reading.
        along: name of the dimension that the readings lie along.
        unit: what the number counts, empty for a pure number.
        meaning: a sentence or a formula, kept with the data.
        group: where in the trajectory it goes.
    """

    name: str
    dims: tuple[str, ...] = ()
    along: str = "step"
    unit: str = ""
    meaning: str = ""
    group: str = "observables"

    @property
    def clock(self) -> str:
        """Name of the variable with the times of the readings."""
        return "time" if self.along == "step" else f"time_{self.along}"

    @property
    def is_clock(self) -> bool:
        """Whether this is that variable; it is the same for all runs."""
        return self.name == self.clock


@dataclass
class _Buffer:
    """Room for one chunk, as an array and as a tensor that share memory.

    After a step of training nothing of ours is in the processor's cache, and each kind of call has
    to be fetched; so single numbers go through ``numbers``, and large readings through ``rows``.
    """

    array: np.ndarray
    tensor: Tensor = field(init=False)
    rows: Sequence[Tensor] = field(init=False, default=())
    numbers: Any = field(init=False, default=None)

    def prepare(self) -> _Buffer:
        """Make it ready for readings; a copy that is only written does not need it."""
        self.tensor = torch.from_numpy(self.array)
        if self.array.ndim == 1 and self.array.dtype != np.float16:
            self.numbers = memoryview(self.array)  # type: ignore[arg-type]
        elif self.array[0].size >= LARGE:
            self.rows = self.tensor.unbind(0)
        return self


class Channel:
    """One variable that grows, a reading at a time.

    Args:
        writer: who writes it.
        variable: what it holds.
        like: a reading; all others have its shape.
        count: readings that were missed before; they are NaN.
    """

    def __init__(self, writer: Writer, variable: Variable, like: Tensor, count: int = 0) -> None:
        self.writer, self.variable = writer, variable
        self.shape = tuple(like.shape)
        # Points never reached are NaN, so counts and flags become floats wide enough for them.
        kept = torch.float32 if like.dtype in (torch.bfloat16, torch.float16) else like.dtype
        self.dtype = np.result_type(torch.empty(0, dtype=kept).numpy().dtype, np.float16)
        size = max(1, math.prod(self.shape)) * self.dtype.itemsize
        self.length = max(1, min(CHUNK_POINTS, CHUNK_BYTES // size))
        self.place = writer.create(variable, self.shape, self.length, self.dtype)
        self.free: SimpleQueue[_Buffer] = SimpleQueue()
        self.made = 0
        # Chunks that were never written are NaN as they are.
        self.count = count
        self.start = count - count % self.length
        self.buffer = self._empty()

    def put(self, value: Tensor | float) -> bool:
        """Take one reading; return whether it filled a chunk.

        A first axis of length 1 may be left out.

        Raises:
            ValueError: the reading has another shape than the first one had.
        """
        row, buffer = self.count - self.start, self.buffer
        if isinstance(value, Tensor):
            if value.shape != self.shape and (1, *value.shape) != self.shape:
                raise ValueError(
                    f"its shape is {tuple(value.shape)}, and was {self.shape} at first"
                )
            if value.requires_grad:
                value = value.detach()
            (buffer.rows or buffer.tensor)[row].copy_(value)
        elif buffer.numbers is not None:
            buffer.numbers[row] = value
        else:
            buffer.array[row] = value
        self.count += 1
        if row + 1 < self.length:
            return False
        self.writer.submit(_Chunk(self, self.buffer, self.start, True))
        self.start = self.count
        self.buffer = self._empty()
        return True

    def flush(self) -> None:
        """Write what the buffer holds so far; it is written again, with more, when it is full."""
        if self.count > self.start:
            copy = _Buffer(self.buffer.array.copy())
            self.writer.submit(_Chunk(self, copy, self.start, False))

    def _empty(self) -> _Buffer:
        if self.made <= SPARES:
            self.made += 1
            made = np.full((self.length, *self.shape), np.nan, dtype=self.dtype)
            return _Buffer(made).prepare()
        buffer = self.free.get()
        buffer.array.fill(np.nan)
        return buffer


@dataclass
class _Chunk:
    """A chunk to be written; its buffer goes back to the channel if it is the channel's own."""

    channel: Channel
    buffer: _Buffer
    start: int
    own: bool

    def write(self) -> None:
        channel = self.channel
        lead = [] if channel.variable.is_clock else ["0"]
        number = str(self.start // channel.length)
        key = "/".join(["c", *lead, number, *("0" for _ in channel.shape)])
        write_bytes(channel.place / key, self.buffer.array.tobytes())


class Writer:
    """A thread that writes chunks into a Zarr store.

    Args:
        store: the store; its groups are made here.
        attrs: attributes of the root group.
    """

    def __init__(self, store: Path, attrs: dict[str, Any]) -> None:
        self.store = store
        self.root = zarr.open_group(store, mode="w", zarr_format=3, attributes=attrs)
        for name in ("observables", "params", "data"):
            self.root.create_group(name)
        self.sizes: dict[tuple[str, str], int] = {}
        self.trouble: Exception | None = None
        self.orders: SimpleQueue[_Chunk | Callable[[], object] | None] = SimpleQueue()
        self.thread = Thread(target=self._serve, name="attnscope-writer", daemon=True)
        self.thread.start()

    def create(
        self, variable: Variable, shape: tuple[int, ...], length: int, dtype: np.dtype[Any]
    ) -> Path:
        """Create an array without readings; return where it lies."""
        group = self.root.require_group(variable.group)
        lead = () if variable.is_clock else (1,)
        # An axis has one length throughout a group, or nobody could open it.
        dims = [
            dim
            if self.sizes.setdefault((variable.group, dim), size) == size
            else f"{variable.name}[{axis}]"
            for axis, (dim, size) in enumerate(zip(variable.dims, shape, strict=True))
        ]
        array = group.create_array(
            variable.name,
            shape=(*lead, ENDLESS, *shape),
            chunks=(*lead, length, *(max(1, n) for n in shape)),
            dtype=dtype,
            fill_value=float("nan"),
            compressors=None,
            dimension_names=(*(("run",) if lead else ()), variable.along, *dims),
        )
        words = {"unit": variable.unit, "meaning": variable.meaning}
        array.attrs.update(words if variable.is_clock else {**words, "coordinates": variable.clock})
        return self.store / variable.group / variable.name

    def submit(self, order: _Chunk | Callable[[], object]) -> None:
        """Have a chunk written, or a function called after all chunks before it are on disk."""
        self.orders.put(order)

    def close(self, channels: Sequence[Channel]) -> None:
        """Write what is left, tell every array its length, and end."""
        for channel in channels:
            channel.flush()
            self.submit(lambda channel=channel: _tell_length(channel))  # type: ignore[misc]
        self.orders.put(None)
        self.thread.join()

    def _serve(self) -> None:
        while (order := self.orders.get()) is not None:
            try:
                if self.trouble is None:
                    (order.write if isinstance(order, _Chunk) else order)()
            except (OSError, AttnscopeError) as error:
                self.trouble = error
            finally:
                if isinstance(order, _Chunk) and order.own:
                    order.channel.free.put(order.buffer)


def _tell_length(channel: Channel) -> None:
    path = channel.place / "zarr.json"
    metadata = json.loads(path.read_text())
    metadata["shape"][0 if channel.variable.is_clock else 1] = channel.count
    write_bytes(path, json.dumps(metadata, indent=1).encode())
