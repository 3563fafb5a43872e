"""Studies small enough to sweep in a test."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.claims import Claim, below
from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.trajectory import Readings, final


@dataclass(frozen=True)
class Hill(Study):
    """Nothing is trained: the statistic is known, a + b² and some noise, so its boundary is too."""

    seeds: int = 2
    training: Descent = Descent(lr=0.1, epochs=1)
    a: float = 0.0
    b: float = 0.0
    n: int = 1
    noise: float = 0.0
    each: bool = True
    broken: float = 10.0
    """From this a on a point cannot be done."""
    deadly: float = 10.0
    """From this a on a point takes its process along, as one without memory does."""

    def build(self, case: str, seed: int) -> Problem:
        """Make a run whose only reading is the statistic."""
        if self.a >= self.broken:
            raise AttnscopeError(f"a = {self.a} is not to be.")
        if self.a >= self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        shaken = float(np.random.default_rng([seed, 1]).normal()) * self.noise
        value = self.a + self.b**2 + shaken
        model = nn.Linear(1, 1, dtype=torch.float64)

        def loss(module: nn.Module) -> Tensor:
            return module.get_parameter("weight").square().sum()

        reading = Observable("height", lambda _: torch.tensor(value, dtype=torch.float64))
        words = Observable("words", lambda _: torch.zeros(self.n), ("word",))
        return Problem(model, loss, [Record((reading, words), Linear(2))])

    def claims(self) -> list[Claim]:
        """Return that the hill is low."""
        return [
            Claim(
                "low",
                "The hill is low.",
                lambda run, more: final(run.height).mean("case") + more,
                0.0,
                below(0.5),
                (1e3, "a mountain on top"),
                measure="height",
                each=self.each,
            )
        ]

    def margins(self) -> dict[str, tuple[float, str]]:
        """Return how far below the boundary it is."""
        return {"low": (0.5 - self.a - self.b**2, "a + b² = ½")}


def heights(run: Readings) -> np.ndarray:
    """Return what was read."""
    return final(run.height).to_numpy()
