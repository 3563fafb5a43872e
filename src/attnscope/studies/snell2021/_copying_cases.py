"""The cases of ``snell2021.copying``."""

from __future__ import annotations

from attnscope.studies.snell2021._copying_study import UNIFORM

PERMUTED = "permutations"
DRAWN = "draws"
PERMUTED_MIXED = "permutations, two sets"
DRAWN_UNION = "draws, both sets at once"
DRAWN_MIXED = "draws, two sets"
PERMUTED_UNIFORM = PERMUTED + UNIFORM
DRAWN_UNIFORM = DRAWN + UNIFORM

CASES = (
    PERMUTED,
    DRAWN,
    PERMUTED_MIXED,
    DRAWN_UNION,
    DRAWN_MIXED,
    PERMUTED_UNIFORM,
    DRAWN_UNIFORM,
)
LEARNERS = (PERMUTED, DRAWN, PERMUTED_MIXED, DRAWN_UNION, DRAWN_MIXED)
"""Cases in which attention learns."""
