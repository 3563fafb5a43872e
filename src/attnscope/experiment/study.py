"""A study: models that are trained, and what is made of their trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attnscope.engines import (
    Adam,
    Checkpoint,
    Descent,
    Flow,
    Linear,
    Observable,
    Record,
    Sgd,
    Sink,
    Solution,
    Steps,
)
from attnscope.engines.device import wanted
from attnscope.engines.placement import placed
from attnscope.engines.schedule import Switch
from attnscope.engines.stopping import Stop
from attnscope.errors import AttnscopeError
from attnscope.experiment.base import Experiment
from attnscope.experiment.job import Job

if TYPE_CHECKING:
    from torch import nn

    from attnscope.engines.parameters import Loss
    from attnscope.trajectory import Readings

Training = Flow | Descent | Adam | Sgd
"""How a model is trained, and for how long."""
POINTS = 101
"""Record points of observables that come without a schedule."""


@dataclass(frozen=True)
class Problem:
    """What learns, from what, and what is written down.

    Args:
        model: any module.
        loss: ``loss(model)`` is the loss of the full batch, ``loss(model, rows)`` that of a
            mini-batch.
        records: what is recorded; observables by themselves are read at evenly spaced times.
        stop: conditions that end the run earlier.
        rows: how many rows there are to draw mini-batches from; ``None`` for the full batch.
        seed: of the order of the mini-batches.
        shuffle: ``False`` hands out rows in order.
        switches: changes to the model on the way.
    """

    model: nn.Module
    loss: Loss
    records: Sequence[Record | Observable]
    stop: Sequence[Stop] = ()
    rows: int | None = None
    seed: int = 0
    shuffle: bool = True
    switches: tuple[Switch, ...] = ()

    def recorded(self) -> list[Record]:
        """Return what is recorded, with a schedule for the observables that have none."""
        bare = tuple(each for each in self.records if isinstance(each, Observable))
        records = [each for each in self.records if isinstance(each, Record)]
        return [*([Record(bare, Linear(POINTS))] if bare else []), *records]


@dataclass(frozen=True)
class Study(Experiment):
    """An experiment that trains. Its training is a value, and only :meth:`build` must be written.

    A subclass that offers a choice annotates it, ``training: Flow | Descent = Flow(...)``.
    """

    training: Flow | Descent | Adam | Sgd | Steps = field(
        default_factory=lambda: Flow(lr=0.1, epochs=5000)
    )
    """How models are trained, and for how long."""

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        raise NotImplementedError

    def build_after(self, case: str, seed: int, earlier: Readings) -> Problem:
        """Make a run of a later round, knowing what the earlier ones recorded.

        Its records have the shapes of those of :meth:`build`, which lays out the store.
        """
        return self.build(case, seed)

    def engine(self, case: str, seed: int) -> Training:
        """Return the training of one run; that of the study unless cases differ.

        All runs of a study share the axis of time. If their learning rates differ, either the
        record points are multiples of each of them, or time counts steps.
        """
        if not isinstance(self.training, Training):
            raise AttnscopeError(
                f"{self.name()} does not say how '{case}' is trained: expected a learning rate for "
                "each case, by `engine`."
            )
        return self.training

    def job(self, case: str, seed: int, earlier: Readings | None = None) -> Job:
        """Build a run and bind it to its engine."""
        problem = (
            self.build(case, seed) if earlier is None else self.build_after(case, seed, earlier)
        )
        engine = self.engine(case, seed).bound(
            problem.rows, problem.seed, problem.shuffle, problem.switches
        )
        records = problem.recorded()

        def train(sink: Sink, resume: Checkpoint | None) -> Solution:
            reached = (problem.loss, records, list(problem.stop), engine)
            with placed(wanted(), problem.model, *reached) as (loss, record, stop, moved):
                return moved.run(
                    problem.model,
                    loss,
                    time=self.end,
                    record=record,
                    stop=stop,
                    sink=sink,
                    resume=resume,
                )

        return Job(records, problem.model, self.end, engine.grid, train, bool(problem.stop))

    @property
    def unit(self) -> float | None:
        """Time of a step of gradient descent; ``None`` for a flow without a learning rate."""
        return self.training.grid

    @property
    def end(self) -> float:
        """Time at which runs end."""
        if self.training.end is None:
            raise AttnscopeError(
                f"the training of {self.name()} does not say when it ends: expected epochs or "
                f"until, as in Flow(lr=0.1, epochs=5000); it is {self.training}."
            )
        return self.training.end

    def describe(self) -> str:
        """Say how long runs are and what moves them."""
        return self.training.describe()
