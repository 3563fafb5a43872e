"""One gradient flow on its way: adaptive steps, kinks, readings off the dense output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import nn

from attnscope.engines.agenda import Agenda
from attnscope.engines.field import GradientField
from attnscope.engines.kinks import Kinks
from attnscope.engines.observe import Record
from attnscope.engines.parameters import FlatParameters, Loss, scalar_loss
from attnscope.engines.runge_kutta import Workspace
from attnscope.engines.sink import Checkpoint, Sink
from attnscope.engines.solution import Outcome, Solution
from attnscope.engines.stiffness import Choice, Method
from attnscope.engines.stopping import Stop


class Settings(Protocol):
    """What a run has to know of its engine, see :class:`attnscope.engines.flow.Flow`."""

    @property
    def rtol(self) -> float:
        """Relative tolerance."""

    @property
    def atol(self) -> float:
        """Absolute tolerance."""

    @property
    def lr(self) -> float | None:
        """Learning rate that the flow stands for."""

    @property
    def correct(self) -> bool:
        """Whether to follow gradient descent at that rate."""

    @property
    def method(self) -> Method | None:
        """The method that takes all steps; chosen on the way unless given."""

    @property
    def max_steps(self) -> int:
        """Attempted steps at most."""

    @property
    def grid(self) -> float | None:
        """Spacing of record points."""


class FlowRun:
    """The state of one flow."""

    def __init__(
        self,
        engine: Settings,
        model: nn.Module,
        loss: Loss,
        flat: FlatParameters,
        until: float,
        record: Sequence[Record],
        stop: Sequence[Stop],
        sink: Sink,
        resume: Checkpoint | None,
    ) -> None:
        self.engine, self.model, self.loss, self.flat = engine, model, loss, flat
        self.until, self.sink = until, sink
        self.agenda = Agenda(model, record, stop, sink, until=until, grid=engine.grid)
        ahead = engine.lr / 2 if engine.correct and engine.lr is not None else 0.0
        self.field = GradientField(model, loss, flat, ahead)
        self.work = Workspace(flat.vector, self.field)
        self.choice = Choice(self.work, engine.method)
        self.time, self.value, self.h = 0.0, math.nan, math.nan
        # Length and error of the last accepted step; a length of zero says there is none.
        self.last_h, self.last_error = 0.0, 1.0
        self.steps = self.rejected = self.refusals = 0
        self.gradients = {"dormand-prince": 0, "chebyshev": 0, "plain steps": 0}
        self.checked = self.at_rest = False
        self.kinks = Kinks(self)
        self.resumed = resume is not None
        if resume is not None:
            self.restore(resume)

    def go(self) -> Solution:
        """Go to the end, or to where something ends it."""
        sentence = None
        if not self.resumed:
            self.value = self.field.first(self.work.slopes[0])
            self.at_rest = not self.work.slopes[0].any()
            self.flat.vector.copy_(self.work.state)
            sentence = self.agenda.fire(0.0)
            if sentence is None and self.value < self.agenda.loss_below:
                sentence = self.below_sentence(0.0)
            if sentence is None:
                self.h = self.first_step()
                self.choice.start()
            self.count(self.choice.method.name)
        while sentence is None and self.time < self.until:
            if not self.sink.step(self.time, self.value, self.checkpoint):
                return self.end(Outcome.INTERRUPTED, f"interrupted at time {self.time:g}", True)
            tried = self.steps + self.rejected
            if (said := self.agenda.enough(self.time, tried)) is not None:
                self.flat.vector.copy_(self.work.state)
                return self.end(Outcome.STOPPED, said)
            if tried >= self.engine.max_steps:
                return self.end(Outcome.EXHAUSTED, self.exhausted_sentence())
            method = self.choice.method.name
            broken, sentence = self.advance()
            self.count(method)
            if broken is not None:
                return self.end(Outcome.DIVERGED, broken)
        if sentence is not None:
            return self.end(Outcome.STOPPED, sentence)
        said = f"{self.kinks.said() or self.rest_sentence()}{self.agenda.missed()}"
        return self.end(Outcome.FINISHED, f"finished at time {self.until:g}{said}")

    def count(self, what: str) -> None:
        """Put the gradients that were not counted yet down to a method."""
        self.gradients[what] += self.field.evaluations - sum(self.gradients.values())

    def advance(self) -> tuple[str | None, str | None]:
        """Take one adaptive step; return what broke, and what ends the run."""
        choice, work = self.choice, self.work
        method = choice.method
        h = min(self.h, choice.longest(), self.until - self.time)
        error, value = method.attempt(h, self.engine.rtol, self.engine.atol)
        if not (math.isfinite(error) and math.isfinite(value)):
            self.rejected += 1
            self.h = h / 4
            if self.h < 1e-12 * max(self.time, 1.0):
                broken = self.field.broken(self.time, self.value, h, work.state, work.slopes[0])
                return broken, None
            choice.refused(self.time)
            return None, None
        if error > 1:
            self.rejected += 1
            self.refusals += 1
            self.h = h * max(0.2, 0.9 * error ** (-1 / method.order))
            if self.refusals == 3 and not self.checked:
                self.checked = True
                self.flat.vector.copy_(work.state)
                self.field.check_same(self.value, work.slopes[0], self.time)
            if self.kinks.at(h, error, self.refusals):
                self.count(method.name)
                choice.leave(self.time)
                return None, self.kinks.descend()
            self.kinks.refused = (h, error)
            choice.refused(self.time)
            return None, None
        self.kinks.refused, self.refusals = None, 0
        sentence = self.read_out(h, value, lambda part: method.interpolate(h, part))
        self.steps += 1
        if sentence is not None:
            with torch.no_grad():
                self.value = scalar_loss(self.loss, self.model).item()
            return None, sentence
        choice.before(h)
        self.move(h, value)
        self.flat.vector.copy_(work.state)
        self.h = h * self.growth(h, max(error, 1e-10))
        self.last_h, self.last_error = h, max(error, 1e-10)
        self.kinks.passed(h)
        if choice.accepted(self.time, h):
            self.last_h = 0.0
        return None, sentence

    def growth(self, h: float, error: float) -> float:
        """Return the ratio of the next step to the one just accepted.

        The elementary controller, or Gustafsson's predictive one if that is more careful (Hairer,
        Wanner, IV.8): training leaves a plateau exponentially, and errors can be seen coming.
        """
        power = 1 / self.choice.method.order
        ratio = self.choice.method.safety * error**-power
        if self.last_h > 0:
            ratio *= min(1.0, h / self.last_h * (max(self.last_error, 1e-2) / error) ** power)
        return min(10.0, max(0.2, ratio))

    def move(self, h: float, value: float) -> None:
        """Stand at the end of the step just tried."""
        self.work.accept()
        self.field.keep()
        self.time = self.until if h == self.until - self.time else self.time + h
        self.value = value

    def read_out(
        self, h: float, value: float, interpolate: Callable[[float], object]
    ) -> str | None:
        """Do what is due within the step just tried; where a condition ends the run, stay there."""
        # Rounding may put the last record point a hair behind the end of the last step.
        last = h == self.until - self.time
        limit, sentence = self.until * (1 + 1e-9) if last else self.time + h, None
        if value < self.agenda.loss_below:
            limit = self.crossing(h, interpolate)
            sentence = self.below_sentence(limit)
        while (due := self.agenda.next_time()) <= limit:
            interpolate(min(1.0, (due - self.time) / h))
            stopped = self.agenda.fire(due)
            if stopped is not None:
                self.time = due
                return stopped
        if sentence is not None:
            interpolate((limit - self.time) / h)
            self.time = limit
        return sentence

    def crossing(self, h: float, interpolate: Callable[[float], object]) -> float:
        """Find where in the step just tried the loss falls below the condition's value."""
        low, high = 0.0, 1.0
        with torch.no_grad():
            for _ in range(30):
                middle = (low + high) / 2
                interpolate(middle)
                if scalar_loss(self.loss, self.model).item() < self.agenda.loss_below:
                    high = middle
                else:
                    low = middle
        return self.time + high * h

    def exhausted_sentence(self) -> str:
        """Say why the number of steps did not suffice."""
        said = f"gave up at time {self.time:g} after max_steps = {self.engine.max_steps} attempted "
        if limit := self.choice.limit(self.last_h):
            return f"{said}steps: {limit}"
        if self.kinks.seen:
            return (
                f"{said}steps, at {self.kinks.seen} kinks of the loss; expected a smooth loss, or "
                "lr, the step of gradient descent that is good enough there"
            )
        return f"{said}steps of {self.last_h:.3g} or so; expected more of them, or a larger rtol"

    def rest_sentence(self) -> str:
        """Say that nothing moved, if the gradient was exactly zero at the start."""
        if not self.at_rest:
            return ""
        return "; the gradient is zero at the start: on a minimum, saddle or maximum nothing moves"

    def below_sentence(self, time: float) -> str:
        """Say that the loss fell below its condition."""
        return f"stopped at time {time:g}: the loss fell below {self.agenda.loss_below:g}"

    def first_step(self) -> float:
        """Choose the first step as Hairer, Nørsett and Wanner do (II.4), in the maximum norm."""
        work, engine = self.work, self.engine
        scale = work.state.abs() * engine.rtol + engine.atol
        size = float((work.state / scale).abs().max())
        slope = float((work.slopes[0] / scale).abs().max())
        h0 = 1e-6 if size < 1e-5 or slope < 1e-5 else 0.01 * size / slope
        h0 = min(h0, self.until)
        work.evaluate(work.state - h0 * work.slopes[0], work.slopes[1])
        bend = float(((work.slopes[1] - work.slopes[0]) / scale).abs().max()) / h0
        most = max(slope, bend)
        h1 = (
            max(1e-6, h0 * 1e-3)
            if most <= 1e-15
            else (0.01 / most) ** (1 / self.choice.method.order)
        )
        return min(100 * h0, h1, self.until)

    def checkpoint(self) -> Checkpoint:
        """Return what it takes to go on from here."""
        tensors, values = self.agenda.state()
        more, chosen = self.choice.state()
        tensors |= {"state": self.work.state, "slope": self.work.slopes[0], **more}
        tensors |= self.field.state()
        values |= {
            "time": self.time,
            "loss": self.value,
            "h": self.h,
            "last_h": self.last_h,
            "last_error": self.last_error,
            "steps": self.steps,
            "evaluations": self.field.evaluations,
            "gradients": self.gradients,
            "rejected": self.rejected,
            **self.kinks.state(),
            "refusals": (self.refusals, self.checked),
            **chosen,
        }
        return Checkpoint(tensors, values)

    def restore(self, saved: Checkpoint) -> None:
        """Go back to where a checkpoint was taken."""
        values = saved.values
        self.agenda.restore(saved.tensors, values)
        self.choice.restore(saved.tensors, values)
        self.field.restore(saved.tensors, values["evaluations"])
        self.work.state.copy_(saved.tensors["state"])
        self.work.slopes[0].copy_(saved.tensors["slope"])
        self.time, self.value = values["time"], values["loss"]
        self.h, self.last_h, self.last_error = values["h"], values["last_h"], values["last_error"]
        self.steps, self.rejected = values["steps"], values["rejected"]
        self.kinks.restore(values)
        self.gradients = dict(values.get("gradients", self.gradients))
        self.refusals, self.checked = values.get("refusals", (0, False))

    def end(self, outcome: Outcome, status: str, can_go_on: bool = False) -> Solution:
        """Say how it ended, and flush what was recorded."""
        if outcome is not Outcome.STOPPED:
            self.flat.vector.copy_(self.work.state)
        if not can_go_on:
            self.agenda.finish()
        self.sink.close(self.checkpoint if can_go_on else None)
        self.count(self.choice.method.name)
        return Solution(
            outcome,
            status,
            self.time,
            self.value,
            self.steps,
            self.field.evaluations,
            self.rejected,
            self.kinks.steps,
            gradients={name: n for name, n in self.gradients.items() if n},
            sharpness=tuple(self.choice.sharpness),
            switches=tuple(self.choice.switches),
            kinks=self.kinks.seen,
            plain_error=self.kinks.error,
        )
