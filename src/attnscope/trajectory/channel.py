"""Variables that grow with training, a reading at a time, and who writes their chunks.

Readings go into a buffer of one chunk. A study writes a full buffer at once. Beside somebody's
training a thread does: the buffer is handed over, and another takes its place.

While a watched training goes on every array is said to be ``ENDLESS``, and the state of the run
says how much of it is there; so nothing has to be changed when another reading comes, and whoever
looks on sees all variables equally long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from torch import Tensor, from_numpy

from attnscope.errors import AttnscopeError
from attnscope.files import sync_all
from attnscope.trajectory.arrays import ChunkedArray, Store, Variable, kept_as
from attnscope.trajectory.folder import ENDLESS
from attnscope.trajectory.lengths import tell_length

CHUNK_BYTES = 2**22
"""A chunk is at most so large, and at most ``CHUNK_POINTS`` long, and always one point at least."""
CHUNK_POINTS = 512
LARGE = 1024
"""Readings of so many numbers and more have a tensor for every point of a chunk."""
SPARES = 2
"""Full buffers of a channel that may wait for the disk. With more, training waits."""

Order = Callable[[], object]


def _nothing() -> None:
    pass


def write_now(order: Order, done: Order = _nothing) -> None:
    """Do what was ordered; errors are the caller's."""
    order()
    done()


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

    def __post_init__(self) -> None:
        self.tensor = from_numpy(self.array)
        if self.array.ndim == 1 and self.array.dtype != np.float16:
            self.numbers = memoryview(self.array)  # type: ignore[arg-type]
        elif self.array[0].size >= LARGE:
            self.rows = self.tensor.unbind(0)


class Channel:
    """One variable of a run that grows, a reading at a time.

    Args:
        array: where it is kept.
        submit: has chunks written, now or soon; it is given what to do, and what to do afterwards
            whether that went well or not.
        count: readings that were missed before; they are NaN.
    """

    def __init__(
        self, array: ChunkedArray, submit: Callable[..., None] = write_now, count: int = 0
    ) -> None:
        self.array, self.submit = array, submit
        self.sums: dict[int, bytes] = {}
        self.shape, self.length = array.shape, array.length
        self.inner = self.shape[1:] if self.shape[:1] == (1,) else self.shape
        self.free: SimpleQueue[_Buffer] = SimpleQueue()
        self.made = 0
        self.buffer = self._empty()
        self.go_to(count)
        self.first = self.end = self.full = count // self.length

    @property
    def written(self) -> tuple[int, int]:
        """The first chunk that is on disk, and the number after the last one."""
        return self.first, self.first if self.array.empty else self.end

    def sums_of(self, ended: bool) -> str:
        """Return the checksums of chunks on disk that will not change, as hexadecimal text.

        Args:
            ended: whether nothing more comes, so that the last chunk will not change either.
        """
        last = self.end if ended else self.full
        known = (self.sums.get(number) for number in range(self.first, last))
        return "".join(sum.hex() for sum in itertools.takewhile(bool, known) if sum)

    def files(self, since: int = 0) -> list[Path]:
        """Return the files of the chunks that have been written, from one of them on."""
        first, end = self.written
        return [self.array.file(number) for number in range(max(since, first), end)]

    def go_to(self, count: int) -> None:
        """Go on with a later reading; those before it are what is on disk, or else NaN."""
        self.count = self.flushed = count
        self.end = math.ceil(count / self.length)
        self.start = count - count % self.length
        self.full = self.start // self.length
        for number in range(self.full):
            self.sums.setdefault(number, self.array.sum_of(number))
        if count > self.start:
            kept = self.array.read(self.start // self.length)
            if kept is not None:
                self.buffer.array[: count - self.start] = kept[: count - self.start]

    def put(self, value: Tensor | float) -> bool:
        """Take one reading; return whether it filled a chunk.

        A first axis of length 1 may be left out.

        Raises:
            ValueError: the reading has another shape than the first one had.
        """
        row, buffer = self.count - self.start, self.buffer
        if isinstance(value, Tensor):
            if value.shape != self.shape and value.shape != self.inner:
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
        self._hand_over()
        return True

    def advance(self, readings: int) -> bool:
        """Take readings that somebody wrote into the buffer; return whether they filled it.

        They may fill it and not more, ``count - start`` is the place of the first.
        """
        self.count += readings
        if self.count - self.start < self.length:
            return False
        self._hand_over()
        return True

    def _hand_over(self) -> None:
        """Have a full buffer written, and go on with another."""
        number, buffer = self.start // self.length, self.buffer
        self.submit(
            lambda: self._write(number, buffer.array.tobytes(), full=True),
            partial(self.free.put, buffer),
        )
        self.start = self.flushed = self.count
        self.buffer = self._empty()

    def flush(self) -> None:
        """Write what the buffer holds so far; it is written again, with more, when it is full."""
        if self.count > self.flushed:
            self.flushed = self.count
            number = self.start // self.length
            self.submit(partial(self._write, number, self.buffer.array.tobytes()))

    def _write(self, number: int, data: bytes, full: bool = False) -> None:
        self.sums[number] = self.array.write(number, data)
        self.end = max(self.end, number + 1)
        self.full = number + 1 if full else number

    def _empty(self) -> _Buffer:
        if self.free.empty() and self.made <= SPARES:
            self.made += 1
            return _Buffer(np.full((self.length, *self.shape), np.nan, dtype=self.array.dtype))
        buffer = self.free.get()
        buffer.array.fill(np.nan)
        return buffer


class WriterThread:
    """A thread that writes the chunks of channels whose length nobody knows yet.

    Args:
        store: where their arrays are made.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.trouble: Exception | None = None
        self.orders: SimpleQueue[tuple[Order, Order] | None] = SimpleQueue()
        self.thread = Thread(target=self._serve, name="attnscope-writer", daemon=True)
        self.thread.start()

    def open(self, variable: Variable, like: Tensor, count: int = 0) -> Channel:
        """Make a variable that grows, after ``count`` readings that were missed."""
        size = max(1, math.prod(like.shape)) * kept_as(like).itemsize
        length = max(1, min(CHUNK_POINTS, CHUNK_BYTES // size))
        array = self.store.create(variable, like, points=ENDLESS, length=length)
        return Channel(array, self.submit, count)

    def submit(self, order: Order, done: Order = _nothing) -> None:
        """Have something done after all that was ordered before it."""
        self.orders.put((order, done))

    def close(self, channels: Sequence[Channel]) -> None:
        """Write what is left, tell every array its length, and end."""
        for channel in channels:
            channel.flush()
            axis = 0 if channel.array.run is None else 1
            self.submit(partial(tell_length, channel.array.path, axis, channel.count))
        self.submit(lambda: sync_all(self._files(channels), self.store.path))
        self.orders.put(None)
        self.thread.join()

    def _files(self, channels: Sequence[Channel]) -> list[Path]:
        about = list(self.store.path.glob("**/zarr.json"))
        return [*about, *(file for channel in channels for file in channel.files())]

    def _serve(self) -> None:
        while (item := self.orders.get()) is not None:
            order, done = item
            try:
                # After the first error nothing more is tried, but nobody waits for a buffer either.
                if self.trouble is None:
                    order()
            except (OSError, AttnscopeError) as error:
                self.trouble = error
            finally:
                done()
