"""The figures of ``snell2021.agreement``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from attnscope.probes.intervals import mean_interval
from attnscope.report.figure import Band, Dots, Figure, Histogram, Line, Mark, Panel, Rule
from attnscope.studies.snell2021._agreement_evidence import Evidence, evidence
from attnscope.studies.snell2021._agreement_lag import risen
from attnscope.studies.snell2021._agreement_maps import QUANTITIES, course_of
from attnscope.studies.snell2021._agreement_paper import ALPHA_UF, FOUR, NAMES, published
from attnscope.studies.snell2021._agreement_predictions import (
    COUNTED,
    COUNTS,
    EM,
    IBM,
    PERMUTATIONS,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

BLUE, RED, GREEN, PURPLE, YELLOW = 0, 1, 2, 3, 4
PLACES = 5
"""Positions of the text that are drawn."""
EARLY = 7
"""Checkpoints that the second panel looks at: up to step 250 of classification."""


def figures(study: Agreement, tree: xr.DataTree) -> list[Figure]:
    """Return the table as bars, agreement over training, the lag, and one text."""
    seen = evidence(tree)
    return [bars(study, seen), over_steps(seen), lag(seen), sentence(study, seen)]


def bars(study: Agreement, seen: Evidence) -> Figure:
    """Draw the row of the table beside the paper's, and predictions before training."""
    found, paper = seen.table(), published(study.data)
    groups: list[tuple[str, int, list[float]]] = [
        ("here", BLUE, [found[name].value for name in FOUR])
    ]
    if paper is not None:
        groups.append(("paper", RED, [paper.agreement[name] for name in FOUR]))
    groups.append(("random order", YELLOW, [found[name].baseline for name in FOUR]))
    ticks = tuple((float(i), f"A{NAMES[name]}") for i, name in enumerate(FOUR))
    alpha = seen.runs.alpha
    before = {
        "counts": seen.prediction(COUNTS),
        "IBM 1": seen.prediction(IBM),
        "IBM 1, EM": seen.prediction(EM),
        "proxy": seen.runs.beta_px,
    }
    chance = [float(seen.permuted(name).mean()) for name in COUNTED]
    known = [
        ("here", BLUE, [seen.agree(alpha, values) for values in before.values()]),
        ("random pairs", GREEN, chance + [np.nan] * (len(before) - len(chance))),
        ("random order", YELLOW, [seen.tied(values) for values in before.values()]),
    ]
    asked = tuple((float(i), name) for i, name in enumerate(before))
    beside = f" beside the paper's (Table {paper.table}, {paper.task})" if paper else ""
    return Figure(
        "agreement",
        "Where models look is where knowledge is, also that of others",
        f"Left: agreement A(u, v), the share of rows in which the largest position of u is among "
        f"the top 5 % of v, on validation data{beside}, and for v in random order. Right: the same "
        "for u = α and a v that is known before training, from the training data alone: the count "
        "table, IBM Model 1 after one iteration and after EM, the bag-of-words proxy; random order "
        "counts the ties of v. As a control, the first two from training pairs put together at "
        f"random, mean over {PERMUTATIONS} ways.",
        (
            Panel("agreement", "", "agreement (%)", _grouped(groups), xticks=ticks),
            Panel("before training", "", "A(α, v) (%)", _grouped(known), xticks=asked),
        ),
        columns=2,
    )


def over_steps(seen: Evidence) -> Figure:
    """Draw agreement with β^uf and accuracy on one axis, whole and early, and A.7."""
    steps = seen.runs.steps
    normal = _of(seen, "normal")
    agreed = normal["to_uniform"].to_numpy()
    accuracy = 100 * normal["accuracy"].to_numpy()
    base = Rule(seen.table()[ALPHA_UF].baseline, "random order")
    panels = []
    parts = [("whole run", len(steps))] + ([("early", EARLY)] if len(steps) > EARLY + 1 else [])
    for title, count in parts:
        marks: list[Mark] = []
        for label, values, color in (
            ("accuracy", accuracy, RED),
            ("A(α(step), β^uf)", agreed, BLUE),
        ):
            marks += _curves(steps[:count], values[:, :count], label, color)
        panels.append(Panel(title, "step", "%", (*marks, base)))
    also = " and its first checkpoints" if len(panels) > 1 else ""
    course = seen.uniform_course
    others = normal["to_first"].to_numpy()[1:]
    frozen = _of(seen, "frozen")["to_first"].to_numpy()[0]
    compared: list[Mark] = [
        *_curves(steps, others, "v: attention of other normal runs", GREEN),
        Line(steps, course, "v: β^uf at this step", YELLOW),
        Line(steps, frozen, "v: attention, all else frozen", PURPLE),
        base,
    ]
    panels.append(Panel("A(α, v(step))", "step", "%", tuple(compared)))
    return Figure(
        "over-steps",
        "Attention comes to look where knowledge without attention is",
        f"A(α(step), β^uf) and validation accuracy of the {len(agreed)} normal runs on one axis, "
        f"mean and range over runs, for the whole run{also}; β^uf is that of the uniform run where "
        "it agrees best with α. Right: how well α of run A agrees with the attention of the other "
        "normal runs, with β^uf, and with attention trained while all else is frozen, at every "
        "step (A.6, A.7, Fig 2).",
        tuple(panels),
    )


def _on_the_way(seen: Evidence, case: str, name: str) -> np.ndarray:
    """Return each run's curve as shares of its way, ``(run, step)``; 0 where it never rises."""
    curves = _of(seen, case)[name].to_numpy()
    shares = [risen(curve) for curve in curves]
    return np.stack([np.zeros(curves.shape[1]) if s is None else s for s in shares])


def lag(seen: Evidence) -> Figure:
    """Draw knowledge and concentration on their way, and when each is half way."""
    steps = seen.runs.steps
    marks: list[Mark] = []
    for name, label, color in (
        ("knowledge", "knowledge, max β", BLUE),
        ("concentration", "attention, 1 - H(α)/log L", RED),
    ):
        marks += _curves(steps, _on_the_way(seen, "normal", name), label, color)
        still = _on_the_way(seen, "frozen", name)[0]
        marks.append(Line(steps, still, f"{label.split(',')[0]}, frozen run", color, thin=True))
    marks.append(Rule(0.5, "half way"))
    known, focused = seen.halves("normal")
    points: list[Mark] = []
    groups = ((known, BLUE), (focused, RED), (focused - known, GREEN))
    for at, (values, color) in enumerate(groups):
        beside = np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else np.zeros(1)
        points.append(Dots(at + beside, values, color=color))
    means, low, high = np.array([mean_interval(values) for values, _ in groups]).T
    points.append(Dots(np.arange(3) + 0.3, means, low, high, "mean, 95 % interval", PURPLE))
    ticks = ((0.0, "knowledge"), (1.0, "attention"), (2.0, "lag"))
    return Figure(
        "lag",
        "Knowledge first, attention second",
        "Left: the mean over rows of max_l β and of 1 - H(α)/log L over steps, each from its value "
        f"at step 0 to its maximum, mean and range over {len(known)} normal runs; thin: the "
        "run in which all but attention is frozen, where knowledge stays. Right: the steps where "
        "either is half way in every normal run, and the lag between them, with means and 95 % "
        f"intervals; the mean lag is {means[2]:.0f} steps.",
        (
            Panel("on the way", "step", "share of the way", tuple(marks)),
            Panel("half way", "", "step", (*points, Rule(0.0)), xticks=ticks),
        ),
        columns=2,
    )


def sentence(study: Agreement, seen: Evidence) -> Figure:
    """Draw the most attended positions of one text over training."""
    course = course_of(seen.tree, study.sentence)
    last = course.values["alpha"][-1]
    labelled = seen.tree["data"].attrs["kind"] == "labelled"
    # The places that most attention goes to at the end: of a pair, one for each target word.
    best = last[0] if labelled else last.max(axis=1)
    chosen = np.sort(np.argsort(-best, kind="stable")[:PLACES])
    rows, positions = (
        (np.zeros_like(chosen), chosen) if labelled else (chosen, last[chosen].argmax(1))
    )
    panels = []
    for name, (symbol, words) in QUANTITIES.items():
        marks: list[Mark] = []
        for color, (row, position) in enumerate(zip(rows, positions, strict=True)):
            word = course.source[position]
            label = f"{position} {word}" if labelled else f"{row} {course.target[row]} from {word}"
            marks.append(Line(course.steps, course.values[name][:, row, position], label, color))
        panels.append(Panel(f"{symbol}: {words}", "step", symbol, tuple(marks)))
    what = (
        f"positions of validation text {study.sentence}, of class '{course.target[0]}',"
        if labelled
        else f"pairs of a target word and its most attended source word of pair {study.sentence}"
    )
    return Figure(
        "text",
        "One text, position by position",
        f"The {len(chosen)} {what} that run A attends to most at the end, over steps: attention α "
        "and lexical probe β of run A, lexical probe β^uf of the uniform run. The attention map "
        "shows all positions.",
        tuple(panels),
    )


def _of(seen: Evidence, case: str) -> xr.Dataset:
    return seen.curves.isel(run=np.flatnonzero(seen.curves["case"].to_numpy() == case))


def _curves(x: NDArray[np.float64], values: np.ndarray, label: str, color: int) -> list[Mark]:
    """Return the mean over runs, and their range if there are some."""
    line = Line(x, values.mean(axis=0), label, color)
    band = Band(x, values.min(axis=0), values.max(axis=0), color=color)
    return [line] if len(values) < 2 else [band, line]


def _grouped(groups: list[tuple[str, int, list[float]]]) -> tuple[Mark, ...]:
    """Return bars side by side, a group at every whole number."""
    width = 0.8 / len(groups)
    marks: list[Mark] = []
    for number, (label, color, values) in enumerate(groups):
        left = np.arange(len(values)) - 0.4 + number * width
        edges = np.stack([left, left + width], axis=1).ravel()
        heights = np.full(len(edges) - 1, np.nan)
        heights[::2] = values
        marks.append(Histogram(edges, heights, label=label, color=color))
    return tuple(marks)
