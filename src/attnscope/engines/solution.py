"""What an engine gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from attnscope.errors import AttnscopeError


class Outcome(Enum):
    """How a run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True)
class Solution:
    """The end of a run: the model holds the final parameters, the sink holds the readings.

    Args:
        outcome: how it ended.
        status: the same as a sentence.
        time: where it ended.
        loss: training loss there.
        steps: gradient-descent steps, or accepted adaptive steps.
        evaluations: gradients computed.
        rejected: adaptive steps that were tried and thrown away.
        plain_steps: gradient-descent steps that a flow took at kinks of the loss.
        gradients: how many gradients each method of a flow took, its estimates of the largest
            eigenvalue included.
        sharpness: the largest eigenvalue of the Hessian, with its time, where a flow looked at it.
        switches: when and why a flow changed its method.
        kinks: places where the error of a step shrank too slowly for a smooth loss.
        plain_error: the largest error of a plain step against the flow, ½ lr ‖Δ∇L‖∞.
    """

    outcome: Outcome
    status: str
    time: float
    loss: float
    steps: int
    evaluations: int
    rejected: int = 0
    plain_steps: int = 0
    gradients: Mapping[str, int] = field(default_factory=dict)
    sharpness: tuple[tuple[float, float], ...] = ()
    switches: tuple[str, ...] = ()
    kinks: int = 0
    plain_error: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the run broke down, as opposed to ending as it should or being interrupted."""
        return self.outcome in (Outcome.DIVERGED, Outcome.EXHAUSTED)

    def details(self) -> dict[str, Any]:
        """Return what a flow says of its methods, as JSON values; nothing of other engines."""
        if not self.gradients:
            return {}
        return {
            "gradients": dict(self.gradients),
            "sharpness": [list(pair) for pair in self.sharpness],
            "switches": list(self.switches),
            "kinks": self.kinks,
            "plain_error": self.plain_error,
        }


def ending(time: float | None, known: float | None) -> float:
    """Return when a run ends: as it was told, or as its engine knows.

    Raises:
        AttnscopeError: neither says it, or it is no finite time after 0.
    """
    found = known if time is None else time
    if found is None or not 0 < found < math.inf:
        raise AttnscopeError(f"time = {found}: expected a finite end after time 0.")
    return found
