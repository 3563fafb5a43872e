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


Stop = LossBelow | Patience
