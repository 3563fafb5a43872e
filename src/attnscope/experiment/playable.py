"""A study that a page in the browser can play: one run, its attention over time, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnscope.bounds import Count, Natural
from attnscope.experiment.study import Study

if TYPE_CHECKING:
    from attnscope.claims import Finding
    from attnscope.trajectory import Readings

NOW = "the moment played below"
"""Label of the rules that move with the attention that is played."""


@dataclass(frozen=True, eq=False)
class AttentionOverTime:
    """Attention on one sentence over time.

    Args:
        title: what is attended to by what.
        caption: how to read it.
        times: on the axis that the figures have, shape ``(moment,)``.
        unit: what the times count.
        keys: the words that are attended to.
        queries: the words that attend; a single one for a sentence as a whole.
        weights: shape ``(moment, query, key)``.
        groups: colour number of each key, -1 for none.
        right: which key each query should attend to, -1 if that cannot be said.
    """

    title: str
    caption: str
    times: np.ndarray
    unit: str
    keys: tuple[str, ...]
    queries: tuple[str, ...]
    weights: np.ndarray
    groups: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class Playable(Study):
    """A study of one setting that anybody may change, with one seed or several."""

    seeds: Count = 1
    """Number of runs, with seeds from `draw` on."""
    draw: Natural = 0
    """Seed of the data and of the start."""

    def runs(self) -> list[tuple[str, int]]:
        """Return the cases, with the seeds from the one that was drawn on."""
        self.check_runs(self.seeds * len(self.cases))
        return [(case, self.draw + seed) for seed in range(self.seeds) for case in self.cases]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return attention on one sentence over time, of the first seed."""
        raise NotImplementedError

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say in a sentence how the first run ended."""
        raise NotImplementedError
