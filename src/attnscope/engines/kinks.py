"""Steps at kinks: where the field jumps, a step of high order is worth no more than one of low.

Where a ReLU switches the error of any step shrinks with h, so the cheapest step is one of a single
gradient. Here it is the trapezoidal rule as predictor and corrector with one evaluation,

    p = θ - h g,   g⁺ = ∇L(p),   θ⁺ = θ - h (g + g⁺)/2,   g ← g⁺,

whose error is at most about ½h‖g⁺ - g‖, the distance from p to θ⁺. It costs what a step of gradient
descent costs; its error is of second order between kinks, and where gradient descent jumps from one
side of a kink to the other, it stays on it. Steps grow from lr as long as their error is not more
than that of a step of gradient descent of length lr at the kink. The rule is stable up to hλ = 1
only, gradient descent up to 2: λ is looked at before, and where lr λ is above 0.8, or the loss
rises by more than jumping over kinks explains, 2 lr‖g‖², steps are plain.

A flow that follows gradient descent at a finite rate (``correct``) takes plain steps: they are what
it follows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from attnscope.engines.parameters import scalar_loss

if TYPE_CHECKING:
    from attnscope.engines.flow_run import FlowRun

FIRST_BURST, LAST_BURST = 8, 512
"""Time spent at a kink before the next try of a long step, in lr; doubled while that fails."""
LAST_PLAIN = 128
"""The same where steps are plain ones, which cost more for their length."""
LONGEST = 32
"""Longest step at kinks, in lr."""
STABLE = 0.8
"""Largest lr times the largest eigenvalue at which the trapezoidal rule is used."""
SMOOTH_ORDER = 2.5
"""If halving a step shrinks its error by less than this power of two, the loss is not smooth."""


class Kinks:
    """What a flow has met of kinks, and how it goes on there.

    Args:
        run: the flow.
    """

    def __init__(self, run: FlowRun) -> None:
        self.run = run
        self.burst = self.steps = self.seen = 0
        self.error = self.allowed = 0.0
        self.refused: tuple[float, float] | None = None

    def at(self, h: float, error: float, refusals: int) -> bool:
        """Tell a kink from a steep place, by how the error of two refused steps shrank.

        Only steps shorter than the gradient-descent steps that they cost are worth giving up.
        Kinks come in swarms, one for each sentence: after the first, every refused step counts as
        one until steps have become long again.
        """
        lr = self.run.engine.lr
        if self.burst:
            return True
        if self.refused is None:
            return False
        longer, larger = self.refused
        if math.log(larger / error) >= SMOOTH_ORDER * math.log(longer / h):
            return False
        # Without a learning rate nothing can be done; a step far too long may look like this once.
        self.seen += lr is not None or refusals > 2
        return lr is not None and h <= self.run.choice.method.stages * lr

    def passed(self, h: float) -> None:
        """Hear of a long step that was accepted: the kinks are over."""
        lr = self.run.engine.lr
        if lr is not None and h >= 4 * self.run.choice.method.stages * lr:
            self.burst = 0

    def descend(self) -> str | None:
        """Go on for a while by steps of one gradient; return what ends the run."""
        run, work, lr = self.run, self.run.work, self.run.engine.lr
        assert lr is not None
        plain = run.engine.correct
        self.burst = min(max(2 * self.burst, FIRST_BURST), LAST_PLAIN if plain else LAST_BURST)
        stop, h, first = run.time + (self.burst - 0.5) * lr, lr, True
        longest, sentence = LONGEST * lr, None
        most = run.value + 2 * lr * float(work.slopes[0].square().sum())
        if not plain:
            # Longer steps are kept stable by their error; those of lr are taken in any case.
            longest = lr / 2 if lr * run.choice.look(run.time) > STABLE else longest
        while run.time < min(stop, run.until):
            if plain:
                run.flat.vector.copy_(work.state)
                run.field.plain(work.slopes[0])
            h = min(h, run.until - run.time)
            torch.add(work.state, work.slopes[0], alpha=-h, out=work.next_state)
            value = work.evaluate(work.next_state, work.slopes[-1])
            error = self._error(h)
            if first:
                self.allowed, first = max(self.allowed, error), False
            large = error > 2 * self.allowed
            if large and h > 1.01 * lr:
                h = max(lr, h / 2)
                continue
            if not (plain or large or h > longest or value > most):
                work.next_state.add_(work.right, alpha=-h / 2)
                value = self._value(value)
            self.error = max(self.error, error)
            self.steps += 1
            sentence = run.read_out(h, value, self._between)
            if sentence is not None:
                with torch.no_grad():
                    run.value = scalar_loss(run.loss, run.model).item()
                break
            run.move(h, value)
            if not plain:
                growth = 0.9 * math.sqrt(self.allowed / max(error, 1e-30))
                h = max(lr, min(longest, h * min(2.0, growth)))
            if value > most:
                longest = lr / 2
        if sentence is None:
            run.flat.vector.copy_(work.state)
            if not plain:
                # The last slope is the predictor's.
                run.value = run.field(work.slopes[0])
            run.h = run.choice.smooth.stages * lr
            run.last_h, self.refused = 0.0, None
        run.count("plain steps")
        return sentence

    def _value(self, predicted: float) -> float:
        """Return the loss at the end of a step, if a condition waits for it; else the predictor's.

        Both are as close as the step is accurate, but a condition may lie between them.
        """
        run = self.run
        if run.agenda.loss_below == -math.inf:
            return predicted
        run.flat.vector.copy_(run.work.next_state)
        with torch.no_grad():
            return scalar_loss(run.loss, run.model).item()

    def _error(self, h: float) -> float:
        """Return ½h‖g⁺ - g‖∞, what a plain step is off by; the difference is left in ``right``."""
        work = self.run.work
        low, high = torch.aminmax(torch.sub(work.slopes[-1], work.slopes[0], out=work.right))
        return h / 2 * max(-low.item(), high.item())

    def _between(self, part: float) -> None:
        work = self.run.work
        torch.lerp(work.state, work.next_state, part, out=self.run.flat.vector)

    def said(self) -> str:
        """Say what kinks did to the accuracy, if there were any."""
        if self.steps:
            times = self.error / self.run.engine.atol
            return (
                f", {self.steps:,} plain steps of it at kinks, each within "
                f"{self.error:.2g} of the flow ({times:.0f} times atol)"
            )
        if self.seen:
            return f", through {self.seen} kinks, where errors may exceed the tolerance"
        return ""

    def state(self) -> dict[str, Any]:
        """Return what :meth:`restore` needs."""
        return {
            "plain_steps": self.steps,
            "plain_error": self.error,
            "plain_allowed": self.allowed,
            "kinks": self.seen,
            "burst": self.burst,
            "refused": self.refused,
        }

    def restore(self, values: dict[str, Any]) -> None:
        """Go back to where a checkpoint was taken."""
        self.steps, self.error = values["plain_steps"], values.get("plain_error", 0.0)
        self.allowed, self.seen = values.get("plain_allowed", 0.0), values.get("kinks", 0)
        self.burst, refused = values["burst"], values["refused"]
        self.refused = None if refused is None else (refused[0], refused[1])
