"""The maps of ``snell2021.agreement``: one text, position by position, over training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.report.attention_maps import AttentionMaps, fitted
from attnscope.trajectory import select
from attnscope.studies.snell2021._agreement_cells import Cells

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

QUANTITIES = {
    "alpha": ("α", "attention of run A"),
    "beta": ("β", "lexical probe of run A"),
    "beta-uf": ("β^uf", "lexical probe of the uniform run"),
}
"""What is shown of a text, and from which run; A comes first among the normal ones."""


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


def maps(study: Agreement, tree: xr.DataTree) -> list[AttentionMaps]:
    """Return α and β of run A and β^uf over steps, for the text of the study.

    A labelled text is one map with a line for each quantity; a pair is a map of target by source
    words for each. Empty as long as run A and the uniform run have no step in common.
    """
    course = course_of(tree, study.sentence)
    if not len(course.steps):
        return []
    if tree["data"].attrs["kind"] == "labelled":
        title = (
            f"Validation text {study.sentence}, of class '{course.target[0]}': attention α and "
            "lexical probe β of run A, lexical probe β^uf of the uniform run"
        )
        lines = np.concatenate([course.values[name] for name in QUANTITIES], axis=1)
        asks = tuple(symbol for symbol, _ in QUANTITIES.values())
        return fitted([_map("text", title, course, asks, lines)])
    return fitted(
        [
            _map(
                name,
                f"Validation pair {study.sentence}: {symbol}, {words}",
                course,
                course.target,
                course.values[name],
            )
            for name, (symbol, words) in QUANTITIES.items()
        ]
    )


def course_of(tree: xr.DataTree, number: int) -> Course:
    """Return what a validation text is to the runs, step by step.

    Raises:
        AttnscopeError: if there is no such text among those that were evaluated.
    """
    data = tree["data"]
    owner = data["sentence_dev"].to_numpy()
    rows = np.flatnonzero(owner == number)
    if not len(rows):
        raise AttnscopeError(
            f"sentence = {number}: expected 0 to {int(owner.max())}, a validation text that was "
            "evaluated."
        )
    all_cells = Cells(data["length_dev"].to_numpy())
    length = int(all_cells.length[rows[0]])
    cells = slice(all_cells.row(int(rows[0])).start, all_cells.row(int(rows[-1])).stop)
    labelled = data.attrs["kind"] == "labelled"
    link = expit if labelled else np.exp
    flat = {
        "alpha": _read(tree, "alpha_dev", "normal", cells),
        "beta": link(_read(tree, "lexical_dev", "normal", cells)),
        "beta-uf": link(_read(tree, "lexical_dev", "uniform", cells)),
    }
    known = np.all([np.isfinite(values).all(axis=1) for values in flat.values()], axis=0)
    words = data["word"].to_numpy()
    names = np.asarray(data.attrs["classes"]) if labelled else words
    shape = (int(known.sum()), len(rows), length)
    return Course(
        tree["observables/time"].to_numpy()[known],
        tuple(str(word) for word in words[data["source_dev"].to_numpy()[cells][:length]]),
        tuple(str(name) for name in names[data["target_dev"].to_numpy()[rows]]),
        {name: values[known].reshape(shape) for name, values in flat.items()},
    )


def _read(tree: xr.DataTree, name: str, case: str, cells: slice) -> NDArray[np.float64]:
    runs = select(tree, name, case)
    return np.asarray(runs.isel(run=0, cell_dev=cells).to_numpy(), dtype=float)


def _map(
    name: str, title: str, course: Course, asks: tuple[str, ...], values: NDArray[np.float64]
) -> tuple[AttentionMaps, NDArray[np.float64]]:
    """Return a map without levels worth the name, and the weights to be put in."""
    weights = values[:, None, None]
    blank = np.zeros(weights.shape, np.uint8)
    steps = tuple(int(step) for step in course.steps)
    return AttentionMaps(name, title, steps, blank, (asks,), (course.source,)), weights
