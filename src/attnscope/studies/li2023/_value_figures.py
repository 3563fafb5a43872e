"""The figures and the table of ``li2023.value``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Dots, Figure, Heat, Line, Mark, Panel, Rule
from attnscope.report.page import Table
from attnscope.studies.li2023 import _value_claims
from attnscope.studies.li2023._block_means import (
    DIAGONAL,
    DIFFERENT,
    MASK_COLUMN,
    MASK_ROW,
    SAME,
    gap,
)
from attnscope.studies.li2023._value_cases import (
    ENTROPY,
    NOISE,
    SGD,
    ZERO,
    ZERO_SMALL,
    penalised,
)
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.value import Value


def figures(study: Value, tree: xr.DataTree) -> list[Figure]:
    """Return the matrices, the way to the solution, the limit λ → 0, and finite documents."""
    return [
        matrices(study, tree),
        over_time(study, tree),
        limit(study, tree),
        finite(study, tree),
    ]


def matrices(study: Value, tree: xr.DataTree) -> Figure:
    """Draw W^V as predicted, as the flow leaves it, and where it ends elsewhere."""
    population = study.population(study.tau)
    shown = (
        ("Theorem 2", li2023.value_blocks(population).matrix(population)),
        (f"flow from zero, λ = {study.small:g}", _values(tree, ZERO_SMALL)),
        ("flow from noise, no λ", _values(tree, NOISE)),
        (f"SGD, documents of {study.shortest} to {study.longest} words", _values(tree, SGD)),
    )
    return Figure(
        "matrices",
        "W^V has the topics as blocks",
        f"W^V at time {study.time:,.0f}, seed 0; words are sorted by topic, [MASK] is first. The "
        "flow from zero ends at Theorem 2. Without a penalty the noise of the start stays. On "
        "documents of finite length W^V grows a diagonal, which the limit of long documents "
        f"leaves out (λ = {study.case(SGD).penalty:g}).",
        tuple(
            Panel(title, "word j, in the context", "word i, predicted", (heat(values, "W^V"),))
            for title, values in shown
        ),
        columns=2,
    )


def heat(values: np.ndarray, label: str) -> Heat:
    """Return a matrix over words as a mark, with a word's number at the middle of its cell."""
    edges = np.arange(len(values) + 1) - 0.5
    return Heat(edges, edges, values, label, diverging=True)


def _values(tree: xr.DataTree, case: str) -> np.ndarray:
    return np.asarray(_value_claims.ends(tree, case)[0])


def over_time(study: Value, tree: xr.DataTree) -> Figure:
    """Draw the distance to the solution over time, measured and solved."""
    runs = [penalised(penalty) for penalty in study.penalties]
    fast: list[Mark] = []
    slow: list[Mark] = []
    # Panels share a legend, so no two lines share a colour.
    for marks, shown, first in ((fast, [*runs, NOISE], 0), (slow, [ZERO_SMALL, ZERO], 4)):
        for i, case in enumerate(shown, first):
            distance = select(tree, "distance", case).isel(run=0)
            clock = distance["time"].to_numpy()[1:]
            label = case.removeprefix("population, ")
            marks.append(Line(clock, distance.to_numpy()[1:], label, i))
            known = select(tree, "distance", case, "theory").isel(run=0).to_numpy()[1:]
            # Single precision ends above, and the dashes would go on for decades.
            known = np.where(known > 1e-6, known, np.nan)
            marks.append(Line(clock, known, "solved" if case == ZERO else "", theory=True))
    axes = ("time", "relative distance to the minimum")
    return Figure(
        "over-time",
        "W^V goes to the regularised minimum",
        "Relative distance of W^V to the exact minimum at its λ, seed 0, on the population. "
        "Dashed: the linear flow solved from the start alone. From noise the last to go is what "
        "documents say nothing of, at rate 2λ: without a penalty it stays. From zero there is no "
        "such part, and a smaller λ, or none, takes no longer. Single precision ends near 10⁻⁵.",
        (
            Panel("from noise", *axes, tuple(fast), "log", "log"),
            Panel("from zero", *axes, tuple(slow), "log", "log"),
        ),
        columns=2,
    )


def limit(study: Value, tree: xr.DataTree) -> Figure:
    """Draw the distance to Theorem 2 and the gap against λ."""
    population = study.population(study.tau)
    theorem = li2023.value_blocks(population).matrix(population)
    expected = li2023.topic_gap(population)
    runs = [*(penalised(penalty) for penalty in study.penalties), ZERO_SMALL]
    penalties = np.array([study.case(case).penalty for case in runs])
    errors = np.stack([_value_claims.off(_value_claims.ends(tree, c), theorem) for c in runs])
    gaps = np.stack([gap(_value_claims.end_blocks(tree, c), study.words) for c in runs]) / expected
    grid = np.geomspace(penalties.min() / 2, penalties.max() * 2, 100)
    exact = [li2023.ridge_value_blocks(population, value) for value in grid]
    lines = (
        _value_claims.off(np.stack([blocks.matrix(population) for blocks in exact]), theorem),
        np.array([blocks.same - blocks.different for blocks in exact]) / expected,
    )
    panels = []
    for title, ylabel, values, line in (
        ("distance", "distance to Theorem 2, relative", errors, lines[0]),
        ("gap", "gap over c₃/v", gaps, lines[1]),
    ):
        mean, low, high = values.mean(axis=1), values.min(axis=1), values.max(axis=1)
        marks = (
            Dots(penalties, mean, low, high, "end of the flow"),
            Line(grid, line, "exact solution", theory=True),
        )
        scale = "log" if title == "distance" else "linear"
        panels.append(Panel(title, "λ", ylabel, marks, "log", scale))  # type: ignore[arg-type]
    return Figure(
        "limit",
        "Theorem 2 is the limit of small λ",
        f"End of the flow on the population at each λ, mean and range over {study.seeds} seeds, "
        "against the exact solution. The gap is the same-topic minus the different-topic mean, "
        "which is c₃/v in Theorem 2. The distance to Theorem 2 falls in proportion to λ once λ is "
        "small beside what tells topics apart.",
        tuple(panels),
        columns=2,
    )


def finite(study: Value, tree: xr.DataTree) -> Figure:
    """Draw the blocks of W^V under SGD over time, and the gap under cross-entropy."""
    population = study.population(study.tau)
    blocks = select(tree, "blocks", SGD)
    clock = blocks["time"].to_numpy()[1:]
    known = select(tree, "blocks", SGD, "theory").isel(run=0).to_numpy()
    marks: list[Mark] = []
    names = ((DIAGONAL, "W_ii"), (SAME, "same topic"), (MASK_COLUMN, "W_i0"))
    for i, (block, name) in enumerate((*names, (DIFFERENT, "different topic"))):
        mean, low, high = mean_interval(blocks.isel(block=block).to_numpy()[:, 1:])
        marks += [Band(clock, low, high, color=i), Line(clock, mean, name, i)]
        label = "solved, finite length" if block == DIFFERENT else ""
        marks.append(Line(clock, known[1:, block], label, theory=True))
    expected = li2023.topic_gap(population)
    gaps: list[Mark] = []
    for i, (case, name) in enumerate(((ENTROPY, "cross-entropy"), (ZERO, "squared")), 4):
        curve = gap(select(tree, "blocks", case).isel(run=0).to_numpy(), study.words) / expected
        # A gap below zero, by the noise of the start, has no logarithm.
        curve = np.where(curve > 0, curve, np.nan)
        gaps.append(Line(clock, curve[1:], name, i))
    gaps.append(Rule(1.0, "c₃/v"))
    return Figure(
        "beyond",
        "Where the closed form of Theorem 2 ends",
        f"Left: block means of W^V under SGD (learning rate {study.lr:g}, {study.batch} fresh "
        f"documents of {study.shortest} to {study.longest} words a step, λ = "
        f"{study.case(SGD).penalty:g}), mean and 95 % band over {study.seeds} seeds. Dashed: the "
        "flow with finite length taken in, solved. Theorem 2 has W_ii equal to its block. Right: "
        "the same-topic minus the different-topic mean over c₃/v, on the population without a "
        "penalty, seed 0. Cross-entropy has no finite optimum.",
        (
            Panel("SGD on fresh documents", "time", "mean entry of W^V", tuple(marks), "log"),
            Panel("loss", "time", "gap over c₃/v", tuple(gaps), "log", "log"),
        ),
        columns=2,
    )


def tables(study: Value, tree: xr.DataTree) -> list[Table]:
    """Return the end of all runs, beside Theorem 2 and the solution for finite length."""
    population = study.population(study.tau)
    theorem = li2023.value_blocks(population)
    target, expected = theorem.matrix(population), li2023.topic_gap(population)
    rows: list[tuple[str | float, ...]] = []
    for case in study.cases():
        means = _value_claims.end_blocks(tree, case).mean(axis=0)
        rows.append(
            (
                case,
                study.case(case).penalty,
                *(float(means[i]) for i in (MASK_COLUMN, SAME, DIAGONAL, DIFFERENT, MASK_ROW)),
                float(gap(means, study.words)) / expected,
                float(_value_claims.off(_value_claims.ends(tree, case), target).mean()),
            )
        )
    columns = (
        "run",
        "λ",
        "W_i0",
        "same topic",
        "W_ii",
        "different topic",
        "largest |W_0j|",
        "gap over c₃/v",
        "distance to Theorem 2, relative",
    )
    title = (
        f"W^V at the end, mean over {study.seeds} seeds (Theorem 2: W_i0 = {theorem.mask:.5f}, "
        f"same {theorem.same:.5f}, different {theorem.different:.5f})"
    )
    return [Table("end", title, columns, tuple(rows))]
