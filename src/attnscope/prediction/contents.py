"""Which sections a prediction has, in the order in which they are read.

A section is a function of what was asked; see :mod:`attnscope.prediction` for how to add one.
"""

from __future__ import annotations

from collections.abc import Callable

from attnscope.prediction.asked import AskedLabelled, AskedText
from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.prediction.facts import data_section
from attnscope.prediction.gold import gold_section
from attnscope.prediction.learnable import learnable_section
from attnscope.prediction.running_text import induction_section, topics_section
from attnscope.prediction.shaded import shaded_section
from attnscope.prediction.shortcuts import shortcuts_section
from attnscope.prediction.translation import alignment_section
from attnscope.prediction.verdict import verdict_section
from attnscope.prediction.when import when_section
from attnscope.prediction.when_text import when_text_section
from attnscope.prediction.word_pairs import pairs_section
from attnscope.prediction.words import classes_section, words_section
from attnscope.report.section import Section

LABELLED: tuple[Callable[[AskedLabelled], Section | None], ...] = (
    verdict_section,
    shaded_section,
    shortcuts_section,
    words_section,
    classes_section,
    when_section,
    data_section,
)
"""For texts with labels."""
PARALLEL: tuple[Callable[[AskedParallel], Section | None], ...] = (
    alignment_section,
    learnable_section,
    gold_section,
    pairs_section,
)
"""For sentences with their translations."""
PLAIN: tuple[Callable[[AskedText], Section | None], ...] = (
    induction_section,
    topics_section,
    when_text_section,
)
"""For running text."""
