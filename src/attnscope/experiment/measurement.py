"""A measurement: readings of what is there, one after another, with nothing that learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnscope.engines import Checkpoint, Linear, Observable, Outcome, Record, Sink, Solution
from attnscope.experiment.base import Experiment
from attnscope.experiment.job import Job

if TYPE_CHECKING:
    from attnscope.trajectory import Readings


@dataclass(frozen=True)
class Quantity:
    """One thing that is measured at every point: name, axes and their lengths, and its meaning."""

    name: str
    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    meaning: str = ""


@dataclass(frozen=True)
class Pass:
    """A pass over points such as the documents of a corpus.

    Args:
        quantities: what is measured at every point.
        points: how many points there are at most.
        read: yields what is measured after the first so many points, a batch of points at a time;
            a point is one tensor for each quantity.
        dim: name of the dimension that points lie along.
    """

    quantities: tuple[Quantity, ...]
    points: int
    read: Callable[[int], Iterator[Sequence[Sequence[Tensor]]]]
    dim: str = "document"

    def record(self) -> Record:
        """Return what is recorded, at one point each."""

        def empty(shape: tuple[int, ...]) -> Callable[[nn.Module], Tensor]:
            return lambda _: torch.full(shape, torch.nan)

        observables = tuple(
            Observable(each.name, empty(each.shape), each.dims, "", each.meaning)
            for each in self.quantities
        )
        return Record(observables, Linear(self.points), self.dim)

    def run(self, sink: Sink, resume: Checkpoint | None) -> Solution:
        """Read all points, or go on after those of a checkpoint."""
        record, end = self.record(), float(self.points - 1)
        done = 0 if resume is None else int(resume.values["points"])
        sink.open(nn.Module(), [record], [record.times(end, 1.0)])

        def checkpoint() -> Checkpoint:
            return Checkpoint({"points": torch.tensor(done)}, {"points": done})

        def ended(outcome: Outcome, status: str) -> Solution:
            sink.close(checkpoint if outcome is Outcome.INTERRUPTED else None)
            return Solution(outcome, status, float(done), 0.0, done, done)

        for batch in self.read(done):
            for values in batch[: self.points - done]:
                sink.put(0, done, values)
                done += 1
            if done >= self.points:
                return ended(Outcome.FINISHED, f"finished after {done} {self.dim}s")
            if not sink.step(float(done), 0.0, checkpoint):
                return ended(Outcome.INTERRUPTED, f"interrupted after {done} {self.dim}s")
        return ended(Outcome.STOPPED, f"stopped after {done} {self.dim}s: there are no more")


@dataclass(frozen=True)
class Measurement(Experiment):
    """An experiment that reads what is there, such as a trained model on a corpus."""

    def measure(self, case: str, seed: int) -> Pass:
        """Return the pass of one case with one seed."""
        raise NotImplementedError

    def job(self, case: str, seed: int, earlier: Readings | None = None) -> Job:
        """Return the pass as a run."""
        own = self.measure(case, seed)
        return Job([own.record()], nn.Module(), float(own.points - 1), 1.0, own.run)
