"""The figures of ``lu2021.sst``: Figs 4 to 7 of the paper, and accuracy over training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, band
from attnscope.studies.lu2021.sst import words
from attnscope.studies.lu2021.sst.tables import PAPER
from attnscope.trajectory import Readings
from attnscope.trajectory.readings import record_dim

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst.study import Sst

ATTENDED = {
    "purity": ("mean topic purity", "mean topic purity"),
    "occurrences": ("mean occurrence", "mean occurrence (sentences)"),
}
"""What is drawn of attended words, as the name of a panel and of its axis."""


def figures(study: Sst, run: Readings) -> list[Figure]:
    """Draw Figs 4 to 7."""
    return [
        sen_curves(run),
        accuracy(study, run),
        competition(study, run),
        around_top(run),
        everywhere(study, run),
        who_deviates(run),
    ]


def sen_curves(run: Readings) -> Figure:
    """Draw Fig 4: norm against score of the top words, with theory."""
    panels = []
    for case in run.cases:
        own = run.of(case)
        for word in words.top_words(own, 2).isel(seed=0, drop=True):
            score, norm, closed, integral = (
                reading.isel(seed=0, word=word).astype(float)
                for reading in (own.score, own.norm, own.theory.norm, own.theory.score)
            )
            label = "at the score of Lemma 2, own averages"
            marks = (
                Line(score.to_numpy(), norm.to_numpy(), "measured", 0),
                Line(integral.to_numpy(), words.at_probes(own, norm).to_numpy(), label, 1),
                Line(score.to_numpy(), closed.to_numpy(), "Corollary 1, own m", theory=True),
            )
            name = words.names(own).isel(word=word).item()
            panels.append(Panel(f"{case}: {name}", "score", "embedding norm", marks))
    return Figure(
        "fig4-sen",
        "Score and norm of the leading words",
        "The two words of the largest final score of each model, seed 0, from the start of "
        "training to the least dev loss. Corollary 1 takes m from the mean length of the word's "
        "sentences (Lu 2021, Fig 4). The other curve is the measured norm at the score that eq (8) "
        "integrates to, with the averages over the word's own sentences at every moment.",
        tuple(panels),
        columns=2,
    )


def accuracy(study: Sst, run: Readings) -> Figure:
    """Draw loss and accuracy over epochs, with the paper's accuracies."""
    panels = []
    for case in run.cases:
        own = run.of(case)
        marks = [
            *_band(own.test_accuracy * 100, "test", 0),
            *_band(own.dev_accuracy * 100, "dev", 1),
        ]
        if study.data in PAPER:
            marks.append(Rule(100 * PAPER[study.data][case.split(",")[0]], "paper, test"))
        best = float(words.end(own, "best_epoch").mean())
        marks.append(Rule(max(best, 1.0), "least dev loss", vertical=True))
        panels.append(Panel(case, "epoch", "accuracy (%)", tuple(marks), xscale="log"))
    return Figure(
        "accuracy",
        "Accuracy over training",
        f"Share of sentences classified rightly, mean of {study.seeds} seeds with 95 % bands; runs "
        "end when the dev loss has not fallen for the variant's patience. Horizontal: the paper's "
        "test accuracy. Vertical: where the dev loss is least.",
        tuple(panels),
        columns=2,
    )


def competition(study: Sst, run: Readings) -> Figure:
    """Draw Fig 5: the pure and the frequent word over training."""
    at = words.rivals(run)
    names = [str(name) for name in words.names(run).isel(word=at).to_numpy()]
    counts = run.data.occurrences.isel(vocab=run.data.pair_number).to_numpy()
    labels = [f"{name}, {count} sentences" for name, count in zip(names, counts, strict=True)]
    panels = []
    for case in run.cases:
        own = run.of(case)
        for title, ylabel, reading in (
            ("score", "score", own.score.isel(word=at)),
            ("embedding norm", "embedding norm", own.norm.isel(word=at)),
            ("in one sentence", "attention weight", own.pair_attention),
        ):
            if not np.isfinite(reading).any():
                continue
            both = (_band(reading.isel(pair=i), label, i) for i, label in enumerate(labels))
            marks = tuple(mark for each in both for mark in each)
            panels.append(Panel(f"{case}: {title}", "epoch", ylabel, marks))
    return Figure(
        "fig5-competition",
        f"{names[0]} against {names[1]}",
        f"The rare, pure word '{names[0]}' and the frequent, impure '{names[1]}': scores, norms, "
        "and their attention in the first training sentence that holds both (if there is one). "
        f"Mean of {study.seeds} seeds with 95 % bands (Lu 2021, Fig 5).",
        tuple(panels),
    )


def around_top(run: Readings) -> Figure:
    """Draw Fig 6: purity and occurrence of what is attended to around the top words."""
    panels = []
    for case in run.cases:
        own = run.of(case)
        top = words.top_words(own, 5)
        names = words.names(own).isel(word=top.isel(seed=0, drop=True)).to_numpy()
        for name, (label, ylabel) in ATTENDED.items():
            curves = words.attended(own, name, top).isel(seed=0).transpose("rank", "probe")
            epochs = curves["epoch_probe"].to_numpy()
            marks = tuple(
                Line(epochs, curve, str(names[rank]), rank)
                for rank, curve in enumerate(curves.to_numpy())
            )
            panels.append(Panel(f"{case}: {label}", "epoch", ylabel, marks, xscale="log"))
    return Figure(
        "fig6-around",
        "What is attended to around the leading words",
        "Mean purity and number of occurrences of the word of the largest score, over the training "
        "sentences that hold each of the five leading words; seed 0 (Lu 2021, Fig 6).",
        tuple(panels),
        columns=2,
    )


def everywhere(study: Sst, run: Readings) -> Figure:
    """Draw Fig 7: the same over all sentences."""
    panels = []
    for name, (label, ylabel) in ATTENDED.items():
        marks: list[Mark] = []
        for color, case in enumerate(run.cases):
            marks += _band(words.attended(run.of(case), name), case, color)
        panels.append(Panel(label, "epoch", ylabel, tuple(marks), xscale="log"))
    return Figure(
        "fig7-everywhere",
        "Attention moves from frequent words to pure ones",
        "Mean topic purity and occurrence of the attended word over all training sentences, mean "
        f"of {study.seeds} seeds with 95 % bands (Lu 2021, Fig 7).",
        tuple(panels),
        columns=2,
    )


def who_deviates(run: Readings) -> Figure:
    """Draw every word's distance from Theorem 1 against its purity, by occurrence."""
    purity, count = (each[:-1].to_numpy() for each in (run.data.purity, run.data.occurrences))
    edges = np.linspace(0, 1, 11)
    panels = []
    for case in run.cases:
        gap = words.vocabulary_gap(run.of(case)).mean("seed").to_numpy()[:-1]
        marks: list[Mark] = []
        for color, (low, high, label) in enumerate(
            ((2, 4, "in 2 to 4 sentences"), (5, 19, "5 to 19"), (20, 10**9, "20 or more"))
        ):
            chosen = (count >= low) & (count <= high) & np.isfinite(gap)
            place = np.clip(np.digitize(purity[chosen], edges) - 1, 0, 9)
            rows = [gap[chosen][place == k] for k in range(10)]
            kept = [k for k, row in enumerate(rows) if len(row) >= 5]
            if not kept:
                continue
            low_, middle, high_ = np.array([np.percentile(rows[k], (25, 50, 75)) for k in kept]).T
            x = (edges[kept] + edges[np.array(kept) + 1]) / 2 + 0.012 * (color - 1)
            marks.append(Dots(x, middle, low_, high_, label, color))
        panels.append(Panel(case, "topic purity", "distance from Theorem 1", tuple(marks)))
    return Figure(
        "who-deviates",
        "Which words leave the curve",
        "|ΔL - ΔR| / (|ΔL| + |ΔR|) of the two sides of eq (9) at the end of training: 0 if they "
        "grew alike, 1 if one grew and the other fell. Medians and quartiles over the words in "
        "each tenth of purity, mean over seeds.",
        tuple(panels),
        columns=2,
    )


def _band(reading: xr.DataArray, label: str, color: int) -> list[Mark]:
    """Return mean and band as far as every seed goes."""
    known = reading.astype(float).dropna(record_dim(reading))
    return band(known, label, color, x="epoch")
