"""The figures and the table of ``li2023.value``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, Table, band, ends
from attnscope.studies.li2023._topic_blocks import heat
from attnscope.studies.li2023.value.cases import ENTROPY, NOISE, SGD, ZERO, ZERO_SMALL, penalised
from attnscope.studies.li2023.value.claims import end, off
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.value.study import Value

HEADS = {
    "mask column": "W_i0",
    "same topic": "same topic",
    "diagonal": "W_ii",
    "different topic": "different topic",
    "mask row": "largest |W_0j|",
}
"""What the blocks of W^V are called."""


def figures(study: Value, run: Readings) -> list[Figure]:
    """Draw W^V as a matrix, its way to the solution, the limit λ → 0, and finite documents."""
    return [matrices(study, run), over_time(study, run), limit(study, run), finite(study, run)]


def matrices(study: Value, run: Readings) -> Figure:
    """Draw W^V as predicted, as the flow leaves it, and where it ends elsewhere."""
    shown = {"Theorem 2": study.exact(ZERO)}
    for title, case in (
        (f"flow from zero, λ = {study.small:g}", ZERO_SMALL),
        ("flow from noise, no λ", NOISE),
        (f"SGD, documents of {study.shortest} to {study.longest} words", SGD),
    ):
        shown[title] = end(run, case).sel(seed=0).to_numpy()
    return Figure(
        "matrices",
        "W^V has the topics as blocks",
        f"W^V at time {study.end:,.0f}, seed 0; words are sorted by topic, [MASK] is first. The "
        "flow from zero ends at Theorem 2. Without a penalty the noise of the start stays. On "
        "documents of finite length W^V grows a diagonal, which the limit of long documents "
        f"leaves out (λ = {study.case(SGD).penalty:g}).",
        tuple(
            Panel(title, "word j, in the context", "word i, predicted", (heat(values, "W^V"),))
            for title, values in shown.items()
        ),
        columns=2,
    )


def over_time(study: Value, run: Readings) -> Figure:
    """Draw the distance to the solution over time, measured and solved."""
    noise = [*(penalised(penalty) for penalty in study.penalties), NOISE]
    panels: dict[str, list[Mark]] = {"from noise": [], "from zero": []}
    # Panels share a legend, so no two lines share a colour.
    for i, case in enumerate((*noise, ZERO_SMALL, ZERO)):
        marks = panels["from noise" if case in noise else "from zero"]
        marks.append(line(run.of(case).distance, case.removeprefix("population, "), i))
        known = run.of(case).theory.distance
        # Single precision ends above, and the dashes would go on for decades.
        known = known.where(known > 1e-6)
        marks.append(line(known, "solved" if case == ZERO else "", theory=True))
    axes = ("time", "relative distance to the minimum")
    return Figure(
        "over-time",
        "W^V goes to the regularised minimum",
        "Relative distance of W^V to the exact minimum at its λ, seed 0, on the population. "
        "Dashed: the linear flow solved from the start alone. From noise the last to go is what "
        "documents say nothing of, at rate 2λ: without a penalty it stays. From zero there is no "
        "such part, and a smaller λ, or none, takes no longer. Single precision ends near 10⁻⁵.",
        tuple(Panel(title, *axes, tuple(marks), "log", "log") for title, marks in panels.items()),
        columns=2,
    )


def limit(study: Value, run: Readings) -> Figure:
    """Draw the distance to Theorem 2 and the gap against λ."""
    population, theorem = study.population(), study.exact(ZERO)
    cases = [*(penalised(penalty) for penalty in study.penalties), ZERO_SMALL]
    penalties = np.array([*study.penalties, study.small])
    grid = np.geomspace(penalties.min() / 2, penalties.max() * 2, 100)
    exact = [li2023.ridge_value_blocks(population, value) for value in grid]
    known = np.stack([blocks.matrix(population) for blocks in exact])
    gaps = np.array([blocks.same - blocks.different for blocks in exact]) / study.expected

    def marks(found: np.ndarray, curve: np.ndarray) -> tuple[Mark, ...]:
        mean, low, high = found.mean(axis=1), found.min(axis=1), found.max(axis=1)
        return (
            Dots(penalties, mean, low, high, "end of the flow"),
            Line(grid, curve, "exact solution", theory=True),
        )

    distance = marks(off(final(run.W_V).sel(case=cases), theorem), off(known, theorem))
    gap = marks(study.gap(final(run.blocks).sel(case=cases)).to_numpy(), gaps)
    return Figure(
        "limit",
        "Theorem 2 is the limit of small λ",
        f"End of the flow on the population at each λ, mean and range over {study.seeds} seeds, "
        "against the exact solution. The gap is the same-topic minus the different-topic mean, "
        "which is c₃/v in Theorem 2. The distance to Theorem 2 falls in proportion to λ once λ is "
        "small beside what tells topics apart.",
        (
            Panel("distance", "λ", "distance to Theorem 2, relative", distance, "log", "log"),
            Panel("gap", "λ", "gap over c₃/v", gap, "log"),
        ),
        columns=2,
    )


def finite(study: Value, run: Readings) -> Figure:
    """Draw the blocks of W^V under SGD over time, and the gap under cross-entropy."""
    marks: list[Mark] = []
    for i, block in enumerate(("diagonal", "same topic", "mask column", "different topic")):
        measured, known = (
            each.blocks.sel(block=block) for each in (run.of(SGD), run.of(SGD).theory)
        )
        marks += band(measured.isel(step=slice(1, None)), HEADS[block], i, x="time")
        label = "solved, finite length" if block == "different topic" else ""
        marks.append(line(known, label, theory=True))
    gaps: list[Mark] = []
    for i, (case, name) in enumerate(((ENTROPY, "cross-entropy"), (ZERO, "squared")), 4):
        curve = study.gap(run.of(case).blocks)
        # A gap below zero, by the noise of the start, has no logarithm.
        gaps.append(line(curve.where(curve > 0), name, i))
    gaps.append(Rule(1.0, "c₃/v"))
    return Figure(
        "beyond",
        "Where the closed form of Theorem 2 ends",
        f"Left: block means of W^V under SGD (learning rate {study.rate:g}, {study.batch} fresh "
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


def line(reading: xr.DataArray, label: str, color: int = 0, *, theory: bool = False) -> Line:
    """Return the curve of seed 0 over time, without time 0, which has no logarithm."""
    curve = reading.sel(seed=0).isel(step=slice(1, None))
    return Line(curve["time"].to_numpy(), curve.to_numpy(), label, color, theory=theory)


def tables(study: Value, run: Readings) -> list[Table]:
    """Tabulate the blocks of W^V at the end, run by run."""
    theorem = li2023.value_blocks(study.population())
    penalties = [study.case(case).penalty for case in study.cases]
    away = final(run.distance).copy(data=off(final(run.W_V), study.exact(ZERO)))
    columns = {
        "λ": xr.DataArray(penalties, coords={"case": list(study.cases)}),
        **{head: run.blocks.sel(block=block) for block, head in HEADS.items()},
        "gap over c₃/v": study.gap(run.blocks),
        "distance to Theorem 2, relative": away,
    }
    title = (
        f"W^V at the end, mean over {study.seeds} seeds (Theorem 2: W_i0 = {theorem.mask:.5f}, "
        f"same {theorem.same:.5f}, different {theorem.different:.5f})"
    )
    return [ends(run, title=title, head="run", more=columns)]
