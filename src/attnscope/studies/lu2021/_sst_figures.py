"""The figures of ``lu2021.sst``: Figs 4 to 7 of the paper, and accuracy over training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import average, mean_interval
from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule
from attnscope.studies.lu2021 import _sst_words as words
from attnscope.studies.lu2021._sst_tables import PAPER, vocabulary_gap

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst import Sst


def figures(study: Sst, tree: xr.DataTree) -> list[Figure]:
    """Return all figures."""
    return [
        sen_curves(study, tree),
        accuracy(study, tree),
        competition(study, tree),
        around_top(study, tree),
        everywhere(study, tree),
        who_deviates(study, tree),
    ]


def sen_curves(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw Fig 4: norm against score of the top words, with theory."""
    names = tree["data/words"].to_numpy()[tree["data/word_number"].to_numpy()]
    panels = []
    for case in study.cases():
        top = words.top_words(tree, case, 2)[0]
        for word in top:
            score = words.values(tree, "score", case)[0, :, word]
            norm = words.values(tree, "norm", case)[0, :, word]
            closed = words.values(tree, "norm", case, "theory")[0, :, word]
            at_probe = np.interp(_clock(tree, "_probe"), _clock(tree), norm)
            integral = words.values(tree, "score", case, "theory")[0, :, word]
            panels.append(
                Panel(
                    f"{case}: {names[word]}",
                    "score",
                    "embedding norm",
                    (
                        Line(score, norm, "measured", 0),
                        Line(integral, at_probe, "at the score of Lemma 2, own averages", 1),
                        Line(score, closed, "Corollary 1, own m", theory=True),
                    ),
                )
            )
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


def accuracy(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw loss and accuracy over epochs, with the paper's accuracies."""
    panels = []
    for case in study.cases():
        model = case.split(",")[0]
        marks: list[Mark] = [
            *_band(tree, words.values(tree, "test_accuracy", case) * 100, "test", 0),
            *_band(tree, words.values(tree, "dev_accuracy", case) * 100, "dev", 1),
        ]
        if study.data in PAPER:
            marks.append(Rule(100 * PAPER[study.data][model], "paper, test"))
        best = float(words.final(tree, "best_epoch", case).mean())
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


def competition(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw Fig 5: the pure and the frequent word over training."""
    followed = tree["data/word_number"].to_numpy()
    numbers = tree["data/pair_number"].to_numpy()
    at = [int(np.flatnonzero(followed == number)[0]) for number in numbers]
    names = [str(tree["data/words"].to_numpy()[number]) for number in numbers]
    counts = [int(tree["data/occurrences"].to_numpy()[number]) for number in numbers]
    labels = [f"{name}, {count} sentences" for name, count in zip(names, counts, strict=True)]
    panels = []
    for case in study.cases():
        for name, what in (("score", "score"), ("norm", "embedding norm")):
            marks: list[Mark] = []
            for color, (word, label) in enumerate(zip(at, labels, strict=True)):
                marks += _band(tree, words.values(tree, name, case)[:, :, word], label, color)
            panels.append(Panel(f"{case}: {what}", "epoch", what, tuple(marks)))
        weights = words.values(tree, "pair_attention", case)
        marks = []
        if np.isfinite(weights).any():
            for color, label in enumerate(labels):
                marks += _band(tree, weights[:, :, color], label, color)
            panels.append(
                Panel(f"{case}: in one sentence", "epoch", "attention weight", tuple(marks))
            )
    return Figure(
        "fig5-competition",
        f"{names[0]} against {names[1]}",
        f"The rare, pure word '{names[0]}' and the frequent, impure '{names[1]}': scores, norms, "
        "and their attention in the first training sentence that holds both (if there is one). "
        f"Mean of {study.seeds} seeds with 95 % bands (Lu 2021, Fig 5).",
        tuple(panels),
    )


def around_top(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw Fig 6: purity and occurrence of what is attended to around the top words."""
    names = tree["data/words"].to_numpy()[tree["data/word_number"].to_numpy()]
    panels = []
    for case in study.cases():
        top = words.top_words(tree, case, 5)
        for name, label in (("purity", "mean topic purity"), ("occurrences", "mean occurrence")):
            curves = words.purity_around(tree, case, top, name)[0]
            marks = tuple(
                Line(_epochs(tree, "_probe"), curves[:, rank], str(names[word]), rank)
                for rank, word in enumerate(top[0])
            )
            unit = " (sentences)" if name == "occurrences" else ""
            panels.append(Panel(f"{case}: {label}", "epoch", label + unit, marks, xscale="log"))
    return Figure(
        "fig6-around",
        "What is attended to around the leading words",
        "Mean purity and number of occurrences of the word of the largest score, over the training "
        "sentences that hold each of the five leading words; seed 0 (Lu 2021, Fig 6).",
        tuple(panels),
        columns=2,
    )


def everywhere(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw Fig 7: the same over all sentences."""
    none = np.empty((0, 0), dtype=int)
    panels = []
    for name, label in (("purity", "mean topic purity"), ("occurrences", "mean occurrence")):
        marks: list[Mark] = []
        for color, case in enumerate(study.cases()):
            values = words.purity_around(tree, case, none, name)[:, :, 0]
            marks += _band(tree, values, case, color, "_probe")
        unit = " (sentences)" if name == "occurrences" else ""
        panels.append(Panel(label, "epoch", label + unit, tuple(marks), xscale="log"))
    return Figure(
        "fig7-everywhere",
        "Attention moves from frequent words to pure ones",
        "Mean topic purity and occurrence of the attended word over all training sentences, mean "
        f"of {study.seeds} seeds with 95 % bands (Lu 2021, Fig 7).",
        tuple(panels),
        columns=2,
    )


def who_deviates(study: Sst, tree: xr.DataTree) -> Figure:
    """Draw every word's distance from Theorem 1 against its purity, by occurrence."""
    group = tree["data"].to_dataset()
    purity, count = group["purity"].to_numpy(), group["occurrences"].to_numpy()
    edges = np.linspace(0, 1, 11)
    panels = []
    for case in study.cases():
        gap = average(vocabulary_gap(tree, case)[:, :-1], axis=(0,))
        marks: list[Mark] = []
        for color, (low, high, label) in enumerate(
            ((2, 4, "in 2 to 4 sentences"), (5, 19, "5 to 19"), (20, 10**9, "20 or more"))
        ):
            chosen = (count[:-1] >= low) & (count[:-1] <= high) & np.isfinite(gap)
            place = np.clip(np.digitize(purity[:-1][chosen], edges) - 1, 0, 9)
            rows = [gap[chosen][place == k] for k in range(10)]
            kept = [k for k, row in enumerate(rows) if len(row) >= 5]
            if not kept:
                continue
            quartiles = np.array([np.percentile(rows[k], (25, 50, 75)) for k in kept])
            x = (edges[kept] + edges[np.array(kept) + 1]) / 2 + 0.012 * (color - 1)
            marks.append(Dots(x, quartiles[:, 1], quartiles[:, 0], quartiles[:, 2], label, color))
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


def _clock(tree: xr.DataTree, suffix: str = "") -> np.ndarray:
    return np.asarray(tree[f"observables/time{suffix}"].to_numpy())


def _epochs(tree: xr.DataTree, suffix: str = "") -> np.ndarray:
    return np.asarray(tree[f"observables/epoch{suffix}"].to_numpy())


def _band(
    tree: xr.DataTree, values: np.ndarray, label: str, color: int, suffix: str = ""
) -> list[Mark]:
    """Return mean and band as far as every seed goes."""
    known = np.isfinite(values).all(axis=0)
    epochs = _epochs(tree, suffix)[known]
    mean, low, high = mean_interval(values[:, known])
    return [Band(epochs, low, high, color=color), Line(epochs, mean, label, color)]
