"""One text of the agreement study, position by position, over training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.report.attention_maps import AttentionMaps, fitted
from attnscope.studies.snell2021.agreement.evidence import evidence
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement.study import Agreement

QUANTITIES = {
    "alpha": ("α", "attention of run A"),
    "beta": ("β", "lexical probe of run A"),
    "beta-uf": ("β^uf", "lexical probe of the uniform run"),
}
"""What is shown of a text, and from which run."""


@dataclass(frozen=True, eq=False)
class Course:
    """One text over training.

    Args:
        steps: at which all quantities are known.
        source: words of the source.
        target: words of the translation, or the name of the class.
        values: each quantity, shape ``(step, target, source)``.
    """

    steps: NDArray[np.float64]
    source: tuple[str, ...]
    target: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]


def course_of(run: Readings, number: int) -> Course:
    """Return what a validation text is to the runs, step by step.

    Raises:
        AttnscopeError: if there is no such text among those that were evaluated.
    """
    seen, data = evidence(run), run["data"]
    owner = data["sentence_dev"].to_numpy()
    rows = np.flatnonzero(owner == number)
    if not len(rows):
        raise AttnscopeError(
            f"sentence = {number}: expected 0 to {int(owner.max())}, a validation text that was "
            "evaluated."
        )
    length = int(seen.cells.length[rows[0]])
    cells = slice(seen.cells.row(int(rows[0])).start, seen.cells.row(int(rows[-1])).stop)
    labelled = seen.kind == "labelled"
    link = expit if labelled else np.exp

    def read(name: str, of: str) -> NDArray[np.float64]:
        return np.asarray(seen.observed[name].sel(run=of).isel(cell_dev=cells), dtype=float)

    flat = {
        "alpha": read("alpha_dev", "A"),
        "beta": link(read("lexical_dev", "A")),
        "beta-uf": link(read("lexical_dev", "uniform")),
    }
    known = np.all([np.isfinite(values).all(axis=1) for values in flat.values()], axis=0)
    words = data["word"].to_numpy()
    names = np.asarray(data.attrs["classes"]) if labelled else words
    shape = (int(known.sum()), len(rows), length)
    return Course(
        seen.steps[known],
        tuple(str(word) for word in words[data["source_dev"].to_numpy()[cells][:length]]),
        tuple(str(name) for name in names[data["target_dev"].to_numpy()[rows]]),
        {name: values[known].reshape(shape) for name, values in flat.items()},
    )


def maps_of(study: Agreement, run: Readings) -> list[AttentionMaps]:
    """Return α and β of run A and β^uf over steps, for the text of the study.

    A labelled text is one map with a line for each quantity; a pair is a map of target by source
    words for each. Empty as long as run A and the uniform run have no step in common.
    """
    course = course_of(run, study.sentence)
    if not len(course.steps):
        return []

    def layer(
        name: str, title: str, queries: tuple[str, ...], values: NDArray[np.float64]
    ) -> tuple[AttentionMaps, NDArray[np.float64]]:
        weights, steps = values[:, None, None], tuple(int(step) for step in course.steps)
        blank = np.zeros(weights.shape, np.uint8)
        return AttentionMaps(name, title, steps, blank, (queries,), (course.source,)), weights

    if evidence(run).kind == "labelled":
        title = (
            f"Validation text {study.sentence}, of class '{course.target[0]}': attention α and "
            "lexical probe β of run A, lexical probe β^uf of the uniform run"
        )
        lines = np.concatenate([course.values[name] for name in QUANTITIES], axis=1)
        asks = tuple(symbol for symbol, _ in QUANTITIES.values())
        return fitted([layer("text", title, asks, lines)])
    start = f"Validation pair {study.sentence}: "
    return fitted(
        [
            layer(name, f"{start}{symbol}, {words}", course.target, course.values[name])
            for name, (symbol, words) in QUANTITIES.items()
        ]
    )
