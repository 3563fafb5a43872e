"""Copying permutations sometimes fails, since words there tell nothing of places (Fig 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import xarray as xr

from attnscope.studies.old import Claim
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.snell2021 import _copying_claims, _copying_figures, _copying_tables
from attnscope.studies.snell2021._copying_cases import (
    CASES,
    DRAWN_MIXED,
    DRAWN_UNION,
    PERMUTED,
    PERMUTED_MIXED,
    PERMUTED_UNIFORM,
)
from attnscope.studies.snell2021._copying_study import CopyingStudy
from attnscope.tasks.copying import Copying


@dataclass(frozen=True)
class CopyPermutations(CopyingStudy):
    """Accuracy, attention and knowledge of words while sequences are learned to be copied.

    Sequences are permutations of the same 40 words, or 40 of 60 words in random order; permutations
    of one of two disjoint sets of 40 words, or 40 of these 80 words; or 40 of 60 words of one of
    two disjoint sets. Two more cases hold attention at uniform.
    """

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 300,
        "points": 31,
        "length": 20,
        "types": 30,
        "width": 64,
    }

    def cases(self) -> tuple[str, ...]:
        """Return what is copied."""
        return CASES

    def task(self, case: str, seed: int = 0) -> Copying:
        """Return the task of a case, the same for all seeds."""
        if case in (PERMUTED, PERMUTED_UNIFORM):
            return Copying(self.length, self.length)
        if case == PERMUTED_MIXED:
            return Copying(self.length, self.length, sets=2)
        if case == DRAWN_UNION:
            return Copying(self.length, 2 * self.length)
        return Copying(self.length, self.types, sets=2 if case == DRAWN_MIXED else 1)

    def claims(self) -> tuple[Claim, ...]:
        """Return what the paper says of Fig 3, and what is behind it."""
        return _copying_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 3, and knowledge beside attention."""
        return _copying_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate who has learned when, what C says before, and every seed."""
        return _copying_tables.tables(self, tree)
