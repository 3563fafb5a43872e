"""Ratios beside the published ones, heads, distances, depths, and ratios over training."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.probes.topic_pairs import DIFFERENT, DISTANCES, SAME
from attnscope.report.figure import Band, Dots, Figure, Heat, Line, Mark, Panel, Rule
from attnscope.studies.li2023 import _pretrained_paper as paper
from attnscope.studies.li2023._pretrained_means import Readings, facts, labels_of, readings

CAPTION = (
    "Intervals are over documents drawn again, 95 % for all thresholds together; those of a random "
    "twin are over weights as well, which are new for every batch."
)
RATIO = "same topic over different topics"
SHORT = "same over different topics"


def figures(tree: xr.DataTree) -> list[Figure]:
    """Return all figures."""
    shown = [one for one in readings(tree) if one.seed == 0]
    last = [one for one in shown if one.case.role != "earlier"]
    found = [_ratios(tree, last), _heads(tree, last), _confounds(tree, last), _depths(tree, last)]
    runs = {one.case.model for one in shown if one.case.role == "earlier"}
    return found + [_training(tree, shown, run) for run in sorted(runs)]


def _ratios(tree: xr.DataTree, shown: list[Readings]) -> Figure:
    panels = []
    for overlap in (False, True):
        labels = labels_of(tree, overlap)
        x = np.arange(len(labels), dtype=float)
        marks: list[Mark] = [Rule(1.0, "no topics")]
        for name, known in paper.published(overlap).items():
            y = np.array([known[t][2] if t in known else np.nan for t in labels])
            if name == "Bert" and not np.isnan(y).any():
                marks.append(Line(x, y, "Bert, published", theory=True))
        for color, one in enumerate(shown):
            every = [one.ratio(number) for number in labels.values()]
            shift = 0.12 * (color - (len(shown) - 1) / 2)
            value, low, high = (
                np.array([float(getattr(each, end)) for each in every])
                for end in ("value", "low", "high")
            )
            marks.append(Dots(x + shift, value, low, high, one.case.name, color))
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
        f"Corpus: {facts(tree)['corpus']}. Dashed: Bert in the paper's Tables 1 and 5, on another "
        f"corpus. {CAPTION}",
        tuple(panels),
        columns=2,
    )


def _heads(tree: xr.DataTree, shown: list[Readings]) -> Figure:
    threshold, label = _middle(tree)
    panels = []
    found = []
    for one in shown:
        layers, heads = one.shape
        found.append(np.log2(one.head_ratio(label).value[:layers, :heads]))
    # One scale for all, so that a twin's noise looks as small as it is.
    reach = max(float(np.nanmax(np.abs(values))) for values in found)
    for one, values in zip(shown, found, strict=True):
        layers, heads = one.shape
        panels.append(
            Panel(
                one.case.name,
                "head",
                "layer",
                (
                    Heat(
                        np.arange(heads + 1) - 0.5,
                        np.arange(layers + 1) - 0.5,
                        values,
                        f"log₂ of {SHORT}",
                        diverging=True,
                        reach=reach,
                    ),
                ),
                xticks=tuple((float(n), str(n)) for n in range(0, heads, max(1, heads // 6))),
            )
        )
    return Figure(
        "heads",
        "Which heads attend by topic",
        f"Log₂ of mean attention, {RATIO}, for every head; 0 without topics, 1 for twice as much. "
        f"Threshold {threshold:g}, topics do not overlap. All panels have the same colours: a "
        "random twin is pale.",
        tuple(panels),
        columns=2,
    )


def _confounds(tree: xr.DataTree, shown: list[Readings]) -> Figure:
    threshold, label = _middle(tree)
    middles = np.sqrt(
        np.array(DISTANCES, dtype=float) * np.append(np.array(DISTANCES[1:]) - 1, 256)
    )
    panels = []
    for one in shown:
        profile = one.profile(label)
        marks: list[Mark] = [
            Line(middles, profile[SAME], "same topic", 0),
            Line(middles, profile[DIFFERENT], "different topics", 1),
            Rule(0.01, "uniform attention"),
        ]
        panels.append(
            Panel(
                one.case.name,
                "distance between the words (pieces)",
                "attention × visible positions / 100",
                tuple(marks),
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


def _depths(tree: xr.DataTree, shown: list[Readings]) -> Figure:
    threshold, label = _middle(tree)
    marks: list[Mark] = [Rule(0.0, "no topics")]
    for color, one in enumerate(shown):
        every = [one.vector_gap(label, depth=depth) for depth in range(one.depths)]
        value, low, high = (
            np.array([float(getattr(each, end)) for each in every])
            for end in ("value", "low", "high")
        )
        x = np.arange(one.depths, dtype=float)
        marks += [Band(x, low, high, "", color), Line(x, value, one.case.name, color)]
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


def _training(tree: xr.DataTree, shown: list[Readings], run: str) -> Figure:
    steps = sorted(
        (one for one in shown if one.case.model == run and one.case.step >= 0),
        key=lambda one: one.case.step,
    )
    twin = [one for one in shown if one.case.model == run and one.case.role == "twin"]
    # A logarithmic axis has no zero; the first checkpoint stands left of the second.
    x = np.array([float(one.case.step) for one in steps])
    if x[0] == 0:
        x[0] = x[1] / 2 if len(x) > 1 else 1.0
    ratio: list[Mark] = [Rule(1.0, "no topics")]
    gap: list[Mark] = [Rule(0.0, "no topics")]
    for color, (threshold, label) in enumerate(labels_of(tree).items()):
        for marks, every in (
            (ratio, [one.ratio(label) for one in steps]),
            (gap, [one.vector_gap(label) for one in steps]),
        ):
            value, low, high = (
                np.array([float(getattr(each, end)) for each in every])
                for end in ("value", "low", "high")
            )
            marks += [Band(x, low, high, "", color), Line(x, value, f"{threshold:g}", color)]
    if twin:
        label = _middle(tree)[1]
        at = np.array([x[0] / 2])
        for marks, one in ((ratio, twin[0].ratio(label)), (gap, twin[0].vector_gap(label))):
            value, low, high = (np.array([float(end)]) for end in (one.value, one.low, one.high))
            marks.append(Dots(at, value, low, high, "random twin", 3))
    ticks = tuple((place, str(one.case.step)) for place, one in zip(x, steps, strict=True))
    label_x = "steps of training"
    return Figure(
        f"training-{_plain(run)}",
        f"Topics over training: {run}",
        "Ratio of attention, and difference of mean cosines of embeddings, for every checkpoint of "
        "one run and each threshold; topics do not overlap. The first checkpoint is that of step "
        f"{steps[0].case.step}. {CAPTION}",
        (
            Panel("attention", label_x, RATIO, tuple(ratio), xscale="log", xticks=ticks),
            Panel(
                "embeddings",
                label_x,
                "mean cosine, same minus different topics",
                tuple(gap),
                xscale="log",
                xticks=ticks,
            ),
        ),
        columns=2,
    )


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name).strip("-") or "run"


def _middle(tree: xr.DataTree) -> tuple[float, int]:
    known = sorted(labels_of(tree).items())
    return known[len(known) // 2]
