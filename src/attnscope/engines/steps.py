"""Optimizers on mini-batches as values: how many steps, how fast, on how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from torch import nn

from attnscope.bounds import Bounds, Count, Positive, check_fields
from attnscope.engines.descent import Descent
from attnscope.engines.parameters import Loss
from attnscope.engines.schedule import Fall, OneCycle, Switch, WarmUp
from attnscope.engines.solution import Solution


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Some steps on mini-batches. Time counts steps, so runs at different rates share an axis.

    By itself it is the training of a study whose cases have learning rates of their own, see
    :meth:`adam` and :meth:`sgd`.

    Args:
        steps: how many.
        batch: rows in a step; all of them unless given.
    """

    steps: Count = 1000
    """Steps."""
    batch: Count | None = None
    """Rows in a step."""

    renamed: ClassVar[dict[str, str | None]] = {"epochs": "steps", "lr": None, "correct": None}
    """Old spellings of the fields; ``None`` for what is no longer said."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def grid(self) -> float:
        """Time of a step."""
        return 1.0

    @property
    def end(self) -> float:
        """Time at which a run ends."""
        return float(self.steps)

    def describe(self) -> str:
        """Say how long a run is and what moves it."""
        return f"{self.steps:,} steps"

    def adam(self, rate: float, **more: Any) -> Adam:
        """Return Adam with these steps."""
        return Adam(rate=rate, steps=self.steps, batch=self.batch, **more)

    def sgd(self, rate: float) -> Sgd:
        """Return stochastic gradient descent with these steps."""
        return Sgd(rate=rate, steps=self.steps, batch=self.batch)


@dataclass(frozen=True, kw_only=True)
class _Optimizer(Steps):
    """Steps of one optimizer."""

    rate: Positive = 1e-3
    """Learning rate."""

    optimizer: ClassVar[Literal["gd", "adam"]]

    def options(self) -> dict[str, Any]:
        """Return what this optimizer has besides."""
        return {}

    def bound(
        self,
        rows: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        switches: tuple[Switch, ...] = (),
    ) -> Descent:
        """Return the engine for data of so many rows."""
        whole = self.batch is None or rows is None
        return Descent(
            lr=self.rate,
            epochs=self.steps,
            optimizer=self.optimizer,
            batch_size=None if whole else self.batch,
            samples=None if whole else rows,
            seed=seed,
            tick=1.0,
            shuffle=shuffle,
            switches=switches,
            **self.options(),
        )

    def run(self, model: nn.Module, loss: Loss, *, record: Sequence[Any], **more: Any) -> Solution:
        """Train on the full batch; arguments and result are those of :meth:`Descent.run`."""
        return self.bound().run(model, loss, record=record, **more)


@dataclass(frozen=True, kw_only=True)
class Sgd(_Optimizer):
    """Stochastic gradient descent on mini-batches; time counts steps."""

    optimizer = "gd"

    def describe(self) -> str:
        """Say how long a run is and what moves it."""
        return f"{self.steps:,} steps of SGD"


@dataclass(frozen=True, kw_only=True)
class Adam(_Optimizer):
    """Adam on mini-batches, with PyTorch's defaults; time counts steps.

    Args:
        steps: how many.
        batch: rows in a step; all of them unless given.
        rate: learning rate, the largest one with ``warmup``.
        eps: Adam's ε.
        clip: every entry of the gradient is brought to [-clip, clip] first.
        warmup: steps until the rate is largest; constant unless given.
        cycle: after the warm-up the rate falls again to the end of the run, in one linear cycle;
            otherwise it stays.
        decay: share of themselves, times the rate, that weights lose at every step (AdamW).
        fall: step from which the rate falls linearly to the end of the run; until then it stays,
            after a warm-up if there is one.
    """

    eps: Positive = 1e-8
    """Adam's ε."""
    clip: Positive | None = None
    """Every entry of the gradient is brought to [-clip, clip] first."""
    warmup: Count | None = None
    """Steps until the learning rate is largest; constant unless given."""
    cycle: bool = True
    """After the warm-up the rate falls again to the end of the run."""
    decay: Annotated[float, Bounds(0)] = 0.0
    """Share of themselves, times the rate, that weights lose at every step (AdamW)."""
    fall: Annotated[int, Bounds(0)] | None = None
    """Step from which the rate falls linearly to the end of the run; until then it stays."""

    optimizer = "adam"

    def options(self) -> dict[str, Any]:
        """Return Adam's ε, the clip, the decay and the schedule."""
        shape = OneCycle if self.cycle else WarmUp
        schedule: Fall | OneCycle | WarmUp | None = None
        if self.fall is not None:
            schedule = Fall(self.fall, self.warmup or 0)
        elif self.warmup is not None:
            schedule = shape(self.warmup)
        return {"eps": self.eps, "clip": self.clip, "decay": self.decay, "schedule": schedule}

    def describe(self) -> str:
        """Say how long a run is and what moves it."""
        batches = "" if self.batch is None else f" on batches of {self.batch}"
        return f"{self.steps:,} steps of Adam{batches}"
