"""The figures of ``snell2021.multihead``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.shares import share_curve
from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule
from attnscope.trajectory import select
from attnscope.studies.snell2021._multihead_pools import (
    ALL_BAD,
    BAD,
    GOOD,
    ONE_GOOD,
    RANDOM,
    SCENARIOS,
    judged,
    pools,
    trials,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.multihead import Multihead

BLUE, RED, GREEN, OTHER = range(4)
COLORS = {ALL_BAD: RED, ONE_GOOD: BLUE, RANDOM: GREEN}


def figures(study: Multihead, tree: xr.DataTree) -> list[Figure]:
    """Return Fig 6, the single heads, and which head attends."""
    return [curves(study, tree), single(study, tree), attending(study, tree)]


def curves(study: Multihead, tree: xr.DataTree) -> Figure:
    """Draw Fig 6: every run by scenario, and the share that has learned."""
    steps = tree["observables/time"].to_numpy()
    panels: list[Panel] = []
    shares: list[Mark] = []
    for case in SCENARIOS:
        accuracy = select(tree, "accuracy", case).to_numpy()
        marks: list[Mark] = [
            Line(steps, run, "" if seed else case, COLORS[case], thin=True)
            for seed, run in enumerate(accuracy)
        ]
        marks.append(Line(steps, accuracy.mean(axis=0), "mean", COLORS[case]))
        marks += [Rule(GOOD), Rule(BAD)]
        panels.append(Panel(case, "step", "accuracy", tuple(marks)))
        reached = np.maximum.accumulate(accuracy, axis=1) > GOOD
        share, low, high = share_curve(reached)
        shares += [
            Band(steps, low, high, color=COLORS[case]),
            Line(steps, share, case, COLORS[case]),
        ]
    end = np.array([steps[-1]])
    predicted = np.array([float(tree["theory/share_learned"])])
    shares.append(Dots(end, predicted, label="random, predicted", color=OTHER))
    panels.append(Panel("have learned", "step", f"share of runs above {GOOD:g}", tuple(shares)))
    return Figure(
        "fig6-multihead",
        "One good head among several",
        f"Accuracy on {study.held_out} unseen permutations of {study.length} words over steps of "
        f"Adam, models with {study.heads} heads, {study.seeds} runs each (Snell 2021, Fig 6): all "
        "heads start badly, one starts well, all start at random. Rules: what a good single head "
        "exceeds and a bad one ends below. Last: share of runs that have learned, with 95 % "
        "intervals by Clopper and Pearson; the dot is the share of runs with a good head, "
        f"1 - (1 - q)^{study.heads}. There were {_status(study, tree)}.",
        tuple(panels),
        columns=2,
    )


def single(study: Multihead, tree: xr.DataTree) -> Figure:
    """Draw the trials of single heads, by what they were judged."""
    steps = tree["observables/time"].to_numpy()
    accuracy = trials(tree, study.streams)
    good, bad = judged(accuracy)
    marks: list[Mark] = []
    for label, which, color in (
        ("good", good, BLUE),
        ("bad", bad, RED),
        ("discarded", ~good & ~bad, OTHER),
    ):
        for i, run in enumerate(accuracy[which].reshape(-1, len(steps))):
            marks.append(Line(steps, run, "" if i else label, color, thin=True))
    marks += [Rule(GOOD), Rule(BAD)]
    return Figure(
        "single-heads",
        "Starts of a single head, tried alone",
        f"Accuracy of models with one head: {study.candidates} starts of the head, each on "
        f"{study.streams} streams of data; everything else starts the same. A start is good if it "
        f"exceeds {GOOD:g} on all streams, bad if it ends below {BAD:g} on all, and is discarded "
        f"otherwise. {_status(study, tree).capitalize()}.",
        (Panel("one head", "step", "accuracy", tuple(marks)),),
        columns=1,
    )


def attending(study: Multihead, tree: xr.DataTree) -> Figure:
    """Draw which head looks at the right positions."""
    steps = tree["observables/time"].to_numpy()
    panels = []
    for case in SCENARIOS:
        attention = select(tree, "attention", case).to_numpy()
        name = "the good head" if case == ONE_GOOD else "the first head"
        marks: list[Mark] = []
        for seed, run in enumerate(attention):
            for head in range(1, run.shape[1]):
                label = "the others" if seed == 0 and head == 1 else ""
                marks.append(Line(steps, run[:, head], label, OTHER, thin=True))
        for seed, run in enumerate(attention):
            marks.append(Line(steps, run[:, 0], "" if seed else name, COLORS[case]))
        panels.append(Panel(case, "step", "attention on the right position", tuple(marks)))
    return Figure(
        "attending-heads",
        "Which head learns to look",
        "Share of words whose right position has the largest weight of a head, for every head of "
        f"{study.seeds} runs of each scenario.",
        tuple(panels),
    )


def _status(study: Multihead, tree: xr.DataTree) -> str:
    return pools(trials(tree, study.streams)).status
