"""The figures and the tables of ``li2023.embedding``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Heat, Line, Mark, Panel, Rule
from attnscope.report.page import Table
from attnscope.studies.li2023 import _embedding_claims
from attnscope.studies.li2023._block_means import DIAGONAL, DIFFERENT, SAME, gap
from attnscope.studies.li2023._embedding_cases import FLOW, PRINTED, TRAININGS
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.embedding import Embedding


def figures(study: Embedding, tree: xr.DataTree) -> list[Figure]:
    """Return E as a matrix for all ways of training, and the blocks over time."""
    return [maps(study, tree), over_time(study, tree)]


def maps(study: Embedding, tree: xr.DataTree) -> Figure:
    """Draw E of every case: Figs 1, 2, 9 and 10, beside the start and the flow."""
    start = _embedding_claims.matrices(tree, FLOW, 0)[0]
    shown = [("start", start)]
    shown += [(c, _embedding_claims.matrices(tree, c)[0]) for c in (FLOW, *TRAININGS)]
    panels = []
    for title, values in shown:
        edges = np.arange(len(values) + 1) - 0.5
        mark = Heat(edges, edges, values, "entry of E", diverging=True)
        panels.append(Panel(title, "word j", "word i", (mark,)))
    return Figure(
        "maps",
        "Topics are blocks of E",
        "E = (W^E)ᵀ W^E, seed 0; words are sorted by topic, [MASK] is first. The start, the flow "
        f"on the population at time {study.time:,.0f}, and {study.epochs:,} steps of SGD and Adam "
        f"at learning rate {study.step_size:g} on fresh documents (Li 2023, Figs 1, 2, 9 and 10). "
        "Mind the different colour bars. Under SGD the largest part is still the diagonal of the "
        "start, which is the squared length of random vectors.",
        tuple(panels),
    )


def over_time(study: Embedding, tree: xr.DataTree) -> Figure:
    """Draw the gap, its visibility and the violation of Theorem 1 over training."""
    expected = li2023.topic_gap(study.population())
    steps = tree["observables/time"].to_numpy()
    size: list[Mark] = []
    seen: list[Mark] = []
    for i, case in enumerate((FLOW, *TRAININGS)):
        values = gap(select(tree, "blocks", case).to_numpy(), study.words) / expected
        size += _band(steps, values, case, i)
        seen += _band(steps, select(tree, "contrast", case).to_numpy(), case, i)
    size.append(Rule(1.0, "Theorem 1, c₃/v"))
    seen.append(Rule(1.0, "blocks catch the eye"))
    flows: list[Mark] = []
    for case in (FLOW, PRINTED):
        violation = select(tree, "violation", case).to_numpy() / expected
        color = 0 if case == FLOW else len(TRAININGS) + 1
        flows.append(Line(steps, violation[0], case, color))
    return Figure(
        "over-time",
        "How the blocks come about",
        f"Left: average same-topic minus different-topic entry of E over Theorem 1's c₃/v = "
        f"{expected:.4f}; it begins above zero, as the same topic includes the word itself. "
        "Middle: the same without the diagonal, over the spread of different-topic entries; blocks "
        f"catch the eye above 1. Mean of the logarithm and 95 % band over {study.seeds} seeds, "
        "where all of them are above zero. Right: the largest "
        "violation of Theorem 1's conditions by flow, seed 0; the printed example E = c₃ I starts "
        "with one and leaves. Time counts steps; for the flow it is time.",
        (
            Panel("size of the blocks", "step", "gap over c₃/v", tuple(size), yscale="log"),
            Panel("visibility", "step", "gap over spread", tuple(seen), yscale="log"),
            Panel("Theorem 1 by flow", "time", "violation over c₃/v", tuple(flows), yscale="log"),
        ),
    )


def _band(steps: np.ndarray, values: np.ndarray, label: str, color: int) -> list[Mark]:
    """Return mean and band of the logarithm, empty where a seed is not above zero."""
    logs = np.log(np.where(values > 0, values, np.nan))
    mean, low, high = (np.exp(part) for part in mean_interval(logs))
    return [Band(steps, low, high, color=color), Line(steps, mean, label, color)]


def tables(study: Embedding, tree: xr.DataTree) -> list[Table]:
    """Return the end of all runs, and the examples of Theorem 1."""
    population = study.population()
    expected = li2023.topic_gap(population)
    rows: list[tuple[str | float, ...]] = []
    for case in study.cases():
        means = select(tree, "blocks", case).isel(step=-1).mean("run").to_numpy()
        rows.append(
            (
                case,
                *(float(means[i]) for i in (SAME, DIFFERENT, DIAGONAL)),
                float(gap(means, study.words)),
                float(gap(means, study.words)) / expected,
                float(select(tree, "contrast", case).isel(step=-1).mean()),
                float(_embedding_claims.violations(study, tree, case).mean()),
            )
        )
    columns = (
        "run",
        "same topic, two words",
        "different topic",
        "diagonal",
        "gap with the diagonal",
        "gap over c₃/v",
        "gap without the diagonal, over spread",
        "largest violation of Theorem 1, over c₃/v",
    )
    right, wrong = li2023.corrected_example(population), li2023.printed_example(population)
    examples: list[tuple[str | float, ...]] = []
    for name, matrix, as_printed in (
        ("E = c₃ I, as printed", wrong, False),
        ("c₃ diag(0, 1, ..., 1)", right, False),
        ("the same, bias of the main text", right, True),
    ):
        errors = li2023.embedding_residual(matrix, population, as_printed)
        examples.append((name, float(errors[0]), float(errors[1:].max())))
    heads = ("E", "error in the row of [MASK]", "largest error in a word's row")
    return [
        Table("end", f"E at the end, mean over {study.seeds} seeds", columns, tuple(rows)),
        Table("examples", "The examples of Theorem 1", heads, tuple(examples)),
    ]
