"""The staircase, how late its steps are, and the singular values of full matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.report import Dots, Figure, Line, Panel, Rule, Table
from attnscope.studies.boix2023._head import numbers, stage_times
from attnscope.studies.boix2023.stages.claims import LOUD
from attnscope.theory import boix2023
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.boix2023.stages.study import StagesStudy


def figures(study: StagesStudy, run: Readings) -> list[Figure]:
    """Draw the stairs, the errors against 1/log(1/α), and the full matrices."""
    return [stairs(study, run), errors(study, run), full(study, run)]


def stairs(study: StagesStudy, run: Readings) -> Figure:
    """Draw loss and products over rescaled time, with the greedy stairs."""
    (_, _), (smallest, least) = study.last_two()
    known = run.theory.stage_time.to_numpy()
    at = np.concatenate([[0.0], np.repeat(known, 2), [study.end]])
    start = study.loss_at(np.zeros(2 * study.task.width))
    losses = np.repeat(np.concatenate([[start], run.theory.stage_loss.to_numpy()]), 2)
    time, bottom = run.loss["time"].to_numpy(), 1e-3 * start
    curves = [
        Line(time, np.maximum(run.of(case).loss.isel(seed=0).to_numpy(), bottom), case, i)
        for i, case in enumerate(f"α = {size:g}" for size in study.alphas)
    ]
    greedy = Line(at, np.maximum(losses, bottom), "greedy stages, α → 0", theory=True)
    product = run.of(smallest).product.isel(seed=0).stack(number=("matrix", "entry"))
    plateau = np.vstack([np.zeros(2 * study.task.width), run.theory.plateau.to_numpy()])
    grown = []
    for i, number in enumerate(numbers(run)):
        name, one = study.entry_name(number), product.isel(number=number)
        grown.append(Line(time, one.to_numpy(), name, i))
        heights = np.repeat(plateau[:, number], 2)
        label = "greedy stages, α → 0" if i == 0 else ""
        grown.append(Line(at, heights, label, theory=True))
    units = "time t/log(1/α)"
    return Figure(
        "stairs",
        "Training climbs down a staircase that is known before it",
        "Left: loss of a diagonal head over rescaled time for several sizes α of the start, "
        "seed 0, and the greedy algorithm (dashed), which knows the gradient and nothing of the "
        f"start. Right: the products that grow, at α = {least:g}; VO is W_V W_Oᵀ, KQ is "
        "W_K W_Qᵀ.",
        (
            Panel("loss", units, "loss", (*curves, greedy), yscale="log"),
            Panel(f"products at α = {least:g}", units, "w = uv", tuple(grown)),
        ),
        columns=2,
    )


def errors(study: StagesStudy, run: Readings) -> Figure:
    """Draw how late stages are against 1/log(1/α): straight lines to zero."""
    x = np.array([1 / boix2023.rescaled(size) for size in study.alphas])
    known = run.theory.stage_time.to_numpy()
    late = np.stack([stage_times(run, f"α = {size:g}") / known - 1 for size in study.alphas])
    wrong = 100 * (run.theory.forgetful_time.to_numpy() / known - 1)
    ahead = 100 * (study.extrapolated(run) / known - 1)
    panels = []
    for stage, number in enumerate(numbers(run)):
        lines = tuple(
            Line(x, 100 * late[:, seed, stage], f"start {seed}", seed, thin=seed > 2)
            for seed in range(late.shape[1])
        )
        limit = Dots(np.zeros(len(ahead)), ahead[:, stage], label="extrapolated to α → 0")
        rules = (Rule(0.0, "greedy algorithm, α → 0"), Rule(float(wrong[stage]), "no memory"))
        title = f"stage {stage + 1}: {study.entry_name(number)}"
        panels.append(Panel(title, "1/log(1/α)", "late by (%)", (*lines, limit, *rules)))
    return Figure(
        "late",
        "How late a stage is falls as 1/log(1/α)",
        "Measured times of the stages over those of the greedy algorithm, for starts of "
        "several sizes; towards the left α → 0. Dash-dotted: where the limit would be if exponents "
        "forgot what earlier plateaus did to them; in the first two stages there is no "
        "difference.",
        tuple(panels),
    )


def full(study: StagesStudy, run: Readings) -> Figure:
    """Draw the singular values of full matrices."""
    panels = []
    for case in (study.last_two(full=True)[1][0], LOUD):
        marks: list[Line | Rule] = []
        for colour, matrix in enumerate(("VO", "KQ")):
            values = run.of(case).singular_value.isel(seed=0).sel(matrix=matrix)
            for rank in range(values.sizes["rank"]):
                curve = values.isel(rank=rank).to_numpy()
                label = f"W_{matrix[0]} W_{matrix[1]}ᵀ"
                marks.append(Line(values["time"].to_numpy(), curve, label, colour, thin=rank > 0))
        if case != LOUD:
            first = float(run.theory.full_first_time)
            marks.append(Rule(first, "1/σ_max of the gradient at zero", vertical=True))
        panels.append(Panel(case, "time t/log(1/α)", "singular value", tuple(marks)))
    return Figure(
        "full-matrices",
        "Singular values of full matrices appear one at a time",
        "Singular values of both products over rescaled time, seed 0: from a small start they "
        "appear one by one, and only as many as the teacher has; from a large one all are "
        "there at once.",
        tuple(panels),
        columns=2,
    )


def tables(study: StagesStudy, run: Readings) -> list[Table]:
    """Tabulate the stages."""
    (_, _), (smallest, least) = study.last_two()
    known, wrong = (run.theory.get(n).to_numpy() for n in ("stage_time", "forgetful_time"))
    found, ahead = stage_times(run, smallest).mean(axis=0), study.extrapolated(run)
    off = np.abs(ahead / known - 1).max(axis=0)
    lost = np.abs(wrong / known - 1)
    rows = tuple(
        (
            f"{stage + 1}: {study.entry_name(number)}",
            round(float(known[stage]), 3),
            round(float(found[stage]), 3),
            round(float(ahead[:, stage].mean()), 3),
            round(float(100 * off[stage]), 2),
            round(float(100 * lost[stage]), 1),
            study.entry_name(int(run.theory.runner_up[stage])),
            round(float(run.theory.stage_gap[stage]), 3),
        )
        for stage, number in enumerate(numbers(run))
    )
    return [
        Table(
            "stages",
            "Times of the stages in units of log(1/α), mean over starts. Next: the runner-up, "
            "and how much later it would have been; at 0 there is a tie and theory is silent",
            (
                "stage",
                "greedy",
                f"α = {least:g}",
                "α → 0",
                "off (%)",
                "no memory off (%)",
                "next",
                "later by",
            ),
            rows,
        )
    ]
