"""Which sections a prediction has, in the order in which they are read.

A section is a function of what was asked; see :mod:`attnscope.prediction` for how to add one.
"""

from __future__ import annotations

from collections.abc import Callable

from attnscope.datasets.kinds import DocumentSet, ParallelText
from attnscope.prediction.asked import Asked, AskedLabelled
from attnscope.report.section import Section

LABELLED: tuple[Callable[[AskedLabelled], Section | None], ...] = ()
"""For texts with labels."""
PARALLEL: tuple[Callable[[Asked[ParallelText]], Section | None], ...] = ()
"""For sentences with their translations."""
PLAIN: tuple[Callable[[Asked[DocumentSet]], Section | None], ...] = ()
"""For running text."""
