"""The figures of ``snell2021.permutation``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Figure, Heat, Mark, Panel, Rule
from attnscope.studies.snell2021._copying_figures import (
    BLUE,
    RED,
    every_seed,
    gap_panel,
    stage_panel,
)
from attnscope.studies.snell2021._permutation_cases import (
    COPIED,
    COPIED_UNIFORM,
    REORDERED,
    REORDERED_UNIFORM,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.permutation import FixedPermutation


def figures(study: FixedPermutation, tree: xr.DataTree) -> list[Figure]:
    """Return the curves of both tasks, and knowledge beside attention."""
    return [curves(study, tree), stages(study, tree)]


def curves(study: FixedPermutation, tree: xr.DataTree) -> Figure:
    """Draw accuracy, and knowledge of words under uniform attention."""
    accuracy: list[Mark] = [
        *every_seed(tree, COPIED, "accuracy", "copied", BLUE),
        *every_seed(tree, REORDERED, "accuracy", "in the order of π", RED),
        Rule(float(study.verdict), f"step {study.verdict}", vertical=True),
    ]
    counts = study.task(COPIED).counts()
    edges = np.arange(len(counts) + 1) - 0.5
    table = Heat(edges, edges, counts, "expected count of one pair")
    uniform = ((COPIED_UNIFORM, "copied", BLUE), (REORDERED_UNIFORM, "in the order of π", RED))
    return Figure(
        "fixed-permutation",
        "The same knowledge of words, and yet one task is far harder",
        f"Left: accuracy on {study.held_out} unseen sequences of {study.length} of {study.types} "
        f"words over steps of Adam, {study.seeds} seeds (Snell 2021, section 6.2). Middle: with "
        "attention held at uniform, log β at the position a word comes from less its mean "
        "elsewhere. Right: the count table C, which is the same for both tasks.",
        (
            Panel("accuracy", "step", "accuracy", tuple(accuracy)),
            gap_panel(tree, "attention held at uniform", uniform),
            Panel("count table C of both", "output word", "input word", (table,)),
        ),
    )


def stages(study: FixedPermutation, tree: xr.DataTree) -> Figure:
    """Draw knowledge, attention and accuracy of both tasks."""
    return Figure(
        "attention-cannot-follow",
        "Attention follows knowledge in copying, and lags far behind it in the order of π",
        "Share of words whose gold position (where they come from) has the largest β (knowledge) "
        f"and the largest α (attention), and accuracy; {study.seeds} seeds and, thick, their "
        "mean; chance dashed.",
        (
            stage_panel(tree, COPIED, "copied", study.length),
            stage_panel(tree, REORDERED, "in the order of π", study.length),
        ),
        columns=2,
    )
