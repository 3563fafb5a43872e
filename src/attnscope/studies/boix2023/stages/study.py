"""The runs of ``boix2023.stages``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from attnscope.bounds import Count, Positive
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.report import Table
from attnscope.studies.boix2023._head import HeadStudy, stage_times
from attnscope.studies.boix2023.stages.claims import DESCENT, LOUD, claims
from attnscope.studies.boix2023.stages.figures import figures, tables
from attnscope.theory import boix2023
from attnscope.trajectory import Readings


@dataclass(frozen=True)
class StagesStudy(HeadStudy):
    """Starts of several sizes against the greedy stages: a diagonal head, and full matrices."""

    seeds: Count = 5
    alphas: tuple[Positive, ...] = (1e-2, 1e-4, 1e-8, 1e-16)
    """α, sizes of the start of the diagonal head, falling."""
    full_alphas: tuple[Positive, ...] = (1e-6, 1e-12)
    """The same for full matrices."""
    loud: Positive = 0.5
    """A start of full matrices that is not small."""

    quick: ClassVar = {"seeds": 3}
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check that there are two sizes of each kind, which extrapolation needs."""
        for name in ("alphas", "full_alphas"):
            given = getattr(self, name)
            if len(given) < 2 or any(a <= b for a, b in pairwise(given)):
                raise AttnscopeError(f"{name} = {given}: expected two sizes or more, falling.")
        super().check()

    def sizes(self) -> dict[str, float]:
        """Return α of every case."""
        return {
            **{f"α = {size:g}": size for size in self.alphas},
            **{f"full matrices, α = {size:g}": size for size in self.full_alphas},
            LOUD: self.loud,
            DESCENT: self.alphas[-1],
        }

    @property
    def descent_rate(self) -> float:
        """Learning rate of the case by gradient descent: a step from a record point to the next."""
        return self.end / (self.points - 1) * boix2023.rescaled(self.alphas[-1])

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient descent for its own case, and the flow for all others."""
        if case == DESCENT:
            return Descent(lr=self.end / (self.points - 1))
        return super().engine(case, seed)

    def last_two(self, full: bool = False) -> tuple[tuple[str, float], tuple[str, float]]:
        """Return the two smallest starts, by case and size."""
        sizes = self.full_alphas if full else self.alphas
        named = {size: case for case, size in self.sizes().items() if case != DESCENT}
        return (named[sizes[-2]], sizes[-2]), (named[sizes[-1]], sizes[-1])

    def extrapolated(self, run: Readings) -> np.ndarray:
        """Return the times of the stages at α → 0, shape ``(seed, stage)``."""
        (first, a), (second, b) = self.last_two()
        return boix2023.extrapolate(stage_times(run, first), a, stage_times(run, second), b)

    def printed(self, run: Readings) -> Sequence[Table]:
        """Print the stages: a small gap to the runner-up says where the theorem is silent."""
        return self.tables(run)
