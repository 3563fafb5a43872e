"""What is asked for: the data, and what every section of the answer may need of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText
from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.prediction.word_table import WordTable
    from attnscope.probes.evidence.carried import Certainty
    from attnscope.probes.evidence.held_out import WordAccuracy
    from attnscope.report.section import ShadedText

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
        sentences: texts of the reader's own to be shaded.
    """

    data: Data
    without: tuple[str, ...] = ()
    tell: Tell = field(default=silent)
    seed: int = 0
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class AskedText(Asked[DocumentSet]):
    """A question about running text.

    Args:
        batch: sequences in an update of the language model; several usual ones unless given.
        context: tokens in a sequence.
    """

    batch: int | None = None
    context: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("batch", self.batch), ("context", self.context)):
            if value is not None and not 1 <= value <= 10**9:
                raise AttnscopeError(f"--{name} {value}: expected 1 to 1,000,000,000.")


class AskedLabelled(Asked[LabelledText]):
    """A question about labelled text; what several sections need is computed once."""

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

    @cached_property
    def table(self) -> WordTable:
        """Words and their counts, without those that are to be left out."""
        from attnscope.prediction.word_table import word_table

        return word_table(
            self.texts,
            self.labels,
            len(self.classes),
            name=self.data.name,
            without=self.without,
            tell=self.tell,
        )

    @cached_property
    def evidence(self) -> NDArray[np.float64]:
        """e_wc of the predictor that was chosen, shape ``(word, class)``."""
        from attnscope.probes.evidence.predictors import CHOSEN

        self.tell("weighing words", 0, 0)
        return CHOSEN.evidence(self.table.bags)

    @cached_property
    def attraction(self) -> NDArray[np.float64]:
        """How much each word attracts attention."""
        from attnscope.probes.evidence.predictors import attraction

        return attraction(self.evidence)

    @cached_property
    def picked(self) -> NDArray[np.float64]:
        """The share of texts in which each word attracts more than all others."""
        from attnscope.probes.evidence.predictors import picked_share

        return picked_share(self.table.bags, self.attraction)

    @cached_property
    def ranked(self) -> list[int]:
        """Numbers of words by how often they are picked, then by how much they attract.

        The number 0, which stands for all rare words, is left out.
        """
        order = np.lexsort((-self.attraction, -self.picked))
        return [int(i) for i in order if i and self.table.bags.texts_with[i]]

    @cached_property
    def certainty(self) -> Certainty:
        """Which class each word speaks for, and how surely."""
        from attnscope.probes.evidence.carried import certainty

        return certainty(self.table.bags)

    @cached_property
    def accuracy(self) -> WordAccuracy:
        """How far words alone go on held-out texts."""
        from attnscope.probes.evidence.held_out import word_accuracy

        self.tell("guessing held-out labels from words", 0, 0)
        return word_accuracy(self.table.bags, self.seed)

    @cached_property
    def told(self) -> bool:
        """Whether a single word is beyond chance; if none is, nothing can be told."""
        return bool(self.certainty.sure[1:].any())

    @property
    def leak(self) -> float:
        """How much of the words around it a position holds, as the states of a model do."""
        from attnscope.probes.evidence.predictors import LEAK

        return LEAK

    def shade(self, text: str, note: str = "") -> ShadedText:
        """Return a text with the attention that is predicted for it; its label is not needed."""
        from attnscope.probes.evidence.predictors import predicted_attention
        from attnscope.report.section import ShadedText

        words = self.table.split(text)
        weights = predicted_attention(self.evidence, self.table.ids(words), leak=self.leak)
        return ShadedText(tuple(words), weights, note)
