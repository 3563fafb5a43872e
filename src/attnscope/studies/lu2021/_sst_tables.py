"""The tables of ``lu2021.sst``: accuracies, leading words, what predicts a deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import average, largest, mean_interval
from attnscope.probes.predictors import FOLDS, Fit, fit
from attnscope.report.page import Table
from attnscope.studies.lu2021 import _sst_words as words

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst import Sst

PAPER = {"sst2": {"FC": 0.7668, "TC": 0.7959}, "sst5": {"FC": 0.3849, "TC": 0.4053}}
"""Test accuracies of section 5.2."""
MODEL_EPOCHS = {
    "FC": (15_000, 25_000, "about 20,000 epochs"),
    "TC": (10_000, 15_000, "about 12,500 epochs"),
}
"""Where the horizontal axes of Figs 5 and 7 end."""


def tables(study: Sst, tree: xr.DataTree) -> list[Table]:
    """Return all tables."""
    return [
        accuracies(study, tree),
        *([axes_end(study, tree)] if study.data == "sst2" else []),
        shares(study, tree),
        leaders(study, tree),
        rivals(study, tree),
        predictors(study, tree),
        data(tree),
    ]


def statistics(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return what the data alone say of each word, before any training."""
    group = tree["data"].to_dataset()
    with np.errstate(divide="ignore"):
        occurrence = np.log(group["occurrences"].to_numpy().astype(float))
    return {
        "log occurrence": np.where(np.isfinite(occurrence), occurrence, np.nan),
        "topic purity": group["purity"].to_numpy(),
        "share of its sentences with a purer word": group["purer_company"].to_numpy(),
        "m, words around it": group["m"].to_numpy(),
    }


def vocabulary_gap(tree: xr.DataTree, case: str) -> np.ndarray:
    """Distance of every word from Theorem 1 at the end, from 0 to 1; ``(seed, vocab)``.

    With ΔL and ΔR the growth of the two sides of eq (9), |ΔL - ΔR| / (|ΔL| + |ΔR|): 0 if they grew
    alike, 1 if one went up and the other down. It needs no threshold for words that hardly moved.
    """
    sides = words.values(tree, "identity_all", case)[..., :2]
    growth = sides[:, 1] - sides[:, 0]
    with np.errstate(invalid="ignore"):
        gap = np.abs(growth[..., 0] - growth[..., 1]) / np.abs(growth).sum(axis=-1)
    return np.asarray(gap)


def accuracies(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate the end of training beside the paper's."""
    rows = []
    for case in study.cases():
        model = case.split(",")[0]
        accuracy = words.final(tree, "end_test_accuracy", case)
        mean, low, high = (float(x) for x in mean_interval(accuracy))
        rows.append(
            (
                case,
                round(100 * mean, 2),
                f"{100 * low:.2f} to {100 * high:.2f}",
                100 * PAPER[study.data][model] if study.data in PAPER else None,
                round(float(words.final(tree, "best_epoch", case).mean())),
                float(words.final(tree, "end_dev_loss", case).mean()),
                round(100 * float(words.final(tree, "end_dev_accuracy", case).mean()), 2),
                float(np.nanmax(words.final(tree, "score_all", case), axis=1).mean()),
                float(words.values(tree, "evaluations", case, "stats").mean()),
            )
        )
    columns = (
        "case",
        "test accuracy (%)",
        "95 % interval of the mean",
        "paper (%)",
        "epoch of the best dev loss",
        "dev loss (nats)",
        "dev accuracy (%)",
        "largest score",
        "gradients computed",
    )
    return Table(
        "accuracy", f"At the best dev loss, mean of {study.seeds} seeds", columns, tuple(rows)
    )


def axes_end(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate the reading nearest to where the axes of Figs 5 and 7 end, and each seed's end."""
    epochs = tree["observables/epoch"].to_numpy()
    names = tree["data/words"].to_numpy()[tree["data/word_number"].to_numpy()]
    rows = []
    for case in study.cases():
        shown = {"FC": 20_000, "TC": 12_500}[case.split(",")[0]]
        accuracy = words.values(tree, "test_accuracy", case)
        reached = np.isfinite(accuracy[0])
        at = int(np.argmin(np.where(reached, np.abs(epochs - shown), np.inf)))
        score = words.values(tree, "score", case)[0, at]
        rows.append(
            (
                case,
                shown,
                int(epochs[at]),
                round(100 * float(accuracy[0, at]), 2),
                float(score.max()),
                ", ".join(names[np.argsort(-score, kind="stable")[:5]]),
                ", ".join(f"{epoch:,.0f}" for epoch in words.final(tree, "best_epoch", case)),
                ", ".join(f"{100 * a:.2f}" for a in words.final(tree, "end_test_accuracy", case)),
            )
        )
    columns = (
        "case",
        "axis ends (epochs)",
        "nearest reading",
        "test accuracy there (%)",
        "largest score there",
        "leading words there",
        "best epoch of each seed",
        "test accuracy of each seed (%)",
    )
    return Table("axes", "Where Figs 5 and 7 end (seed 0), and every seed", columns, tuple(rows))


def data(tree: xr.DataTree) -> Table:
    """Tabulate the sentences, with what was left out."""
    group = tree["data"].to_dataset()
    rows = tuple(
        (split, int(group["sentences"][i]), int(group["wordless"][i]), int(group["unseen"][i]))
        for i, split in enumerate(("train", "dev", "test"))
    )
    columns = ("split", "sentences", "left out: no word", "without any training word")
    return Table("data", f"The sentences of {group.attrs['set']}", columns, rows)


def leaders(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate the words of the largest final scores, seed 0."""
    group = tree["data"].to_dataset()
    rows: list[tuple[str | int | float, ...]] = []
    for case in study.cases():
        top = words.top_words(tree, case, 10)[:1]
        numbers = group["word_number"].to_numpy()[top[0]]
        off = words.theorem1_deviation(tree, case, top)[0]
        scores = words.final(tree, "score_all", case)[0]
        norms = words.final(tree, "norm_all", case)[0]
        for rank, number in enumerate(numbers):
            column = off[:, rank]
            rows.append(
                (
                    case,
                    str(group["words"].to_numpy()[number]),
                    float(scores[number]),
                    float(norms[number]),
                    int(group["occurrences"][number]),
                    float(group["purity"][number]),
                    round(100 * float(np.nanmax(column)), 1),
                )
            )
    columns = ("case", "word", "score", "norm", "sentences", "purity", "off Theorem 1 at most (%)")
    return Table("words", "The words of the largest final scores, seed 0", columns, tuple(rows))


def shares(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate how many of the top words are how near to theory."""
    rows: list[tuple[str | float, ...]] = []
    for case in study.cases():
        top = words.top_words(tree, case, study.top)
        for law, deviation in (
            ("Theorem 1, own averages", words.theorem1_deviation(tree, case, top)),
            ("Corollary 1, own m", words.corollary1_deviation(tree, case, top)),
            ("Lemma 2, eq (8), at every moment", words.lemma2_deviation(tree, case, top)),
            ("Lemma 2 integrated along the run", words.integral_deviation(tree, case, top)),
        ):
            mean = average(deviation, axis=(1,))
            worst = largest(deviation, axis=(1,))
            cells = [
                round(100 * float((kind < bound).mean()))
                for kind in (worst, mean)
                for bound in (0.1, 0.2, 0.3)
            ]
            rows.append((case, law, *cells))
    columns = (
        "case",
        "theory",
        *(
            f"{kind} off by less than {b} %"
            for kind in ("at most", "on average")
            for b in (10, 20, 30)
        ),
    )
    title = f"Share of the top {study.top} words near their curve (%), while grown, all seeds"
    return Table("shares", title, columns, tuple(rows))


def rivals(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate the two words of Fig 5, seed 0."""
    group = tree["data"].to_dataset()
    followed = group["word_number"].to_numpy()
    rows: list[tuple[str | int | float, ...]] = []
    for case in study.cases():
        for number in group["pair_number"].to_numpy():
            at = int(np.flatnonzero(followed == number)[0])
            score = words.values(tree, "score", case)[0, :, at]
            epochs = tree["observables/epoch"].to_numpy()
            rows.append(
                (
                    case,
                    str(group["words"].to_numpy()[number]),
                    int(group["occurrences"][number]),
                    " / ".join(str(int(n)) for n in group["by_class"][number]),
                    float(group["purity"][number]),
                    float(np.nanmax(score)),
                    float(epochs[np.nanargmax(score)]),
                    float(words.final(tree, "score_all", case)[0, number]),
                    float(words.final(tree, "norm_all", case)[0, number]),
                    float(words.score_lag(tree, case, np.array([[at]] * study.seeds))[0, 0]),
                )
            )
    columns = (
        "case",
        "word",
        "sentences",
        "by class",
        "purity",
        "largest score",
        "at epoch",
        "final score",
        "final norm",
        "score of eq (10) over final score, less one",
    )
    return Table("rivals", "Two words that compete, seed 0", columns, tuple(rows))


BANDS = ((1, 10**9), (1, 1), (2, 4), (5, 19), (20, 10**9))
"""All words, and words by the number of their sentences."""


def predictors(study: Sst, tree: xr.DataTree) -> Table:
    """Tabulate which statistics of the data go with a word's distance from Theorem 1."""
    known, occurrences = statistics(tree), tree["data/occurrences"].to_numpy()
    rows: list[tuple[str | int | float, ...]] = []
    for case in study.cases():
        gaps = vocabulary_gap(tree, case)
        for low, high in BANDS:
            chosen = (occurrences >= low) & (occurrences <= high)
            if np.isfinite(gaps[0, chosen]).sum() < 2 * FOLDS:
                continue
            table = {name: column[chosen] for name, column in known.items()}
            fits = [fit(gap[chosen], table) for gap in gaps]
            rows += _fit_rows(case, _band(low, high), fits)
    columns = (
        "case",
        "words in how many sentences",
        "statistic of the data",
        "standardised coefficient",
        "95 % interval over seeds",
        "rank correlation alone",
        "share explained that it adds",
        "share explained by all",
        "words",
    )
    title = "What predicts a word's distance from Theorem 1, over the whole vocabulary"
    return Table("predictors", title, columns, tuple(rows))


def _fit_rows(case: str, band: str, fits: list[Fit]) -> list[tuple[str | int | float, ...]]:
    rows: list[tuple[str | int | float, ...]] = []
    for i, name in enumerate(fits[0].names):
        mean, low, high = mean_interval(np.array([f.coefficients[i] for f in fits]))
        rows.append(
            (
                case,
                band,
                name,
                float(mean),
                f"{float(low):.3f} to {float(high):.3f}",
                float(np.mean([f.alone[i] for f in fits])),
                float(np.mean([f.adds[i] for f in fits])),
                float(np.mean([f.explained for f in fits])),
                fits[0].count,
            )
        )
    return rows


def _band(low: int, high: int) -> str:
    if high >= 10**9:
        return "any" if low == 1 else f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"
