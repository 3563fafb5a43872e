"""The figures and tables of ``snell2021.multihead``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.shares import share_curve, share_interval
from attnscope.report import Band, Dots, Figure, Line, Mark, Panel, Rule, Table
from attnscope.report.page import Cell
from attnscope.studies.snell2021._copying_study import BLUE, GREEN, PURPLE, RED, lines
from attnscope.studies.snell2021.multihead.heads import (
    ALL_BAD,
    BAD,
    CANDIDATE,
    GOOD,
    ONE_GOOD,
    RANDOM,
    best,
    end,
    judged,
    pools,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.snell2021.multihead.study import Multihead

COLORS = {ALL_BAD: RED, ONE_GOOD: BLUE, RANDOM: GREEN}
THRESHOLDS = (Rule(GOOD), Rule(BAD))


def fig6_figures(study: Multihead, run: Readings) -> list[Figure]:
    """Draw Fig 6, the single heads, and which head attends."""
    status = pools(study.trials(run)).status
    return [scenarios(study, run, status), single(study, run, status), attending(study, run)]


def scenarios(study: Multihead, run: Readings, status: str) -> Figure:
    """Draw Fig 6: every run by scenario, and the share that has learned."""
    panels: list[Panel] = []
    shares: list[Mark] = []
    for case, color in COLORS.items():
        accuracy = run.of(case).accuracy
        steps = accuracy["step"].to_numpy()
        mean = Line(steps, accuracy.to_numpy().mean(axis=0), "mean", color)
        marks = (*lines(accuracy, case, color), mean, *THRESHOLDS)
        panels.append(Panel(case, "step", "accuracy", marks))
        reached = np.maximum.accumulate(accuracy.to_numpy(), axis=1) > GOOD
        share, low, high = share_curve(reached)
        shares += [Band(steps, low, high, color=color), Line(steps, share, case, color)]
    predicted = np.array([float(run.theory.share_learned)])
    shares.append(Dots(steps[-1:], predicted, label="random, predicted", color=PURPLE))
    panels.append(Panel("have learned", "step", f"share of runs above {GOOD:g}", tuple(shares)))
    return Figure(
        "fig6-multihead",
        "One good head among several",
        f"Accuracy on {study.held_out} unseen permutations of {study.length} words over steps of "
        f"Adam, models with {study.heads} heads, {study.seeds} runs each (Snell 2021, Fig 6): all "
        "heads start badly, one starts well, all start at random. Rules: what a good single head "
        "exceeds and a bad one ends below. Last: share of runs that have learned, with 95 % "
        "intervals by Clopper and Pearson; the dot is the share of runs with a good head, "
        f"1 - (1 - q)^{study.heads}. There were {status}.",
        tuple(panels),
        columns=2,
    )


def single(study: Multihead, run: Readings, status: str) -> Figure:
    """Draw the trials of single heads, by what they were judged."""
    accuracy, marks = study.trials(run), []
    for (kind, which), color in zip(judged(accuracy).items(), (BLUE, RED, PURPLE), strict=True):
        own = accuracy.isel(candidate=np.flatnonzero(which)).stack(trial=("candidate", "stream"))
        marks += lines(own.transpose("trial", "step"), kind, color)
    return Figure(
        "single-heads",
        "Starts of a single head, tried alone",
        f"Accuracy of models with one head: {study.candidates} starts of the head, each on "
        f"{study.streams} streams of data; everything else starts the same. A start is good if it "
        f"exceeds {GOOD:g} on all streams, bad if it ends below {BAD:g} on all, and is discarded "
        f"otherwise. {status.capitalize()}.",
        (Panel("one head", "step", "accuracy", (*marks, *THRESHOLDS)),),
        columns=1,
    )


def attending(study: Multihead, run: Readings) -> Figure:
    """Draw which head attends to the right positions."""
    panels = []
    for case, color in COLORS.items():
        attention = run.of(case).attention
        name = "the good head" if case == ONE_GOOD else "the first head"
        others = attention.isel(head=slice(1, None)).stack(each=("seed", "head"))
        marks = (
            *lines(others.transpose("each", "step"), "the others", PURPLE),
            *lines(attention.isel(head=0), name, color, thin=False),
        )
        panels.append(Panel(case, "step", "attention on the right position", marks))
    return Figure(
        "attending-heads",
        "Which head learns to look",
        "Share of words whose right position has the largest weight of a head, for every head of "
        f"{study.seeds} runs of each scenario.",
        tuple(panels),
    )


def fig6_tables(study: Multihead, run: Readings) -> list[Table]:
    """Tabulate who learns, with exact intervals of the share, and every candidate."""
    trials, steps, rows = study.trials(run), study.training.steps, []
    for case in study.cases:
        largest, last = best(run, case), end(run, case).to_numpy()
        attention = final(run.of(case).attention).max("head").to_numpy()
        learned = int((largest > GOOD).sum())
        share = share_interval(learned, largest.size)
        row: dict[str, Cell] = {
            "heads": case,
            "runs": largest.size,
            f"above {GOOD:g}": learned,
            "share": share.share,
            "95 % interval from": share.low,
            "to": share.high,
            "accuracy at the end, mean": float(last.mean()),
            "least": float(last.min()),
            "largest accuracy, mean": float(largest.mean()),
            "attention of the best head at the end": float(attention.mean()),
        }
        rows.append(tuple(row.values()))
    status, predicted = pools(trials).status, float(run.theory.share_learned)
    title = (
        f"Runs that learn within {steps} steps. {status[0].upper()}{status[1:]}; if one good head "
        f"is enough, random heads learn with probability {predicted:.3g}"
    )
    candidates = tuple(
        (number, next(kind for kind, which in judged(trials).items() if which[number]), *values)
        for number, values in enumerate(final(trials).to_numpy().tolist())
    )
    heading = ("start", "verdict", *(f"data {stream}" for stream in range(study.streams)))
    single = f"Accuracy of single heads after {steps} steps ({CANDIDATE})"
    return [
        Table("scenarios", title, tuple(row), tuple(rows)),
        Table("candidates", single, heading, candidates),
    ]
