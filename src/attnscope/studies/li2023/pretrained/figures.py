"""Ratios beside the published ones, heads, distances, depths, and ratios over training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.bootstrap import Estimate
from attnscope.probes.topics.topic_pairs import DISTANCES
from attnscope.report import Band, Dots, Figure, Heat, Line, Mark, Panel, Rule
from attnscope.studies.li2023.pretrained import paper
from attnscope.studies.li2023.pretrained.measured import (
    DIFFERENT,
    SAME,
    Measured,
    facts,
    measured,
)
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.li2023.pretrained.study import Pretrained

CAPTION = (
    "Intervals are over bootstrap samples of the documents, 95 % for all thresholds together; "
    "those of a random twin are over weights as well, which are new for every batch."
)
RATIO = "same topic over different topics"
SHORT = "same over different topics"


def figures(study: Pretrained, run: Readings) -> list[Figure]:
    """Draw ratios, heads, distances, depths and training."""
    shown = [one for one in measured(run) if one.seed == 0]
    last = [one for one in shown if one.case.role != "earlier"]
    runs = {one.case.model for one in shown if one.case.role == "earlier"}
    return [
        _ratios(last, facts(run)["corpus"]),
        _heads(last),
        _distances(last),
        _depths(last),
        *(_training([one for one in shown if one.case.model == each]) for each in sorted(runs)),
    ]


def _ends(found: Iterable[Estimate]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values and both ends of several estimates."""
    value, low, high = np.array([(each.value, each.low, each.high) for each in found], float).T
    return value, low, high


def _curve(x: np.ndarray, found: Iterable[Estimate], label: str, color: int) -> list[Mark]:
    value, low, high = _ends(found)
    return [Band(x, low, high, "", color), Line(x, value, label, color)]


def _ratios(shown: list[Measured], corpus: str) -> Figure:
    panels = []
    for overlap in (False, True):
        labels = shown[0].thresholds(overlap)
        x = np.arange(len(labels), dtype=float)
        marks: list[Mark] = [Rule(1.0, "no topics")]
        bert = paper.published(overlap)["Bert"]
        if labels.keys() <= bert.keys():
            y = np.array([bert[threshold][2] for threshold in labels])
            marks.append(Line(x, y, "Bert, published", theory=True))
        for color, one in enumerate(shown):
            shift = 0.12 * (color - (len(shown) - 1) / 2)
            ends = _ends(one.ratio(label) for label in labels.values())
            marks.append(Dots(x + shift, *ends, one.case.name, color))
        panels.append(
            Panel(
                "topics can overlap" if overlap else "topics do not overlap",
                "share of the vocabulary kept for each topic",
                f"attention, {SHORT}",
                tuple(marks),
                xticks=tuple((float(n), f"{t:g}") for n, t in enumerate(labels)),
            )
        )
    return Figure(
        "ratios",
        "Attention between words of one topic and of two",
        f"Mean attention weight, times visible positions over 100, {RATIO}, all layers and heads. "
        f"Corpus: {corpus}. Dashed: Bert in the paper's Tables 1 and 5, on another corpus. "
        f"{CAPTION}",
        tuple(panels),
        columns=2,
    )


def _heads(shown: list[Measured]) -> Figure:
    threshold, label = shown[0].middle
    found = [np.log2(one.head_ratio(label).value) for one in shown]
    # One scale for all, so that a twin's noise looks as small as it is.
    reach = max(float(np.nanmax(np.abs(values))) for values in found)
    panels = []
    for one, values in zip(shown, found, strict=True):
        layers, heads = values.shape
        heat = Heat(
            np.arange(heads + 1) - 0.5,
            np.arange(layers + 1) - 0.5,
            values,
            f"log₂ of {SHORT}",
            diverging=True,
            reach=reach,
        )
        ticks = tuple((float(n), str(n)) for n in range(0, heads, max(1, heads // 6)))
        panels.append(Panel(one.case.name, "head", "layer", (heat,), xticks=ticks))
    return Figure(
        "heads",
        "Which heads attend by topic",
        f"Log₂ of mean attention, {RATIO}, for every head; 0 without topics, 1 for twice as much. "
        f"Threshold {threshold:g}, topics do not overlap. All panels have the same colours: a "
        "random twin is pale.",
        tuple(panels),
        columns=2,
    )


def _distances(shown: list[Measured]) -> Figure:
    threshold, label = shown[0].middle
    begins = np.array(DISTANCES, dtype=float)
    middles = np.sqrt(begins * np.append(begins[1:] - 1, 256))
    panels = []
    for one in shown:
        profile = one.profile(label)
        lines = (
            Line(middles, profile.sel(topic_kind=kind).to_numpy(), kind, color)
            for color, kind in enumerate((SAME, DIFFERENT))
        )
        panels.append(
            Panel(
                one.case.name,
                "distance between the words (pieces)",
                "attention × visible positions / 100",
                (*lines, Rule(0.01, "uniform attention")),
                xscale="log",
            )
        )
    return Figure(
        "distance",
        "Attention by distance",
        "Mean attention between words with a topic by how far they stand apart, in bins from 1 to "
        f"2 pieces to 129 and more. Threshold {threshold:g}, topics do not overlap. Words of one "
        "topic stand nearer to each other on the average; what the ratio is at equal distance "
        "stands in the table of controls.",
        tuple(panels),
        columns=2,
    )


def _depths(shown: list[Measured]) -> Figure:
    threshold, label = shown[0].middle
    marks: list[Mark] = [Rule(0.0, "no topics")]
    for color, one in enumerate(shown):
        found = [one.vector_gap(label, depth=depth) for depth in range(one.depths)]
        marks += _curve(np.arange(one.depths, dtype=float), found, one.case.name, color)
    panel = Panel(
        f"threshold {threshold:g}, no overlap",
        "depth (0: embedding of the pieces; 1: what enters the first layer)",
        "mean cosine, same topic minus different topics",
        tuple(marks),
    )
    return Figure(
        "depths",
        "Vectors of words of one topic are more alike",
        "Mean cosine between vectors of words of one topic minus that of words of two, at every "
        f"depth: embeddings, then hidden states. {CAPTION}",
        (panel,),
        columns=1,
    )


def _training(shown: list[Measured]) -> Figure:
    """Draw the checkpoints of one run, and its twin."""
    steps = sorted((one for one in shown if one.case.step >= 0), key=lambda one: one.case.step)
    run = steps[0].case.model
    # A logarithmic axis has no zero; the first checkpoint stands left of the second.
    x = np.array([float(one.case.step) for one in steps])
    if x[0] == 0:
        x[0] = x[1] / 2 if len(x) > 1 else 1.0
    ticks = tuple((place, str(one.case.step)) for place, one in zip(x, steps, strict=True))
    panels = []
    for title, ylabel, none, reading in (
        ("attention", RATIO, 1.0, Measured.ratio),
        ("embeddings", "mean cosine, same minus different topics", 0.0, Measured.vector_gap),
    ):
        marks: list[Mark] = [Rule(none, "no topics")]
        for color, (threshold, label) in enumerate(steps[0].thresholds().items()):
            marks += _curve(x, (reading(one, label) for one in steps), f"{threshold:g}", color)
        for twin in (one for one in shown if one.case.role == "twin"):
            ends = _ends([reading(twin, twin.middle[1])])
            marks.append(Dots(x[:1] / 2, *ends, "random twin", 3))
        panels.append(
            Panel(title, "steps of training", ylabel, tuple(marks), xscale="log", xticks=ticks)
        )
    return Figure(
        f"training-{_plain(run)}",
        f"Topics over training: {run}",
        "Ratio of attention, and difference of mean cosines of embeddings, for every checkpoint of "
        "one run and each threshold; topics do not overlap. The first checkpoint is that of step "
        f"{steps[0].case.step}. {CAPTION}",
        tuple(panels),
        columns=2,
    )


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name).strip("-") or "run"
