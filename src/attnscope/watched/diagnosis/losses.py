"""The loss as a level with noise around it: batches differ, and most ups and downs mean nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.watched.chart import Chart

SHORTEST, LONGEST = 10, 50
"""A level is the median of a tenth of the losses, of ten at least and of fifty at most."""
SOLVED = 0.1
"""Below a tenth of its first value a loss is taken for solved."""
LEARNED = 0.9
"""Something has been learned when the loss is below nine tenths of its first value."""
CERTAIN = 0.9
"""One level is above another if nine tenths of all pairs of their losses are in that order: losses
of small batches have two humps and long tails, so a mean and its error say little about them."""
BEYOND = 3.5
"""And if so many pairs in order are 3.5 standard deviations away from chance (Mann and Whitney):
the lowest of many levels is compared with the last, so two would be reached by noise."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Finite losses and the steps they were taken on."""

    steps: np.ndarray
    values: np.ndarray

    @property
    def width(self) -> int:
        """Losses that make up a level."""
        return int(np.clip(round(0.1 * len(self.values)), SHORTEST, LONGEST))

    @property
    def first(self) -> float:
        """The level at the start; training may fall fast, so it is of few losses."""
        return float(np.median(self.values[:3]))

    @property
    def now(self) -> float:
        """The level at the end."""
        return float(np.median(self.values[-self.width :]))

    @property
    def solved(self) -> bool:
        """Whether next to nothing is left of the first loss."""
        return 0 <= self.now < SOLVED * self.first

    @property
    def learned(self) -> bool:
        """Whether the loss is clearly below its first value."""
        return self.first > 0 and self.now < LEARNED * self.first

    @property
    def falling(self) -> bool:
        """Whether the loss is clearly lower than it was a little while ago."""
        width = self.width
        if len(self.values) < 3 * width:
            return self.learned
        return above(self.values[-width:], self.values[-3 * width : -2 * width])

    def until(self, step: int) -> Losses:
        """Return the losses up to a step."""
        last = int(np.searchsorted(self.steps, step, side="right"))
        return Losses(self.steps[:last], self.values[:last])

    def level(self, step: int) -> float:
        """Return the level of the losses that end at a step."""
        held = self.until(step)
        return float(np.median((held if len(held.values) else self).values[-self.width :]))

    def levels(self) -> np.ndarray:
        """Return the level that ends at each loss, from the first whole one on."""
        windows = np.lib.stride_tricks.sliding_window_view(self.values, self.width)
        return np.asarray(np.median(windows, axis=-1))


def losses_of(chart: Chart) -> Losses | None:
    """Return the finite losses, ``None`` if there are fewer than three."""
    course = chart.courses.get("loss")
    if course is None:
        return None
    finite = np.isfinite(course.values)
    if finite.sum() < 3:
        return None
    return Losses(course.steps[finite], course.values[finite])


def above(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether some losses are higher than others beyond their noise, by the order of all pairs."""
    pairs = np.sign(after[:, None] - before[None, :])
    share = (1 + float(pairs.mean())) / 2
    n, m = len(before), len(after)
    error = np.sqrt((n + m + 1) / (12 * n * m))
    return bool(share >= CERTAIN and share - 0.5 >= min(BEYOND * error, 0.499))
