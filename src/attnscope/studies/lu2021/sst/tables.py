"""The tables of ``lu2021.sst``: accuracies, leading words, what predicts a deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.probes.lexicon.predictors import FOLDS, fit
from attnscope.report import Cell, Table
from attnscope.studies.lu2021.sst import words
from attnscope.theory import lu2021
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst.study import Sst

PAPER = {"sst2": {"FC": 0.7668, "TC": 0.7959}, "sst5": {"FC": 0.3849, "TC": 0.4053}}
"""Test accuracies of section 5.2."""
AXES_END = {"FC": 20_000, "TC": 12_500}
"""Epoch at which the axes of Figs 5 and 7 end."""
Row = dict[str, Cell]
"""The cells of a row by their columns."""


def tables(study: Sst, run: Readings) -> list[Table]:
    """Tabulate accuracies, words and the fit over the vocabulary."""
    return [
        accuracies(study, run),
        *([axes_end(run)] if study.data == "sst2" else []),
        shares(study, run),
        leaders(run),
        rivals(run),
        predictors(run),
        data(run),
    ]


def accuracies(study: Sst, run: Readings) -> Table:
    """Tabulate the end of training beside the paper's."""
    rows: list[Row] = []
    for case, own in _cases(run):
        paper = PAPER.get(study.data)
        accuracy = words.end(own, "end_test_accuracy").to_numpy()
        mean, low, high = (100 * float(each) for each in mean_interval(accuracy))
        rows.append(
            {
                "case": case,
                "test accuracy (%)": round(mean, 2),
                "95 % interval of the mean": _interval(low, high, 2),
                "paper (%)": 100 * paper[case.split(",")[0]] if paper else None,
                "epoch of the best dev loss": round(_mean(own, "best_epoch")),
                "dev loss (nats)": _mean(own, "end_dev_loss"),
                "dev accuracy (%)": round(100 * _mean(own, "end_dev_accuracy"), 2),
                "largest score": float(words.end(own, "score_all").max("vocab").mean()),
                "gradients computed": float(own.stats.evaluations.mean()),
            }
        )
    return _table("accuracy", f"At the best dev loss, mean of {study.seeds} seeds", rows)


def axes_end(run: Readings) -> Table:
    """Tabulate the reading nearest to where the axes of Figs 5 and 7 end, and each seed's end."""
    rows: list[Row] = []
    for case, own in _cases(run):
        shown = AXES_END[case.split(",")[0]]
        accuracy = own.test_accuracy.isel(seed=0, drop=True).dropna("step")
        there = accuracy.isel(step=abs(accuracy["epoch"] - shown).argmin("step"))
        score = own.score.sel(step=there["step"])
        top = words.names(own).isel(word=words.leading(score, 5).isel(seed=0))
        rows.append(
            {
                "case": case,
                "axis ends (epochs)": shown,
                "nearest reading": int(there["epoch"]),
                "test accuracy there (%)": round(100 * float(there), 2),
                "largest score there": float(score.isel(seed=0).max()),
                "leading words there": ", ".join(top.to_numpy()),
                "best epoch of each seed": ", ".join(
                    f"{epoch:,.0f}" for epoch in words.end(own, "best_epoch").to_numpy()
                ),
                "test accuracy of each seed (%)": ", ".join(
                    f"{100 * share:.2f}" for share in words.end(own, "end_test_accuracy").to_numpy()
                ),
            }
        )
    return _table("axes", "Where Figs 5 and 7 end (seed 0), and every seed", rows)


def shares(study: Sst, run: Readings) -> Table:
    """Tabulate how many of the top words are how near to theory."""
    rows: list[Row] = []
    for case, own in _cases(run):
        top = words.top_words(own, study.top)
        for law in words.LAWS.values():
            off = words.off(own, law, top)
            time = words.times(off)
            near = {
                f"{kind} off by less than {bound} %": round(100 * float((x < bound / 100).mean()))
                for kind, x in (("at most", off.max(time)), ("on average", off.mean(time)))
                for bound in (10, 20, 30)
            }
            rows.append({"case": case, "theory": law.label, **near})
    title = f"Share of the top {study.top} words near their curve (%), while grown, all seeds"
    return _table("shares", title, rows)


def leaders(run: Readings) -> Table:
    """Tabulate the words of the largest final scores, seed 0."""
    rows: list[Row] = []
    for case, own in _cases(run):
        top = words.top_words(own, 10)
        off = words.off(own, words.LAWS["theorem1"], top).max("probe").isel(seed=0)
        for worst, number in zip(
            off, own.data.word_number.isel(word=top.isel(seed=0, drop=True)), strict=True
        ):
            rows.append(
                {
                    "case": case,
                    "word": _of(own, "words", number),
                    "score": float(words.end(own, "score_all")[0, number]),
                    "norm": float(words.end(own, "norm_all")[0, number]),
                    "sentences": _of(own, "occurrences", number),
                    "purity": _of(own, "purity", number),
                    "off Theorem 1 at most (%)": round(100 * float(worst), 1),
                }
            )
    return _table("words", "The words of the largest final scores, seed 0", rows)


def rivals(run: Readings) -> Table:
    """Tabulate the two words of Fig 5, seed 0."""
    rows: list[Row] = []
    for case, own in _cases(run):
        for at, number in zip(words.rivals(run), run.data.pair_number, strict=True):
            score = own.score.isel(seed=0, word=at)
            highest = score.isel(step=score.argmax("step"))
            score_end = float(words.end(own, "score_all")[0, number])
            norm_end = float(words.end(own, "norm_all")[0, number])
            expected = float(lu2021.score_from_norm(norm_end, own.data.m[number].to_numpy()))
            rows.append(
                {
                    "case": case,
                    "word": _of(own, "words", number),
                    "sentences": _of(own, "occurrences", number),
                    "by class": " / ".join(str(int(n)) for n in own.data.by_class[number]),
                    "purity": _of(own, "purity", number),
                    "largest score": float(highest),
                    "at epoch": float(highest["epoch"]),
                    "final score": score_end,
                    "final norm": norm_end,
                    "score of eq (10) over final score, less one": expected / score_end - 1,
                }
            )
    return _table("rivals", "Two words that compete, seed 0", rows)


BANDS = {
    "any": (1, 10**9),
    "1": (1, 1),
    "2 to 4": (2, 4),
    "5 to 19": (5, 19),
    "20 or more": (20, 10**9),
}
"""All words, and words by the number of their sentences."""


def predictors(run: Readings) -> Table:
    """Tabulate which statistics of the data go with a word's distance from Theorem 1."""
    known, occurrences = words.statistics(run), run.data.occurrences.to_numpy()
    rows: list[Row] = []
    for case, own in _cases(run):
        gaps = words.vocabulary_gap(own).to_numpy()
        for label, (low, high) in BANDS.items():
            chosen = (occurrences >= low) & (occurrences <= high)
            if np.isfinite(gaps[0, chosen]).sum() < 2 * FOLDS:
                continue
            table = {name: column[chosen] for name, column in known.items()}
            fits = [fit(gap[chosen], table) for gap in gaps]
            for i, name in enumerate(table):
                mean, least, most = mean_interval(np.array([f.coefficients[i] for f in fits]))
                rows.append(
                    {
                        "case": case,
                        "words in how many sentences": label,
                        "statistic of the data": name,
                        "standardised coefficient": float(mean),
                        "95 % interval over seeds": _interval(float(least), float(most), 3),
                        "rank correlation alone": float(np.mean([f.alone[i] for f in fits])),
                        "share explained that it adds": float(np.mean([f.adds[i] for f in fits])),
                        "share explained by all": float(np.mean([f.explained for f in fits])),
                        "words": fits[0].count,
                    }
                )
    title = "What predicts a word's distance from Theorem 1, over the whole vocabulary"
    return _table("predictors", title, rows)


def lone_words(study: Sst) -> str:
    """Say which part of the words of the training sentences stands in one of them."""
    if study.data in PAPER:  # Known, so that claims are listed without the data.
        return "Half"
    occurrences = study.text().train.occurrences.numpy()
    return f"{(occurrences == 1).sum() / (occurrences > 0).sum():.0%}"


def _interval(low: float, high: float, digits: int) -> str | None:
    """Write an interval; with one seed there is none."""
    return None if np.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"


def data(run: Readings) -> Table:
    """Tabulate the sentences, with what was left out."""
    rows: list[Row] = [
        {
            "split": str(split),
            "sentences": int(run.data.sentences.sel(split=split)),
            "left out: no word": int(run.data.wordless.sel(split=split)),
            "without any training word": int(run.data.unseen.sel(split=split)),
        }
        for split in run.data.sentences["split"].to_numpy()
    ]
    return _table("data", f"The sentences of {run['data'].attrs['set']}", rows)


def _cases(run: Readings) -> list[tuple[str, Readings]]:
    return [(case, run.of(case)) for case in run.cases]


def _mean(run: Readings, name: str) -> float:
    return float(words.end(run, name).mean())


def _of(run: Readings, name: str, number: int) -> Cell:
    """Return what the data say of one word."""
    cell: Cell = run.data.get(name)[number].item()
    return cell


def _table(key: str, title: str, rows: list[Row]) -> Table:
    return Table(key, title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
