"""One gradient flow on its way: adaptive steps, kinks, readings off the dense output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from attnscope.engines.agenda import Agenda
from attnscope.engines.observe import Record
from attnscope.engines.parameters import FlatParameters, Loss, scalar_loss
from attnscope.engines.runge_kutta import DormandPrince
from attnscope.engines.sink import Checkpoint, Sink
from attnscope.engines.solution import Outcome, Solution
from attnscope.engines.stopping import Stop
from attnscope.errors import AttnscopeError

FIRST_BURST, LAST_BURST = 8, 128
"""Gradient-descent steps taken at a kink before the next try; doubled while it does not help."""
SMOOTH_ORDER = 2.5
"""If halving a step shrinks its error by less than this power of two, the loss is not smooth."""


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
        self.solver = DormandPrince(flat.vector, self.field)
        self.time, self.value, self.h = 0.0, math.nan, math.nan
        # Length and error of the last accepted step; a length of zero says that there is none.
        self.last_h, self.last_error = 0.0, 1.0
        self.steps = self.evaluations = self.rejected = self.plain_steps = 0
        self.burst = 0
        self.refused: tuple[float, float] | None = None
        self.resumed = resume is not None
        if resume is not None:
            self.restore(resume)

    def field(self, out: Tensor) -> float:
        """Write the gradient at the current parameters into ``out``; return the loss."""
        value = self.flat.value_and_gradient(self.loss, self.model, out)
        self.evaluations += 1
        if self.engine.correct:
            assert self.engine.lr is not None
            self.flat.vector.add_(out, alpha=self.engine.lr / 2)
            self.flat.value_and_gradient(self.loss, self.model, out)
            self.evaluations += 1
        return value

    def go(self) -> Solution:
        """Go to the end, or to where something ends it."""
        sentence = None
        if not self.resumed:
            self.value = self.solver.start()
            if not math.isfinite(self.value):
                raise AttnscopeError(
                    f"the loss is {self.value} at time 0: expected a finite number."
                )
            self.flat.vector.copy_(self.solver.state)
            sentence = self.agenda.fire(0.0)
            if sentence is None and self.value < self.agenda.loss_below:
                sentence = self.below_sentence(0.0)
            if sentence is None:
                self.h = self.first_step()
        while sentence is None and self.time < self.until:
            if not self.sink.step(self.time, self.value, self.checkpoint):
                return self.end(Outcome.INTERRUPTED, f"interrupted at time {self.time:g}", True)
            if self.steps + self.rejected >= self.engine.max_steps:
                return self.end(
                    Outcome.EXHAUSTED,
                    f"gave up at time {self.time:g} after max_steps = {self.engine.max_steps} "
                    "attempted steps; expected a smooth loss, or a larger rtol",
                )
            broken, sentence = self.advance()
            if broken is not None:
                return self.end(Outcome.DIVERGED, broken)
        if sentence is not None:
            return self.end(Outcome.STOPPED, sentence)
        return self.end(Outcome.FINISHED, f"finished at time {self.until:g}")

    def advance(self) -> tuple[str | None, str | None]:
        """Take one adaptive step; return what broke, and what ends the run."""
        h = min(self.h, self.until - self.time)
        error, value = self.solver.attempt(h, self.engine.rtol, self.engine.atol)
        if not (math.isfinite(error) and math.isfinite(value)):
            self.rejected += 1
            self.h = h / 4
            if self.h < 1e-12 * max(self.time, 1.0):
                return (
                    f"broke down at time {self.time:g}: the loss was {self.value:.6g} there and "
                    f"{value} right after; expected finite numbers",
                    None,
                )
            return None, None
        if error > 1:
            self.rejected += 1
            self.h = h * max(0.2, 0.9 * error ** (-1 / 5))
            if self.at_kink(h, error):
                return None, self.descend()
            self.refused = (h, error)
            return None, None
        self.refused = None
        sentence = self.read_out(h, value, lambda part: self.solver.interpolate(h, part))
        self.steps += 1
        if sentence is not None:
            with torch.no_grad():
                self.value = scalar_loss(self.loss, self.model).item()
            return None, sentence
        self.solver.accept()
        self.flat.vector.copy_(self.solver.state)
        self.time = self.until if h == self.until - self.time else self.time + h
        self.value = value
        self.h = h * self.growth(h, max(error, 1e-10))
        self.last_h, self.last_error = h, max(error, 1e-10)
        if self.engine.lr is not None and h >= 4 * self.solver.stages * self.engine.lr:
            self.burst = 0
        return None, sentence

    def growth(self, h: float, error: float) -> float:
        """Return the ratio of the next step to the one just accepted.

        The elementary controller, or Gustafsson's predictive one if that is more careful (Hairer
        and Wanner, IV.8): training leaves a plateau at an exponential rate, and the error of a step
        can be seen coming from the last two.
        """
        ratio = 0.85 * error ** (-1 / 5)
        if self.last_h > 0:
            ratio *= min(1.0, h / self.last_h * (max(self.last_error, 1e-2) / error) ** (1 / 5))
        return min(10.0, max(0.2, ratio))

    def at_kink(self, h: float, error: float) -> bool:
        """Tell a kink from a steep place, by how the error of two refused steps shrank.

        Only steps shorter than the gradient-descent steps that they cost are worth giving up.
        Kinks come in swarms, one for each sentence: after the first, every refused step counts as
        one until steps have become long again.
        """
        lr = self.engine.lr
        if self.burst:
            return True
        if lr is None or self.refused is None or h > self.solver.stages * lr:
            return False
        longer, larger = self.refused
        return math.log(larger / error) < SMOOTH_ORDER * math.log(longer / h)

    def descend(self) -> str | None:
        """Take some plain gradient-descent steps; return what ends the run."""
        solver, lr, sentence = self.solver, self.engine.lr, None
        assert lr is not None
        self.burst = min(max(2 * self.burst, FIRST_BURST), LAST_BURST)
        for _ in range(self.burst):
            if self.engine.correct:
                self.flat.vector.copy_(solver.state)
                self.evaluations += 1
                self.flat.value_and_gradient(self.loss, self.model, solver.slopes[0])
            h = min(lr, self.until - self.time)
            torch.add(solver.state, solver.slopes[0], alpha=-h, out=solver.next_state)
            value = solver.evaluate(solver.next_state, solver.slopes[-1])
            sentence = self.read_out(
                h,
                value,
                lambda part: torch.lerp(
                    solver.state, solver.next_state, part, out=self.flat.vector
                ),
            )
            self.plain_steps += 1
            if sentence is not None:
                with torch.no_grad():
                    self.value = scalar_loss(self.loss, self.model).item()
                return sentence
            solver.accept()
            self.time = self.until if h == self.until - self.time else self.time + h
            self.value = value
            if self.time >= self.until:
                break
        self.flat.vector.copy_(solver.state)
        self.h, self.last_h, self.refused = solver.stages * lr, 0.0, None
        return None

    def read_out(
        self, h: float, value: float, interpolate: Callable[[float], object]
    ) -> str | None:
        """Do what is due within the step just tried, up to where a condition ends the run.

        If one does, the model is left there.
        """
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

    def below_sentence(self, time: float) -> str:
        """Say that the loss fell below its condition."""
        return f"stopped at time {time:g}: the loss fell below {self.agenda.loss_below:g}"

    def first_step(self) -> float:
        """Choose the first step as Hairer, Nørsett and Wanner do (II.4), in the maximum norm."""
        solver, engine = self.solver, self.engine
        scale = solver.state.abs() * engine.rtol + engine.atol
        size = float((solver.state / scale).abs().max())
        slope = float((solver.slopes[0] / scale).abs().max())
        h0 = 1e-6 if size < 1e-5 or slope < 1e-5 else 0.01 * size / slope
        h0 = min(h0, self.until)
        solver.evaluate(solver.state - h0 * solver.slopes[0], solver.slopes[1])
        bend = float(((solver.slopes[1] - solver.slopes[0]) / scale).abs().max()) / h0
        most = max(slope, bend)
        h1 = max(1e-6, h0 * 1e-3) if most <= 1e-15 else (0.01 / most) ** (1 / solver.order)
        return min(100 * h0, h1, self.until)

    def checkpoint(self) -> Checkpoint:
        """Return what it takes to go on from here."""
        tensors, values = self.agenda.state()
        tensors |= {"state": self.solver.state, "slope": self.solver.slopes[0]}
        values |= {
            "time": self.time,
            "loss": self.value,
            "h": self.h,
            "last_h": self.last_h,
            "last_error": self.last_error,
            "steps": self.steps,
            "evaluations": self.evaluations,
            "rejected": self.rejected,
            "plain_steps": self.plain_steps,
            "burst": self.burst,
            "refused": self.refused,
        }
        return Checkpoint(tensors, values)

    def restore(self, saved: Checkpoint) -> None:
        """Go back to where a checkpoint was taken."""
        values = saved.values
        self.agenda.restore(saved.tensors, values)
        self.solver.state.copy_(saved.tensors["state"])
        self.solver.slopes[0].copy_(saved.tensors["slope"])
        self.time, self.value = values["time"], values["loss"]
        self.h, self.last_h, self.last_error = values["h"], values["last_h"], values["last_error"]
        self.steps, self.evaluations = values["steps"], values["evaluations"]
        self.rejected, self.plain_steps = values["rejected"], values["plain_steps"]
        self.burst, refused = values["burst"], values["refused"]
        self.refused = None if refused is None else (refused[0], refused[1])

    def end(self, outcome: Outcome, status: str, can_go_on: bool = False) -> Solution:
        """Say how it ended, and flush what was recorded."""
        if outcome is not Outcome.STOPPED:
            self.flat.vector.copy_(self.solver.state)
        if not can_go_on:
            self.agenda.finish()
        self.sink.close(self.checkpoint if can_go_on else None)
        return Solution(
            outcome,
            status,
            self.time,
            self.value,
            self.steps,
            self.evaluations,
            self.rejected,
            self.plain_steps,
        )
