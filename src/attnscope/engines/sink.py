"""Where readings go while a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from attnscope.engines.observe import Record


@dataclass(frozen=True)
class Checkpoint:
    """Everything an engine needs to go on from a step as if it had never stopped."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


class Sink(Protocol):
    """What an engine tells about a run, and the two things that it asks."""

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Learn what will be recorded, before the first reading."""

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Take the readings of one record at one of its points."""

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Hear that a step is done; call ``checkpoint`` to keep it; return False to stop here."""

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Flush; ``checkpoint`` is given if the run could go on later."""


class Memory:
    """Keep all readings in memory, as arrays with the record's points along the first axis."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.times: list[np.ndarray] = []
        self.arrays: list[dict[str, np.ndarray]] = []

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Start empty."""
        self.records, self.times = records, times
        self.arrays = [{} for _ in records]

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Store one point; points never reached stay NaN, so counts and flags become floats."""
        arrays = self.arrays[record]
        here = [value.cpu() for value in values]
        for observable, value in zip(self.records[record].observables, here, strict=True):
            if observable.name not in arrays:
                shape = (len(self.times[record]), *value.shape)
                dtype = np.result_type(value.numpy().dtype, np.float16)
                arrays[observable.name] = np.full(shape, np.nan, dtype=dtype)
            arrays[observable.name][point] = value.numpy()

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Go on."""
        return True

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        """Nothing is left to do."""
