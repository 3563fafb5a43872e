"""Gradient descent, step by step, as the papers ran it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Positive, check_fields
from attnscope.engines.agenda import Agenda
from attnscope.engines.device import random_state, restore_random_state
from attnscope.engines.memory import keep_freed_memory
from attnscope.engines.observe import Record
from attnscope.engines.parameters import FlatParameters, Loss, flattened
from attnscope.engines.schedule import Fall, OneCycle, Switch, WarmUp
from attnscope.engines.sink import Checkpoint, Memory, Sink
from attnscope.engines.solution import Outcome, Solution, ending
from attnscope.engines.stopping import Stop
from attnscope.errors import AttnscopeError

BLOW_UP = 1e8
"""A loss so many times the initial one (or one, if that is more) counts as diverged."""

MANY = 2**21
"""From so many parameters on Adam is the fused one, a third of the time; rounding differs."""


@dataclass(frozen=True)
class Descent:
    """Gradient descent or Adam, on the full batch or on mini-batches.

    Args:
        lr: learning rate; step k is at time k × lr.
        optimizer: ``"gd"`` for θ ← θ - lr ∇L, ``"adam"`` for Adam with PyTorch's defaults.
        batch_size: rows in a mini-batch, drawn without replacement, epoch after epoch. The loss is
            then called as ``loss(model, rows)``. ``None`` is the full batch, ``loss(model)``.
        samples: number of rows there are; needed with ``batch_size``.
        seed: of the order of the mini-batches.
        tick: time that a step counts for; the learning rate unless given. With ``tick=1`` time
            counts steps, and runs at different learning rates share an axis.
        eps: Adam's ε.
        clip: every entry of the gradient is brought to [-clip, clip] first; ``None`` for as it is.
        decay: share of themselves, times the learning rate, that weights lose at every step of
            Adam, apart from what the gradient does (AdamW, Loshchilov and Hutter 2019).
        schedule: how the learning rate, and Adam's β₁, change over the run; constant unless given.
        switches: changes to the model on the way.
        shuffle: ``False`` hands out rows 0, 1, 2, ... in this order, epoch after epoch: whoever
            serves the rows has ordered them.
        epochs: how many steps, where :meth:`run` is not told when to end.
    """

    lr: Positive = 0.1
    optimizer: Literal["gd", "adam"] = "gd"
    batch_size: int | None = None
    samples: int | None = None
    seed: int = 0
    tick: Positive | None = None
    eps: Positive = 1e-8
    clip: Positive | None = None
    decay: Annotated[float, Bounds(0)] = 0.0
    schedule: OneCycle | WarmUp | Fall | None = None
    switches: tuple[Switch, ...] = ()
    shuffle: bool = True
    epochs: Count | None = None

    spec: ClassVar[tuple[str, ...]] = ("lr", "epochs")
    """Fields that are settings of a study; the others follow from its data."""
    renamed: ClassVar[dict[str, str | None]] = {"correct": None}
    """Fields of other engines that say nothing here."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.batch_size is not None:
            if self.samples is None:
                raise AttnscopeError(
                    f"batch_size = {self.batch_size} without samples: expected the number of rows "
                    "that batches are drawn from."
                )
            if not 0 < self.batch_size <= self.samples:
                raise AttnscopeError(
                    f"batch_size = {self.batch_size}: expected 1 to samples = {self.samples}."
                )

    @property
    def grid(self) -> float:
        """Time of a step, and so the spacing that record points are put on."""
        return self.lr if self.tick is None else self.tick

    @property
    def end(self) -> float | None:
        """Time at which a run ends, if the number of steps is known."""
        return None if self.epochs is None else self.epochs * self.grid

    def describe(self) -> str:
        """Say how long a run is and what moves it."""
        return f"{self.epochs or 0:,} epochs by gradient descent"

    def bound(
        self,
        rows: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        switches: tuple[Switch, ...] = (),
    ) -> Descent:
        """Return the engine for data of so many rows; unchanged where there are no batches."""
        if rows is None:
            return replace(self, switches=switches) if switches else self
        return replace(self, samples=rows, seed=seed, shuffle=shuffle, switches=switches)

    def run(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        time: float | None = None,
        record: Sequence[Record],
        stop: Sequence[Stop] = (),
        sink: Sink | None = None,
        resume: Checkpoint | None = None,
    ) -> Solution:
        """Take ``time / grid`` steps. Arguments and result are those of :meth:`Flow.run`."""
        time = ending(time, self.end)
        steps = round(time / self.grid)
        if steps < 1:
            raise AttnscopeError(
                f"time = {time} with steps of {self.grid}: expected room for one step or more."
            )
        sink = Memory() if sink is None else sink
        keep_freed_memory()
        with flattened(model) as flat:
            return _Run(self, model, loss, flat, steps, record, stop, sink, resume).go()


class _Run:
    """The state of one descent."""

    def __init__(
        self,
        engine: Descent,
        model: nn.Module,
        loss: Loss,
        flat: FlatParameters,
        steps: int,
        record: Sequence[Record],
        stop: Sequence[Stop],
        sink: Sink,
        resume: Checkpoint | None,
    ) -> None:
        self.engine, self.model, self.loss, self.flat = engine, model, loss, flat
        self.until, self.sink, self.step, self.value = steps, sink, 0, math.nan
        until = steps * engine.grid
        self.agenda = Agenda(model, record, stop, sink, until=until, grid=engine.grid)
        self.gradient = torch.empty_like(flat.vector)
        self.adam: torch.optim.Adam | None = None
        if engine.optimizer == "adam":
            flat.vector.grad = self.gradient
            self.adam = torch.optim.Adam(
                [flat.vector],
                lr=engine.lr,
                eps=engine.eps,
                weight_decay=engine.decay,
                decoupled_weight_decay=True,
                fused=True if flat.vector.numel() >= MANY else None,
            )
        self.generator = torch.Generator().manual_seed(engine.seed)
        self.order = torch.empty(0, dtype=torch.int64)
        self.blow_up = math.inf
        self.resumed = resume is not None
        if resume is not None:
            self.restore(resume)

    def go(self) -> Solution:
        if not self.resumed:
            self.evaluate()
            self.blow_up = BLOW_UP * max(1.0, abs(self.value))
            if not math.isfinite(self.value):
                raise AttnscopeError(
                    f"the loss is {self.value} at step 0: expected a finite number."
                )
        while True:
            if not abs(self.value) < self.blow_up:
                return self.end(
                    Outcome.DIVERGED,
                    f"diverged at step {self.step} (time {self.time:g}): the loss was "
                    f"{self.value:.6g}; expected a learning rate below lr = {self.engine.lr:g}",
                )
            sentence = self.fire()
            if sentence is not None:
                return self.end(Outcome.STOPPED, sentence)
            if self.step >= self.until:
                missed = self.agenda.missed()
                return self.end(Outcome.FINISHED, f"finished at step {self.step}{missed}")
            if not self.sink.step(self.time, self.value, self.checkpoint):
                return self.end(Outcome.INTERRUPTED, f"interrupted at step {self.step}", True)
            if not self.update():
                return self.end(
                    Outcome.DIVERGED,
                    f"broke down at step {self.step} (time {self.time:g}): the loss was "
                    f"{self.value:.6g} and its gradient not finite; expected finite numbers",
                )
            self.step += 1
            self.evaluate()

    def evaluate(self) -> None:
        """Compute loss and gradient at this step."""
        self.switch(self.step)
        self.value = self.flat.value_and_gradient(
            self.loss, self.model, self.gradient, *self.batch()
        )

    @property
    def time(self) -> float:
        return self.step * self.engine.grid

    def fire(self) -> str | None:
        """Do what is due before this step is taken."""
        due = self.agenda.next_time()
        # Event times are multiples of a step's time, but only up to rounding.
        if due < math.inf and round(due / self.engine.grid) <= self.step:
            sentence = self.agenda.fire(due)
            if sentence is not None:
                return sentence
        if self.value < self.agenda.loss_below:
            return (
                f"stopped at step {self.step} (time {self.time:g}): "
                f"the loss fell below {self.agenda.loss_below:g}"
            )
        return None

    def switch(self, first: int) -> None:
        """Make the changes to the model that are due from step ``first`` on until now."""
        for switch in self.engine.switches:
            if first <= round(switch.at / self.engine.grid) <= self.step:
                switch.change(self.model)

    def update(self) -> bool:
        """Move the parameters; return False, and leave them, if the gradient is not finite."""
        lr = self.engine.lr
        # A sum is cheaper than a look at each entry, and not finite if one of them is not.
        if not math.isfinite(float(self.gradient.sum())) and not self.gradient.isfinite().all():
            return False
        if self.engine.clip is not None:
            self.gradient.clamp_(-self.engine.clip, self.engine.clip)
        if self.engine.schedule is not None:
            share, beta = self.engine.schedule.at(self.step, self.until)
            lr *= share
            if self.adam is not None:
                group = self.adam.param_groups[0]
                group["lr"], group["betas"] = lr, (beta, group["betas"][1])
        if self.adam is None:
            self.flat.vector.sub_(self.gradient, alpha=lr)
        else:
            self.adam.step()
        return True

    def batch(self) -> tuple[Tensor, ...]:
        """Return the rows of the mini-batch of this step, or nothing for the full batch."""
        size, samples = self.engine.batch_size, self.engine.samples
        if size is None or samples is None:
            return ()
        within = self.step % math.ceil(samples / size)
        if within == 0:
            # On the CPU, wherever the model is: rows are looked up in what has been read there.
            self.order = (
                torch.randperm(samples, generator=self.generator, device="cpu")
                if self.engine.shuffle
                else torch.arange(samples, device="cpu")
            )
        return (self.order[within * size : (within + 1) * size],)

    def checkpoint(self) -> Checkpoint:
        tensors, values = self.agenda.state()
        tensors |= {f"model.{k}": v.contiguous() for k, v in self.model.state_dict().items()}
        # The gradient is kept, not computed again: the batch and the random numbers that it came
        # from have been drawn by now.
        tensors |= {"gradient": self.gradient, "order": self.order}
        tensors |= {"generator": self.generator.get_state()}
        tensors |= {"random": torch.get_rng_state(), **random_state(self.gradient.device)}
        if self.adam is not None and self.adam.state:
            tensors |= {f"adam.{k}": v for k, v in self.adam.state[self.flat.vector].items()}
        values |= {"step": self.step, "loss": self.value, "blow_up": self.blow_up}
        return Checkpoint(tensors, values)

    def restore(self, saved: Checkpoint) -> None:
        self.agenda.restore(saved.tensors, saved.values)
        prefixed = {p: {} for p in ("model.", "adam.")}  # type: dict[str, dict[str, Tensor]]
        for name, tensor in saved.tensors.items():
            for prefix, part in prefixed.items():
                if name.startswith(prefix):
                    part[name.removeprefix(prefix)] = tensor
        with torch.no_grad():
            self.model.load_state_dict(prefixed["model."])
        if self.adam is not None and prefixed["adam."]:
            # Adam writes into its state; the checkpoint stays as it is.
            # Its count of steps lies on the CPU, unless it is fused.
            fused, here = self.adam.param_groups[0]["fused"], self.gradient.device
            state = {
                name: tensor.to("cpu" if name == "step" and not fused else here, copy=True)
                for name, tensor in prefixed["adam."].items()
            }
            self.adam.state[self.flat.vector] = state
        self.gradient.copy_(saved.tensors["gradient"])
        self.order = saved.tensors["order"]
        self.generator.set_state(saved.tensors["generator"])
        torch.set_rng_state(saved.tensors["random"])
        restore_random_state(self.gradient.device, saved.tensors)
        self.step, self.value = saved.values["step"], saved.values["loss"]
        self.blow_up = saved.values["blow_up"]
        self.switch(0)

    def end(self, outcome: Outcome, status: str, can_go_on: bool = False) -> Solution:
        if not can_go_on:
            self.agenda.finish()
        self.sink.close(self.checkpoint if can_go_on else None)
        return Solution(outcome, status, self.time, self.value, self.step, self.step)
