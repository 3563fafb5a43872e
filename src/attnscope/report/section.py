"""A part of a report that is told in words: sentences, tables, figures and shaded texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure
from attnscope.report.page import Table, check_names


@dataclass(frozen=True, eq=False)
class ShadedText:
    """A text whose words are shaded by how much attention they get.

    Args:
        words: in their order; what stands between them is drawn as one space.
        weights: one for each word, 0 or more; the largest is shaded darkest.
        note: what stands before the text, such as its label.
    """

    words: tuple[str, ...]
    weights: np.ndarray
    note: str = ""

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        object.__setattr__(self, "weights", weights)
        if weights.shape != (len(self.words),) or not np.isfinite(weights).all():
            raise AttnscopeError(
                f"weights of shape {weights.shape} for the {len(self.words)} words "
                f"{' '.join(self.words)[:60]!r}: expected one number for each."
            )
        if len(weights) and weights.min() < 0:
            raise AttnscopeError(
                f"a word of {' '.join(self.words)[:60]!r} has the weight {weights.min():g}: "
                "expected 0 or more."
            )

    @property
    def shades(self) -> np.ndarray:
        """How dark each word is, 0 to 1."""
        most = float(self.weights.max(initial=0.0))
        return self.weights / most if most > 0 else np.zeros(len(self.words))


@dataclass(frozen=True, eq=False)
class Section:
    """One part, read from its sentences down to its figures; what it does not have is left out.

    Args:
        name: a plain name, unique on the page; it is the link target.
        title: a short heading.
        sentences: what it says, the most important first. Each stands alone.
        shaded: texts with shaded words.
        shaded_title: what the shading stands for.
        tables: numbers; a table that is folded is not printed in the terminal.
        figures: pictures; they are in the report only.
        again: commands that go on from here, such as ``attnscope predict mine.csv --without x``.
    """

    name: str
    title: str
    sentences: tuple[str, ...] = ()
    shaded: tuple[ShadedText, ...] = ()
    shaded_title: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    again: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_names("section", [self.name])
