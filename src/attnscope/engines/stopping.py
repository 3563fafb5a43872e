"""Conditions that end a run before its time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class LossBelow:
    """Stop when the training loss falls below ``value``.

    Descent looks at every step; flow looks at the end of every adaptive step and then finds the
    crossing inside it by bisection on the dense output.
    """

    value: float


@dataclass(frozen=True)
class Attempts:
    """Stop a flow after so many attempted steps, as a result and not as a failure.

    ``max_steps`` of the flow says that a run which needs more is broken. This one says that it is
    known to go on for ever, as where a minimum at a finite place is approached: where it stood is
    what it came to. Gradient descent knows its number of steps, and passes it over.

    Args:
        steps: how many.
        meaning: what it says of the run, such as ``"attention did not saturate"``.
    """

    steps: int
    meaning: str = ""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise AttnscopeError(f"Attempts(steps={self.steps}): expected 1 step or more.")

    def sentence(self, time: float) -> str:
        """Say that a run ended at ``time`` for this."""
        why = f": {self.meaning}" if self.meaning else ""
        return f"stopped at time {time:g} after {self.steps:,} attempted steps{why}"


@dataclass
class Patience:
    """Stop when a measure has not fallen for ``patience`` units of time (Prechelt 2012).

    Args:
        measure: a function of the model, such as a validation loss; lower is better.
        patience: how long to wait for a new minimum, in time = learning rate × steps.
        every: time between two looks.
        restore: put the parameters of the best look back into the model at the end.
    """

    measure: Callable[[nn.Module], Tensor | float]
    patience: float
    every: float
    restore: bool = True
    best: float = field(default=math.inf, init=False)
    best_time: float = field(default=0.0, init=False)
    best_parameters: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.every <= 0 or self.patience < self.every:
            raise AttnscopeError(
                f"Patience(patience={self.patience}, every={self.every}): expected "
                "0 < every <= patience."
            )

    def evaluate(self, time: float, model: nn.Module) -> str | None:
        """Measure; return the sentence that ends the run, or ``None`` to go on."""
        if time == 0:
            # A run begins: what an earlier one left here is not its best.
            self.best, self.best_time, self.best_parameters = math.inf, 0.0, {}
        with torch.no_grad():
            value = float(self.measure(model))
        if value < self.best:
            self.best, self.best_time = value, time
            if self.restore:
                self.best_parameters = {
                    name: p.detach().clone() for name, p in model.named_parameters()
                }
            return None
        if time - self.best_time >= self.patience:
            return (
                f"stopped at time {time:g}: the measure had not fallen below {self.best:.6g}, "
                f"reached at time {self.best_time:g}, for {self.patience:g} units of time"
            )
        return None

    def finish(self, model: nn.Module) -> None:
        """Put the best parameters back."""
        with torch.no_grad():
            for name, value in self.best_parameters.items():
                model.get_parameter(name).copy_(value)


@dataclass
class Reached:
    """Stop when several measures are all at or below their targets.

    A run that comes to its end before says so: what it was to reach, and where it stood.

    Args:
        measure: a function of the model that returns one number a target.
        targets: what the numbers must not be above, by their names.
        every: time between two looks.
        after: time of the first look that counts, such as the end of a first stage.
    """

    measure: Callable[[nn.Module], Tensor]
    targets: dict[str, float]
    every: float
    after: float = 0.0
    best: float = field(default=math.inf, init=False)
    """How far the last look was from the targets, as the largest quotient; 1 is reached."""
    best_time: float = field(default=0.0, init=False)
    best_parameters: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.every > 0:
            raise AttnscopeError(f"Reached(every={self.every}): expected a time above 0.")
        bad = {name: value for name, value in self.targets.items() if not 0 < value < math.inf}
        if bad or not self.targets:
            raise AttnscopeError(
                f"Reached(targets={self.targets}): expected finite numbers above 0 by name."
            )

    def evaluate(self, time: float, model: nn.Module) -> str | None:
        """Measure; return the sentence that ends the run, or ``None`` to go on."""
        if time < self.after:
            return None
        values = self.values(model)
        pairs = zip(values, self.targets.values(), strict=True)
        # Not a number is not below anything: max would pass it over.
        self.best = max(v / t if math.isfinite(v) else math.inf for v, t in pairs)
        self.best_time = time
        if self.best > 1:
            return None
        return f"stopped at time {time:g}: {self.said(values)}"

    def values(self, model: nn.Module) -> list[float]:
        """Return the measures."""
        return [float(value) for value in self.measure(model).detach()]

    def said(self, values: list[float]) -> str:
        """Say where the measures stand, and where they should."""
        pairs = zip(values, self.targets.items(), strict=True)
        return ", ".join(f"{name} {v:.4g} (target {t:.4g})" for v, (name, t) in pairs)

    def missed(self, model: nn.Module) -> str:
        """Say what a run that came to its end was to reach."""
        return f"before its targets were reached: {self.said(self.values(model))}"


Stop = LossBelow | Patience | Attempts | Reached
