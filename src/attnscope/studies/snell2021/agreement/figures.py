"""The figures of the agreement study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report import Band, Dots, Figure, Histogram, Line, Mark, Panel, Rule
from attnscope.studies.snell2021.agreement.evidence import Evidence, evidence, risen
from attnscope.studies.snell2021.agreement.maps import QUANTITIES, course_of
from attnscope.studies.snell2021.agreement.paper import FOUR, NAMES, published
from attnscope.studies.snell2021.agreement.predictions import PERMUTATIONS
from attnscope.theory.snell2021.before_training import COUNTED, COUNTS, EM, IBM
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement.study import Agreement

BLUE, RED, GREEN, PURPLE, YELLOW = 0, 1, 2, 3, 4
PLACES = 5
"""Positions of the text that are drawn."""
EARLY = 7
"""Checkpoints of the second panel: up to step 250 of classification."""


def figures_of(study: Agreement, run: Readings) -> list[Figure]:
    """Return the table as bars, agreement over training, the lag, and one text."""
    seen = evidence(run)
    return [bars(study, seen), over_steps(seen), lag(seen), sentence(study, seen)]


def bars(study: Agreement, seen: Evidence) -> Figure:
    """Draw the row of the table beside the paper's, and predictions before training."""
    found, paper = seen.table(), published(study.data)
    rows = [("here", BLUE, [found[name].value for name in FOUR])]
    if paper is not None:
        rows.append(("paper", RED, [paper.agreement[name] for name in FOUR]))
    rows.append(("random order", YELLOW, [found[name].baseline for name in FOUR]))
    before = {
        "counts": seen.prediction(COUNTS),
        "IBM 1": seen.prediction(IBM),
        "IBM 1, EM": seen.prediction(EM),
        "proxy": seen.beta_px,
    }
    chance = [float(seen.permuted(name).mean()) for name in COUNTED]
    known = [
        ("here", BLUE, [seen.agree(seen.alpha, v) for v in before.values()]),
        ("random pairs", GREEN, chance + [np.nan] * (len(before) - len(chance))),
        ("random order", YELLOW, [seen.chance] * len(before)),
    ]
    beside = f" beside the paper's (Table {paper.table}, {paper.task})" if paper else ""
    return Figure(
        "agreement",
        "Where models look is where knowledge is, also that of others",
        f"Left: agreement A(u, v), the share of rows in which the largest position of u is among "
        f"the top 5 % of v, on validation data{beside}, and for v in random order. Right: the same "
        "for u = α and a v that is known before training, from the training data alone: the count "
        "table, IBM Model 1 after one iteration and after EM, the bag-of-words proxy. "
        "As a control, the first two from training pairs put together at "
        f"random, mean over {PERMUTATIONS} ways.",
        (
            _grouped("agreement", "agreement (%)", rows, [f"A{NAMES[name]}" for name in FOUR]),
            _grouped("before training", "A(α, v) (%)", known, list(before)),
        ),
        columns=2,
    )


def over_steps(seen: Evidence) -> Figure:
    """Draw agreement with β^uf and accuracy on one axis, whole and early, and A.7."""
    steps, normal = seen.steps, seen.curves.sel(run=seen.normal)
    base = Rule(seen.table()["alpha_uf"].baseline, "random order")
    panels = []
    parts = [("whole run", len(steps))] + ([("early", EARLY)] if len(steps) > EARLY + 1 else [])
    for title, count in parts:
        shown = normal.isel(step=slice(count))
        marks = _mean_and_range(100 * shown["accuracy"], "accuracy", RED)
        marks += _mean_and_range(shown["to_uniform"], "A(α(step), β^uf)", BLUE)
        panels.append(Panel(title, "step", "%", (*marks, base)))
    others = normal["to_first"].isel(run=slice(1, None))
    compared = (
        *_mean_and_range(others, "v: attention of other normal runs", GREEN),
        Line(steps, seen.uniform_course, "v: β^uf at this step", YELLOW),
        *_mean_and_range(
            seen.curves["to_first"].sel(run=["frozen"]), "v: attention, all else frozen", PURPLE
        ),
        base,
    )
    also = " and its first checkpoints" if len(panels) > 1 else ""
    return Figure(
        "over-steps",
        "Attention comes to look where knowledge without attention is",
        f"A(α(step), β^uf) and validation accuracy of the {len(seen.normal)} normal runs on one "
        f"axis, mean and range over runs, for the whole run{also}; β^uf is that of the uniform run "
        "where it agrees best with α. Right: how well α of run A agrees with the attention of the "
        "other normal runs, with β^uf, and with attention trained while all else is frozen, at "
        "every step (A.6, A.7, Fig 2).",
        (*panels, Panel("A(α, v(step))", "step", "%", compared)),
    )


def lag(seen: Evidence) -> Figure:
    """Draw knowledge and concentration on their way, and when each is half way."""
    marks: list[Mark] = []
    for name, label, color in (
        ("knowledge", "knowledge, max β", BLUE),
        ("concentration", "attention, 1 - H(α)/log L", RED),
    ):
        share = risen(seen.curves[name])
        marks += _mean_and_range(share.sel(run=seen.normal), label, color)
        still = share.sel(run="frozen").to_numpy()
        label = f"{label.split(',')[0]}, frozen run"
        marks.append(Line(seen.steps, still, label, color, thin=True))
    known, focused = (half.to_numpy() for half in seen.halves(*seen.normal))
    groups = ((known, BLUE), (focused, RED), (focused - known, GREEN))
    beside = np.linspace(-0.15, 0.15, len(known)) if len(known) > 1 else np.zeros(1)
    points: list[Mark] = [
        Dots(at + beside, values, color=color) for at, (values, color) in enumerate(groups)
    ]
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
            Panel("on the way", "step", "share of the way", (*marks, Rule(0.5, "half way"))),
            Panel("half way", "", "step", (*points, Rule(0.0)), xticks=ticks),
        ),
        columns=2,
    )


def sentence(study: Agreement, seen: Evidence) -> Figure:
    """Draw the most attended positions of one text over training."""
    course, labelled = course_of(seen.run, study.sentence), seen.kind == "labelled"
    last = course.values["alpha"][-1]
    # The places that most attention goes to at the end: of a pair, one for each target word.
    best = last[0] if labelled else last.max(axis=1)
    chosen = np.sort(np.argsort(-best, kind="stable")[:PLACES])
    rows, positions = (0 * chosen, chosen) if labelled else (chosen, last[chosen].argmax(1))
    panels = []
    for name, (symbol, words) in QUANTITIES.items():
        marks = []
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


def _mean_and_range(curves: xr.DataArray, label: str, color: int) -> list[Mark]:
    """Return the mean over runs, and their range if there are some: two have no interval."""
    steps, values = curves["step"].to_numpy(), curves.to_numpy()
    line = Line(steps, values.mean(axis=0), label, color)
    band = Band(steps, values.min(axis=0), values.max(axis=0), color=color)
    return [line] if len(values) < 2 else [band, line]


def _grouped(
    title: str, ylabel: str, groups: list[tuple[str, int, list[float]]], names: list[str]
) -> Panel:
    """Return bars side by side, a group at every whole number."""
    width = 0.8 / len(groups)
    marks = []
    for number, (label, color, values) in enumerate(groups):
        left = np.arange(len(values)) - 0.4 + number * width
        edges = np.stack([left, left + width], axis=1).ravel()
        heights = np.full(len(edges) - 1, np.nan)
        heights[::2] = values
        marks.append(Histogram(edges, heights, label=label, color=color))
    ticks = tuple((float(at), name) for at, name in enumerate(names))
    return Panel(title, "", ylabel, tuple(marks), xticks=ticks)
