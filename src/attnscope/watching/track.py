"""Readings that are taken at the same steps, along one dimension of the trajectory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from types import MappingProxyType

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.trajectory.arrays import Variable, clock_name
from attnscope.trajectory.channel import Channel, WriterThread
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.recording.cost import Costs
from attnscope.watching.recording.live import Logger, scalars

OF_STEPS: frozenset[Need] = frozenset({"gradients", "before"})
"""What there is only while a step is taken."""


@dataclass(frozen=True)
class Every:
    """Some readings at steps of their own: ``Every(1, "attention")``.

    Args:
        steps: from one reading to the next; step 0 always belongs to it.
        record: what is read.
    """

    steps: int
    record: tuple[Reading | Callable[..., Tensor] | str, ...]

    def __init__(self, steps: int, *record: Reading | Callable[..., Tensor] | str) -> None:
        if steps < 1:
            raise AttnscopeError(f"Every({steps}): expected 1 step or more.")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "record", record)


def _nothing(_: Moment) -> None:
    pass


def _tensor(value: Tensor | float) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)


class Track:
    """The readings of one schedule, and where they go.

    A reading that fails is warned about once and is NaN from then on; the others go on.

    Args:
        writer: who writes them.
        dim: name of the dimension they lie along.
        every: steps from one to the next.
        readings: what is read.
        labels: names of the entries of axes, where their number fits.
        costs: hear what every reading took.
    """

    def __init__(
        self,
        writer: WriterThread,
        dim: str,
        every: int,
        readings: Sequence[Reading],
        labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
        costs: Costs | None = None,
    ) -> None:
        self.writer, self.dim, self.every = writer, dim, every
        self.readings, self.labels = list(readings), labels
        self.plain = all(reading.plain for reading in readings)
        self.needs = frozenset().union(*(reading.needs for reading in readings))
        before = [reading.of for reading in readings if "before" in reading.needs]
        self.before = None if frozenset() in before else frozenset().union(*before)
        """Parameters whose weights before a step are needed; ``None`` for all."""
        clock = Variable(clock_name(dim), along=dim, unit="steps")
        self.clock = writer.open(clock, torch.zeros((), dtype=torch.float64))
        self.channels: dict[str, Channel] = {}
        self.broken: set[str] = set()
        self.costs = Costs() if costs is None else costs
        self.latest: dict[str, Tensor | float] = {}
        """What readings came to the last time, for those who log them."""
        self._straight: list[tuple[Reading, Callable[[Moment], Tensor | float | None], Channel]]

    def read(self, moment: Moment, trained: bool = True) -> None:
        """Take every reading.

        Args:
            moment: what is read.
            trained: whether a step led there; without one, readings of steps are NaN.
        """
        full = self.clock.put(moment.step)
        for reading in self.readings:
            full |= self._read(reading, moment if trained or not reading.needs & OF_STEPS else None)
        if full:
            self.flush()

    def goes_on(self) -> bool:
        """Make ready for :meth:`read_on`, if every reading is plain and has a channel."""
        if not self.plain or len(self.channels) < len(self.readings):
            return False
        self._straight = [
            (reading, _nothing if reading.name in self.broken else reading.read, channel)
            for reading in self.readings
            for channel in [self.channels[reading.name]]
        ]
        return True

    def read_on(self, moment: Moment) -> None:
        """Take every reading, as :meth:`read` does, in a third of the calls."""
        full = self.clock.put(moment.step)
        for reading, read, channel in self._straight:
            try:
                value = read(moment)
                if channel.put(math.nan if value is None else value):
                    full = True
            except Exception as error:
                self._complain(reading.name, error)
                full |= channel.put(math.nan)
                self.goes_on()
        if full:
            self.flush()

    def flush(self) -> None:
        """Write what is there, and say how much it is."""
        for channel in self.all_channels():
            channel.flush()

    def all_channels(self) -> list[Channel]:
        """Return the channels that exist so far."""
        return [self.clock, *self.channels.values()]

    def _read(self, reading: Reading, moment: Moment | None) -> bool:
        value: Tensor | float | None = None
        name = reading.name
        if moment is not None and name not in self.broken:
            try:
                value = self._timed(reading, moment)
                if value is not None and name not in self.channels:
                    self.channels[name] = self._open(reading, _tensor(value))
            except Exception as error:
                self._complain(name, error)
                value = None
        channel = self.channels.get(name)
        if channel is None:
            return False
        try:
            return channel.put(math.nan if value is None else value)
        except ValueError as error:
            self._complain(name, error)
            return channel.put(math.nan)

    def _timed(self, reading: Reading, moment: Moment) -> Tensor | float | None:
        shared, begun = moment.evaluating, perf_counter()
        value = reading.read(moment)
        # The probe batch is evaluated for whoever asks first.
        spent = perf_counter() - begun - (moment.evaluating - shared)
        if value is not None:
            size = value.numel() * value.element_size() if isinstance(value, Tensor) else 8
            self.costs.add(reading.name, spent, size)
            self.latest[reading.name] = value
        return value

    def _open(self, reading: Reading, value: Tensor) -> Channel:
        # Of a function of one line nobody knows the axes before it is called.
        dims = reading.dims or tuple(f"{reading.name}[{axis}]" for axis in range(value.ndim))
        sizes = dict(zip(dims, value.shape, strict=False))
        known = {dim: names for dim, names in self.labels.items() if sizes.get(dim) == len(names)}
        variable = Variable(
            reading.name,
            dims,
            self.dim,
            reading.unit,
            reading.meaning,
            labels={**known, **reading.coords},
        )
        return self.writer.open(variable, value, self.clock.count - 1)

    def _complain(self, name: str, error: Exception) -> None:
        self.broken.add(name)
        warnings.warn(
            f"attnscope: '{name}' can no longer be read ({type(error).__name__}: {error}). It is "
            "NaN from here on; training and the other readings go on.",
            stacklevel=2,
        )


def log_readings(loggers: Sequence[Logger], step: int, tracks: Sequence[Track]) -> None:
    """Log what tracks have read, unless it is the loss alone, which there is at every step."""
    if not loggers or all(track.every == 1 and len(track.readings) == 1 for track in tracks):
        return

    @cache
    def values() -> dict[str, float]:
        return {
            tag: number
            for track in tracks
            for reading in track.readings
            if reading.name in track.latest
            for tag, number in scalars(
                reading, track.latest[reading.name], {**track.labels, **reading.coords}
            )
        }

    for logger in loggers:
        logger.log(step, values)
