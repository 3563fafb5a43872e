"""The figures of ``lu2021.sen``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import histogram_interval, mean_interval, relative_deviation
from attnscope.report.figure import Band, Figure, Histogram, Line, Mark, Panel
from attnscope.studies.lu2021._sen_claims import GROWN
from attnscope.studies.readings import select
from attnscope.theory import lu2021

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sen import Sen

MODELS = ("FC", "TC", "TL")


def figures(study: Sen, tree: xr.DataTree) -> list[Figure]:
    """Return theory over the runs, Fig 1's histograms, and the same over training time."""
    return [sen_curves(study, tree), histograms(study, tree), over_time(study, tree)]


def sen_curves(study: Sen, tree: xr.DataTree) -> Figure:
    """Draw Fig 2: one topic word's norm against its score, all seeds, and Corollary 1."""
    curves, gaps = [], []
    reach = max(float(select(tree, "score", case).max()) for case in MODELS)
    grid = np.linspace(0, reach * 1.05, 200)
    theory = Line(grid, lu2021.norm_from_score(grid, study.m), "Corollary 1", theory=True)
    for case in MODELS:
        score = select(tree, "score", case).isel(word=0).to_numpy()
        norm = select(tree, "norm", case).isel(word=0).to_numpy()
        predicted = lu2021.norm_from_score(score, study.m)
        gap = 100 * relative_deviation(norm, predicted, GROWN) * np.sign(norm - predicted)
        label, xlabel = [f"seed {i}" for i in range(len(score))], "score of a topic word"
        lines = [Line(score[i], norm[i], label[i], i) for i in range(len(score))]
        curves.append(Panel(f"Attn-{case}", xlabel, "norm of its embedding", (*lines, theory)))
        lines = [Line(score[i], gap[i], label[i], i) for i in range(len(score))]
        zero = Line(grid[[0, -1]], np.zeros(2), "Corollary 1", theory=True)
        gaps.append(Panel(f"Attn-{case}, magnified", xlabel, "off Corollary 1 (%)", (*lines, zero)))
    return Figure(
        "fig2-sen",
        "Score and embedding norm grow along one curve",
        f"A topic word's embedding norm against its score over {study.epochs:,} epochs, for three "
        f"classifiers and {study.seeds} seeds, and √(2(s + (exp(s) - 1)/m)) with m = {study.m}, "
        "which knows nothing of the classifier (Lu 2021, Corollary 1 and Fig 2). Below, the "
        f"distance to the curve while the norm is above {GROWN}.",
        (*curves, *gaps),
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
    """Draw score, norm and loss over epochs, with what theory says of each."""
    epochs = tree["observables/epoch"].to_numpy()
    ahead = "Attn-FC, known before training"
    lemma = select(tree, "score_lemma2", "TC", "theory").isel(run=0).mean("word").to_numpy()
    norm = select(tree, "norm_ahead", "FC", "theory").mean(("word", "run")).to_numpy()
    loss = select(tree, "loss_ahead", "FC", "theory").mean("run").to_numpy()
    score = lu2021.score_from_norm(norm, study.m)
    panels = (
        Panel(
            "score",
            "epoch",
            "mean topic score",
            (
                *_bands(tree, "score"),
                Line(epochs, score, ahead, theory=True),
                Line(epochs, lemma, "Attn-TC, Lemma 2, seed 0", theory=True),
            ),
        ),
        Panel(
            "embedding norm",
            "epoch",
            "mean topic norm",
            (*_bands(tree, "norm"), Line(epochs, norm, ahead, theory=True)),
        ),
        Panel(
            "training loss",
            "epoch",
            "cross-entropy (nats)",
            (*_bands(tree, "loss", log=True), Line(epochs, loss, ahead, theory=True)),
            yscale="log",
        ),
    )
    return Figure(
        "over-time",
        "The same runs over training time",
        f"Mean over topic words and {study.seeds} seeds with 95 % bands. Dashed: for Attn-FC the "
        "closed solution from m, J and word counts alone, computed before any training; for "
        "Attn-TC Lemma 2 integrated on its own from the initial state of seed 0.",
        panels,
    )


def _bands(tree: xr.DataTree, name: str, log: bool = False) -> list[Mark]:
    """Return mean and band of each model; on a logarithmic axis the mean of the logarithm."""
    epochs = tree["observables/epoch"].to_numpy()
    marks: list[Mark] = []
    for i, case in enumerate(MODELS):
        data = select(tree, name, case)
        values = data.mean("word").to_numpy() if "word" in data.dims else data.to_numpy()
        mean, low, high = mean_interval(np.log(values) if log else values)
        if log:
            mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
        marks += [Band(epochs, low, high, color=i), Line(epochs, mean, f"Attn-{case}", i)]
    return marks
