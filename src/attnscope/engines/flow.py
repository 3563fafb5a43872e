"""Gradient flow, dθ/dt = -∇L(θ), by an adaptive Runge-Kutta method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from attnscope.bounds import Count, Positive, check_fields
from attnscope.engines.flow_run import FlowRun
from attnscope.engines.observe import Record
from attnscope.engines.parameters import Loss, check_memory, flattened
from attnscope.engines.runge_kutta import Workspace
from attnscope.engines.schedule import Switch
from attnscope.engines.sink import Checkpoint, Memory, Sink
from attnscope.engines.solution import Solution, ending
from attnscope.engines.stiffness import Method
from attnscope.engines.stopping import Stop
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class Flow:
    """The continuous-time limit of full-batch gradient descent, in a few dozen adaptive steps.

    Observables are read off the dense output as the solver goes, so memory does not grow with the
    number of record points.

    Args:
        rtol: relative tolerance of every single coordinate, per step.
        atol: absolute tolerance of every single coordinate, per step.
        lr: learning rate of the gradient descent that the flow stands for. It places record points
            on the common axis, time = lr × step, and it is the resolution at a kink: where ReLUs
            switch, the error of a step shrinks with h and not with h⁵, and an adaptive method
            would creep. There the flow takes plain gradient-descent steps of size lr, a few at a
            time, which are cheaper than Runge-Kutta steps of their length.
        correct: follow gradient descent at the finite learning rate ``lr``, not its limit. By
            backward error analysis GD with step h follows the flow of the modified loss
            L + (h/4)‖∇L‖² up to O(h²), that is dθ/dt = -(g + (h/2) H g). The field is computed as
            -g(θ + (h/2) g(θ)), equal to it up to the O(h²) terms that the modified equation leaves
            out anyway; it costs two gradients and no second derivative.
        max_steps: give up after so many attempted steps.
        epochs: steps of gradient descent that a run stands for, where there is ``lr``.
        until: time at which a run ends, where there is not.
        method: ``"dormand-prince"`` or ``"chebyshev"`` takes all steps; unless given the flow
            takes the first, and the second where stability would limit the steps of the first.
    """

    rtol: Positive = 5e-6
    atol: Positive = 5e-6
    lr: Positive | None = None
    correct: bool = False
    max_steps: Count = 100_000
    epochs: Count | None = None
    until: Positive | None = None
    method: Method | None = None

    spec: ClassVar[tuple[str, ...]] = (
        "lr",
        "epochs",
        "until",
        "correct",
        "rtol",
        "atol",
        "max_steps",
    )
    """Fields that are settings of a study: all but the method, which is found on the way."""
    renamed: ClassVar[dict[str, str | None]] = {}
    """Old spellings of the fields."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epochs is not None and (self.lr is None or self.until is not None):
            raise AttnscopeError(
                f"epochs = {self.epochs} with lr = {self.lr} and until = {self.until}: expected "
                "epochs of a learning rate, or the time until which a run goes."
            )
        if self.correct and self.lr is None:
            raise AttnscopeError(
                "correct = True without lr: expected the learning rate of the gradient descent "
                "that the flow shall follow."
            )

    @property
    def grid(self) -> float | None:
        """Spacing that record points are put on."""
        return self.lr

    @property
    def end(self) -> float | None:
        """Time at which a run ends, if it is known."""
        if self.epochs is not None and self.lr is not None:
            return self.lr * self.epochs
        return self.until

    def describe(self) -> str:
        """Say how long a run is and what moves it."""
        if self.epochs is not None:
            return f"{self.epochs:,} epochs by gradient flow"
        return f"gradient flow to time {self.end or 0:g}"

    def bound(
        self,
        rows: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        switches: tuple[Switch, ...] = (),
    ) -> Flow:
        """Return the engine itself: a flow is of the full batch.

        Raises:
            AttnscopeError: there are batches, or changes on the way.
        """
        if rows is not None or switches:
            raise AttnscopeError(
                f"a flow of {rows} rows with {len(switches)} switches: expected the full batch and "
                "one model; Descent, Sgd and Adam take mini-batches."
            )
        return self

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
        """Let the parameters flow from time 0 to ``time``.

        Args:
            model: any module; its trainable parameters move.
            loss: ``loss(model)`` is the full-batch loss, the same at every call.
            time: the end, learning rate × number of steps; the engine's own unless given.
            record: what to read, and when.
            stop: conditions that end the run earlier.
            sink: where readings go.
            resume: where to go on from.

        Returns:
            How it ended; ``model`` holds the final parameters.

        Raises:
            AttnscopeError: the loss is not a finite scalar at the start.
        """
        time = ending(time, self.end)
        if self.lr is not None:
            # The end lies on the grid of the record points, where gradient descent would end.
            time = max(1, round(time / self.lr)) * self.lr
        check_memory(model, Workspace.vectors + 3)
        sink = Memory() if sink is None else sink
        with flattened(model) as flat:
            return FlowRun(self, model, loss, flat, time, record, stop, sink, resume).go()
