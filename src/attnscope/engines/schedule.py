"""Learning rates that change over a run, and models that do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from attnscope.errors import AttnscopeError

FIRST, LAST = 1 / 25, 1e-4
"""The rate begins at ``FIRST`` of the largest one and ends at ``LAST`` of where it began."""
USUAL = 0.9
"""Adam's first moment, where no cycle changes it."""
SLOW, FAST = 0.95, 0.85
"""Adam's first moment forgets slowly at both ends of the run, and faster at the peak."""


@dataclass(frozen=True)
class OneCycle:
    """The learning rate rises linearly to ``lr``, then falls linearly to nearly nothing.

    It is PyTorch's ``OneCycleLR(anneal_strategy="linear")`` with its defaults, which include
    Adam's β₁: it falls from 0.95 to 0.85 while the rate rises, and comes back (Smith 2018).

    Args:
        warmup: steps until the learning rate is at its largest.
    """

    warmup: int

    def __post_init__(self) -> None:
        if self.warmup < 1:
            raise AttnscopeError(f"warmup = {self.warmup}: expected 1 step or more.")

    def at(self, step: int, steps: int) -> tuple[float, float]:
        """Return the share of the largest rate, and β₁, at a step of a run of ``steps`` steps.

        Example:
            >>> schedule = OneCycle(warmup=11)
            >>> schedule.at(0, 100)
            (0.04, 0.95)
            >>> schedule.at(10, 100)
            (1.0, 0.85)
        """
        if self.warmup >= steps:
            raise AttnscopeError(
                f"warmup = {self.warmup} in a run of {steps} steps: expected fewer."
            )
        peak, last = self.warmup - 1, steps - 1
        if step <= peak:
            done = step / peak if peak else 1.0
            return _between(FIRST, 1.0, done), _between(SLOW, FAST, done)
        done = min(1.0, (step - peak) / (last - peak))
        return _between(1.0, FIRST * LAST, done), _between(FAST, SLOW, done)


@dataclass(frozen=True)
class WarmUp:
    """The learning rate rises linearly to ``lr`` and stays there; β₁ is Adam's usual 0.9.

    Args:
        warmup: steps until the learning rate is at its largest.
    """

    warmup: int

    def __post_init__(self) -> None:
        if self.warmup < 1:
            raise AttnscopeError(f"warmup = {self.warmup}: expected 1 step or more.")

    def at(self, step: int, steps: int) -> tuple[float, float]:
        """Return the share of the largest rate, and β₁, at a step of a run of ``steps`` steps.

        Example:
            >>> schedule = WarmUp(warmup=4)
            >>> [schedule.at(step, 100)[0] for step in (0, 1, 3, 99)]
            [0.25, 0.5, 1.0, 1.0]
        """
        return min(1.0, (step + 1) / self.warmup), USUAL


@dataclass(frozen=True)
class Fall:
    """The learning rate is ``lr`` until a step, and falls linearly from there to the end.

    Args:
        start: the step.
        warmup: steps over which it rises linearly to ``lr`` before; none unless given.
    """

    start: int
    warmup: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup <= self.start:
            raise AttnscopeError(
                f"fall = {self.start} with warmup = {self.warmup}: expected a fall that begins "
                "after the warm-up, at step 0 or later."
            )

    def at(self, step: int, steps: int) -> tuple[float, float]:
        """Return the share of the rate, and β₁, at a step of a run of ``steps`` steps.

        Example:
            >>> schedule = Fall(start=80)
            >>> [schedule.at(step, 100)[0] for step in (0, 80, 90, 99)]
            [1.0, 1.0, 0.5, 0.05]
        """
        if self.start >= steps:
            raise AttnscopeError(f"fall = {self.start} in a run of {steps} steps: expected fewer.")
        rise = (step + 1) / self.warmup if self.warmup else 1.0
        return min(1.0, rise, (steps - step) / (steps - self.start)), USUAL


@dataclass(frozen=True)
class Switch:
    """A change to the model at a time of the run, such as another attention kernel.

    Readings at that time see the changed model.

    Args:
        at: when, in the time of the run.
        change: a function of the model. It is called again when a run is resumed after ``at``, so
            it sets something and does not toggle it; it leaves the parameters as they are.
        meaning: the change in words.
    """

    at: float
    change: Callable[[nn.Module], None]
    meaning: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.at < math.inf:
            raise AttnscopeError(f"Switch(at={self.at}): expected a finite time, 0 or later.")


def _between(first: float, last: float, done: float) -> float:
    return first + (last - first) * done
