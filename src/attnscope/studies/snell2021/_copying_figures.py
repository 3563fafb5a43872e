"""The figures of ``snell2021.copying``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.shares import share_curve
from attnscope.report.figure import Dots, Figure, Line, Mark, Panel, Rule
from attnscope.trajectory import select
from attnscope.studies.snell2021._copying_cases import (
    DRAWN,
    DRAWN_MIXED,
    DRAWN_UNIFORM,
    DRAWN_UNION,
    PERMUTED,
    PERMUTED_MIXED,
    PERMUTED_UNIFORM,
)
from attnscope.studies.snell2021._copying_readings import LEARNED, OFFSETS, reading

if TYPE_CHECKING:
    from attnscope.studies.snell2021.copying import CopyPermutations

BLUE, RED, GREEN, PURPLE, SKY = 0, 1, 2, 3, 5


def figures(study: CopyPermutations, tree: xr.DataTree) -> list[Figure]:
    """Return Fig 3, knowledge beside attention, and where attention goes."""
    return [curves(study, tree), stages(study, tree), where(study, tree)]


def curves(study: CopyPermutations, tree: xr.DataTree) -> Figure:
    """Draw Fig 3: every seed, and the share that has learned."""
    steps = tree["observables/time"].to_numpy()
    end = Rule(float(study.verdict), "end of the paper's runs", vertical=True)
    names = {
        DRAWN: (f"{study.length} of {study.types} words", BLUE),
        PERMUTED: ("permutations", RED),
        DRAWN_UNION: (f"{study.length} of {2 * study.length} words", SKY),
        PERMUTED_MIXED: ("permutations of one of two sets", PURPLE),
        DRAWN_MIXED: (f"{study.length} of {study.types} words of one of two sets", GREEN),
    }
    panels = []
    for title, cases in (
        ("one set of words", (DRAWN, PERMUTED)),
        ("two disjoint sets", (DRAWN_UNION, DRAWN_MIXED, PERMUTED_MIXED)),
    ):
        marks: list[Mark] = []
        for case in cases:
            marks += every_seed(tree, case, "accuracy", *names[case])
        panels.append(Panel(title, "step", "accuracy", (*marks, end)))
    shares: list[Mark] = []
    at = int(np.argmin(np.abs(steps - study.verdict)))
    for number, case in enumerate((DRAWN, PERMUTED, PERMUTED_MIXED)):
        label, color = names[case]
        share, low, high = share_curve(reading(tree, "accuracy", case) > LEARNED)
        # Side by side, so that intervals of equal shares can be told apart.
        x = steps[at : at + 1] + (number - 1) * 0.02 * steps[-1]
        point, least, most = (part[at : at + 1] for part in (share, low, high))
        shares.append(Line(steps, share, label, color))
        shares.append(Dots(x, point, least, most, color=color))
    label = f"share of seeds above {LEARNED:g}"
    panels.append(Panel("have learned", "step", label, (*shares, end)))
    return Figure(
        "fig3-copying",
        "Permutations of the same words are hard to copy",
        f"Accuracy on {study.held_out} unseen sequences over steps of Adam, one curve for each of "
        f"{study.seeds} seeds (Snell 2021, Fig 3, whose runs end at step {study.verdict}). Left: "
        f"permutations of {study.length} words, and {study.length} of {study.types} words. Middle: "
        f"permutations of one of two disjoint sets of {study.length}, draws from both sets at "
        f"once, and draws from one of two sets of {study.types}. Right: share of seeds "
        "that have learned, at the line with 95 % intervals by Clopper and Pearson.",
        tuple(panels),
    )


def stages(study: CopyPermutations, tree: xr.DataTree) -> Figure:
    """Draw knowledge, attention and accuracy, with learned and with uniform attention."""
    panels = [
        *(
            stage_panel(tree, case, title, study.length)
            for case, title in ((DRAWN, "draws"), (PERMUTED, "permutations"))
        ),
        gap_panel(
            tree,
            "attention held at uniform",
            ((DRAWN_UNIFORM, "draws", BLUE), (PERMUTED_UNIFORM, "permutations", RED)),
        ),
    ]
    return Figure(
        "knowledge-first",
        "Knowledge of words first, attention second",
        "Left and middle: share of words whose gold position (where they were copied from) has the "
        "largest β (knowledge) and the largest α (attention), and accuracy; "
        f"{study.seeds} seeds and, thick, their mean; chance dashed. Right: log β at the gold "
        "position less its mean elsewhere, with attention held at uniform: the count table tells "
        f"the gold position of draws (α^IBM there is {study.told(DRAWN):.2f} times its mean at "
        f"words) and not that of permutations ({study.told(PERMUTED):.2f} times).",
        tuple(panels),
    )


def where(study: CopyPermutations, tree: xr.DataTree) -> Figure:
    """Draw how far from the gold position attention is, and when it is at END."""
    index = int(np.argmin(np.abs(tree["observables/time"].to_numpy() - study.verdict)))
    near: list[Mark] = []
    last: list[Mark] = []
    for case, label, color in ((DRAWN, "draws", BLUE), (PERMUTED, "permutations", RED)):
        shares = select(tree, "offset", case).isel(step=index).to_numpy()
        near += [
            Line(np.array(OFFSETS), share, "" if seed else label, color, thin=True)
            for seed, share in enumerate(shares)
        ]
        last += every_seed(tree, case, "at end", label, color)
    title = f"at step {study.verdict}"
    return Figure(
        "where-attention-goes",
        "Where attention is while copying has not been learned",
        f"Left: share of words whose largest attention at step {study.verdict} is so many "
        "positions after the one they were copied from. Right: share of words whose largest "
        "attention is at END, the last position. One curve for each seed. States of an LSTM hold "
        "earlier words too, so attention to a later position can serve as well.",
        (
            Panel(title, "positions after the gold one", "share of words", tuple(near)),
            Panel("at END", "step", "share of words", tuple(last)),
        ),
        columns=2,
    )


def every_seed(tree: xr.DataTree, case: str, name: str, label: str, color: int) -> list[Mark]:
    """Draw a reading, one curve for each seed."""
    steps = tree["observables/time"].to_numpy()
    return [
        Line(steps, run, "" if seed else label, color, thin=True)
        for seed, run in enumerate(reading(tree, name, case))
    ]


def stage_panel(tree: xr.DataTree, case: str, title: str, length: int) -> Panel:
    """Draw knowledge, attention and accuracy of a case."""
    steps = tree["observables/time"].to_numpy()
    marks: list[Mark] = []
    for name, color in (("knowledge", GREEN), ("attention", RED), ("accuracy", BLUE)):
        runs = reading(tree, name, case)
        marks += [Line(steps, run, color=color, thin=True) for run in runs]
        marks.append(Line(steps, runs.mean(axis=0), name, color))
    marks.append(Line(steps, np.full(len(steps), 1 / (length + 1)), "chance", theory=True))
    return Panel(title, "step", "share of words", tuple(marks))


def gap_panel(tree: xr.DataTree, title: str, cases: tuple[tuple[str, str, int], ...]) -> Panel:
    """Draw how much larger log β is at the gold position, for each seed."""
    marks: list[Mark] = []
    for case, label, color in cases:
        marks += every_seed(tree, case, "gap", label, color)
    return Panel(title, "step", "log β at gold less elsewhere (nats)", tuple(marks))
