"""The figures of ``lu2021.sen``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import histogram_interval, mean_interval
from attnscope.report.figure import Band, Figure, Histogram, Line, Mark, Panel
from attnscope.studies.lu2021._topic_words import select
from attnscope.theory import lu2021

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sen import Sen

MODELS = ("FC", "TC", "TL")


def figures(study: Sen, tree: xr.DataTree) -> list[Figure]:
    """Return theory over the runs, Fig 1's histograms, and the same over training time."""
    return [sen_curves(study, tree), histograms(study, tree), over_time(study, tree)]


def sen_curves(study: Sen, tree: xr.DataTree) -> Figure:
    """Draw Fig 2: one topic word's norm against its score, all seeds, and Corollary 1."""
    panels = []
    reach = max(float(select(tree, "score", case).max()) for case in MODELS)
    grid = np.linspace(0, reach * 1.05, 200)
    for case in MODELS:
        score = select(tree, "score", case).isel(word=0).to_numpy()
        norm = select(tree, "norm", case).isel(word=0).to_numpy()
        seeds = select(tree, "score", case)["seed"].to_numpy()
        lines = [
            Line(score[i], norm[i], f"seed {seed}", color=i, thin=True)
            for i, seed in enumerate(seeds)
        ]
        theory = Line(grid, lu2021.norm_from_score(grid, study.m), "Corollary 1", theory=True)
        panels.append(
            Panel(
                f"Attn-{case}",
                "score of a topic word",
                "norm of its embedding",
                (*lines, theory),
            )
        )
    return Figure(
        "fig2-sen",
        "Score and embedding norm grow along one curve",
        f"A topic word's embedding norm against its score over {study.epochs:,} epochs, for three "
        f"classifiers and {study.seeds} seeds, and √(2(s + (exp(s) - 1)/m)) with m = {study.m}, "
        "which knows nothing of the classifier (Lu 2021, Corollary 1 and Fig 2).",
        tuple(panels),
    )


def histograms(study: Sen, tree: xr.DataTree) -> Figure:
    """Draw Fig 1: where scores and norms of both kinds of words lie after training."""
    words = study.task().topic_words
    panels = []
    for name, what in (("score_all", "score"), ("norm_all", "embedding norm")):
        for topic, kind in ((False, "non-topic words"), (True, "topic words")):
            per_case = {}
            for case in MODELS:
                values = select(tree, name, case).isel(snapshot=-1).to_numpy()
                per_case[case] = values[:, :words] if topic else values[:, words:]
            low = min(values.min() for values in per_case.values())
            high = max(values.max() for values in per_case.values())
            edges = np.linspace(low, high, 31)
            bars = []
            for i, (case, values) in enumerate(per_case.items()):
                mean, lower, upper = histogram_interval(values, edges)
                bars.append(Histogram(edges, mean, lower, upper, f"Attn-{case}", i))
            panels.append(Panel(f"{what}, {kind}", what, "share of words", tuple(bars)))
    return Figure(
        "fig1-histograms",
        "Non-topic words hardly move",
        f"Scores and embedding norms after {study.epochs:,} epochs: mean over {study.seeds} seeds "
        "with 95 % intervals. Mind the different horizontal axes: non-topic words stay near zero "
        "(Lu 2021, Assumption 1 and Fig 1).",
        tuple(panels),
        columns=2,
    )


def over_time(study: Sen, tree: xr.DataTree) -> Figure:
    """Draw scores, norms and loss over epochs, with what theory says of each."""
    epochs = tree["observables/epoch"].to_numpy()
    score_marks: list[Mark] = []
    norm_marks: list[Mark] = []
    loss_marks: list[Mark] = []
    for i, case in enumerate(MODELS):
        score = select(tree, "score", case).mean("word").to_numpy()
        mean, low, high = mean_interval(score)
        score_marks += [
            Band(epochs, low, high, color=i),
            Line(epochs, mean, f"Attn-{case}", i),
        ]
        if case != "TL":
            lemma = select(tree, "score_lemma2", case, "theory").isel(run=0).mean("word")
            score_marks.append(Line(epochs, lemma.to_numpy(), "Lemma 2, seed 0", theory=True))
        mean, low, high = mean_interval(select(tree, "loss", case).to_numpy())
        loss_marks += [
            Band(epochs, low, high, color=i),
            Line(epochs, mean, f"Attn-{case}", i),
        ]
    words = study.task().topic_words
    late = epochs[1:] * study.lr
    loss_marks.append(
        Line(
            epochs[1:],
            words * (study.topics - 1) / (study.topics * late),
            f"late law of Attn-FC, {words * (study.topics - 1) / study.topics:g}/time",
            theory=True,
        )
    )
    ahead = select(tree, "norm_ahead", "FC", "theory").mean("word").to_numpy()
    for i, case in enumerate(MODELS):
        mean, low, high = mean_interval(select(tree, "norm", case).mean("word").to_numpy())
        norm_marks += [Band(epochs, low, high, color=i), Line(epochs, mean, f"Attn-{case}", i)]
    norm_marks.append(
        Line(epochs, ahead.mean(axis=0), "Attn-FC, predicted before training", theory=True)
    )
    return Figure(
        "over-time",
        "The same runs over training time",
        f"Mean over topic words and {study.seeds} seeds with 95 % bands. Dashed: Lemma 2 "
        "integrated on its own (left), the closed solution for a fixed orthonormal U from the "
        "data alone (middle), and its late law (right).",
        (
            Panel("score", "epoch", "mean topic score", tuple(score_marks)),
            Panel("embedding norm", "epoch", "mean topic norm", tuple(norm_marks)),
            Panel(
                "training loss",
                "epoch",
                "cross-entropy (nats)",
                tuple(loss_marks),
                xscale="log",
                yscale="log",
            ),
        ),
    )
