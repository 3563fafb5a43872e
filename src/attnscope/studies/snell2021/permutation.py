"""Words in a fixed other order are known as well and far harder to attend to (section 6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import xarray as xr

from attnscope.studies.old import Claim
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.snell2021 import _permutation_claims, _permutation_figures
from attnscope.studies.snell2021._copying_study import CopyingStudy
from attnscope.studies.snell2021._copying_tables import learned, readings, seeds, told
from attnscope.studies.snell2021._permutation_cases import (
    CASES,
    COPIED,
    REORDERED,
    REORDERED_UNIFORM,
)
from attnscope.tasks.copying import Copying


@dataclass(frozen=True)
class FixedPermutation(CopyingStudy):
    """Copying, and copying into the order of one fixed random permutation π, side by side.

    Both have the same inputs, the same count table and, seed by seed, the same start. Each seed has
    its own π (eq 26). Two more cases hold attention at uniform.
    """

    seeds: int = 10
    """Number of runs of each case."""
    epochs: int = 600
    """Steps; the paper gives 300 for copying, and no number for π."""
    points: int = 61
    """Record points, evenly spaced."""
    verdict: int = 300
    """Step at which it is judged who has learned."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 400,
        "points": 41,
        "length": 20,
        "types": 30,
        "width": 64,
    }

    def cases(self) -> tuple[str, ...]:
        """Return what is done with the words."""
        return CASES

    def task(self, case: str, seed: int = 0) -> Copying:
        """Return the task of a case; π is that of the seed."""
        reordered = case in (REORDERED, REORDERED_UNIFORM)
        return Copying(self.length, self.types, reorder_seed=seed if reordered else None)

    def claims(self) -> tuple[Claim, ...]:
        """Return what section 6.2 says."""
        return _permutation_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw accuracy of both, and knowledge beside attention."""
        return _permutation_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate who has learned when, what C says before, and every seed."""
        return [
            learned(self, tree, (COPIED, REORDERED)),
            told(self, CASES),
            readings(self, tree, CASES, self.verdict),
            seeds(tree, (COPIED, REORDERED), self.verdict),
        ]
