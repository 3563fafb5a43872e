"""The cases of ``snell2021.permutation``."""

from __future__ import annotations

from attnscope.studies.snell2021._copying_study import UNIFORM

COPIED = "copied"
REORDERED = "reordered"
COPIED_UNIFORM = COPIED + UNIFORM
REORDERED_UNIFORM = REORDERED + UNIFORM
CASES = (COPIED, REORDERED, COPIED_UNIFORM, REORDERED_UNIFORM)
