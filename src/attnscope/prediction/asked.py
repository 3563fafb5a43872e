"""What is asked for: the data, and what every section of the answer may need of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText

Data = TypeVar("Data", LabelledText, ParallelText, DocumentSet)
Tell = Callable[[str, int, int], None]
"""Hears ``(what is being done, how many are done, of how many)``; 0 for a number not known."""


def silent(what: str, done: int, total: int) -> None:
    """Hear nothing."""


@dataclass(frozen=True, eq=False)
class Asked(Generic[Data]):
    """One question. Sections read it; none changes it.

    Args:
        data: the set, as :func:`attnscope.datasets.labelled` and its siblings return it.
        without: words that are taken out of every text before anything is counted, in lower case.
        tell: hears how far the work is; call it a few times a second at most.
        seed: draws samples, where something is too much to be counted whole.
    """

    data: Data
    without: tuple[str, ...] = ()
    tell: Tell = field(default=silent)
    seed: int = 0


class AskedLabelled(Asked[LabelledText]):
    """A question about labelled text, with its training texts at hand."""

    @cached_property
    def texts(self) -> list[str]:
        """The training texts, as published; ``without`` is not applied to them."""
        return self.data.splits["train"].texts

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The class of each training text, an index into ``classes``."""
        return self.data.splits["train"].labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.data.classes
