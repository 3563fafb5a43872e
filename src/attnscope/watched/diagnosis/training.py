"""What advice has to know: the optimizer, its learning rate over time, and how blocks are built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnscope.watched.chart import Chart
from attnscope.watched.course import Course

ADAPTIVE = ("ada", "rmsprop", "lamb", "lion", "shampoo", "muon")
"""Parts of the names of optimizers that rescale gradients."""
JUMP = 5.0
"""A learning rate that grows fivefold from one reading to the next follows no usual schedule."""


@dataclass(frozen=True, eq=False)
class Training:
    """Facts that the recorder wrote down; everything may be unknown."""

    optimizer: str
    settings: dict[str, Any]
    left_out: tuple[str, ...]
    rates: Course | None
    architecture: dict[str, Any]

    @property
    def adaptive(self) -> bool:
        """Whether the optimizer rescales gradients."""
        return any(name in self.optimizer.lower() for name in ADAPTIVE)

    @property
    def momentum(self) -> bool:
        """Whether it is gradient descent, with momentum or not."""
        return bool(self.optimizer) and not self.adaptive

    def rate(self, step: int) -> float:
        """Return the learning rate in force at a step, NaN if it is not known."""
        if self.rates is None:
            return float(self.settings.get("lr", np.nan))
        at = int(np.searchsorted(self.rates.steps, step, side="right")) - 1
        return float(np.nanmax(self.rates.values[max(at, 0)]))

    def jump(self, step: int) -> tuple[int, float, float] | None:
        """Return step, rate before and after, if the rate grew beyond reason around a step."""
        if self.rates is None or len(self.rates.steps) < 2:
            return None
        rates = np.nanmax(self.rates.values, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = rates[1:] / np.where(rates[:-1] > 0, rates[:-1], np.nan)
        near = np.abs(self.rates.steps[1:] - step) <= 2 * np.diff(self.rates.steps)
        # What comes back to a rate that was in force before, as in cycles, is no jump.
        highest = np.maximum.accumulate(rates)[:-1]
        found = np.flatnonzero((grown >= JUMP) & near & (rates[1:] > highest))
        if not found.size or (self.rates.steps[found[0]] == 0 and rates[0] == 0):
            return None
        at = int(found[0])
        return int(self.rates.steps[at + 1]), float(rates[at]), float(rates[at + 1])

    def grown(self, step: int) -> float:
        """Return the rate now over the rate half-way to a step, 1 if it is not known."""
        if self.rates is None:
            return 1.0
        now, then = float(np.nanmax(self.rates.values[-1])), self.rate(step // 2)
        return now / then if then > 0 else 1.0

    def slower(self, step: int) -> str:
        """Say how to take smaller steps, in the words of the optimizer in use."""
        rate = self.rate(step)
        told = f" (it is {rate:.2g} under {self.optimizer})" if np.isfinite(rate) else ""
        parts = [f"a smaller learning rate{told}, gradient norms clipped at 1"]
        if self.rates is not None and self.rates.values[0].max() >= 0.5 * np.nanmax(
            self.rates.values
        ):
            parts.append("a warm-up, which there is none of")
        if self.adaptive:
            parts.append("a second moment that forgets faster (beta2 = 0.95)")
        return ", ".join(parts[:-1]) + f" or {parts[-1]}" if len(parts) > 1 else parts[0]


def training_of(chart: Chart) -> Training:
    """Return what is known about a training."""
    facts = chart.spec.get("optimizer") or {}
    groups = facts.get("groups") or [{}]
    rates = chart.courses.get("learning_rate")
    return Training(
        str(facts.get("name", "")),
        dict(groups[0]),
        tuple(facts.get("left_out", ())),
        rates,
        dict(chart.spec.get("architecture") or {}),
    )
