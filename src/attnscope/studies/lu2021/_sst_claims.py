"""The claims of ``lu2021.sst``: section 5.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below, within
from attnscope.probes import rank_correlation
from attnscope.probes.predictors import fit
from attnscope.studies.lu2021 import _sst_words as words
from attnscope.studies.lu2021._sst_tables import MODEL_EPOCHS, PAPER, statistics, vocabulary_gap

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst import Sst

WITHIN = 0.10
"""The stated distance: ten percent of the norm."""
SCORES = {"FC": (2.0, 6.0), "TC": (0.3, 1.2)}
"""Where the largest scores of Fig 4 lie: 3 to 4 for Attn-FC, 0.6 to 0.8 for Attn-TC."""

FREQUENT = 20
"""Words in so many sentences have a purity that is more than chance."""
REASONS = {
    "FC, paper": "With an orthonormal U and a learning rate of 0.1 Attn-FC needs ten times the "
    "epochs on the paper's axes. There it reaches the paper's accuracy, scores and top words; at "
    "20,000 epochs it is far from all three.",
    "TC, released": "The padding, most of every sentence, first learns the class balance of the "
    "training set, which the dev set does not share: the dev loss rises, and patience runs out.",
}

Statistic = Callable[[xr.DataTree], np.ndarray]


def claims(study: Sst) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    out: list[Claim] = []
    for variant in study.variants():
        for model in ("FC", "TC"):
            case = f"{model}, {variant}"
            out.append(_accuracy(study, model, variant))
            if study.data in PAPER:
                out += [_score_range(model, variant), _stopping(model, variant)]
            out += [_fig4(study, case, law) for law in ("theorem1", "corollary1", "lemma2")]
            out.append(_early(study, case))
            out += [_purer(case), _rarer(case), _top_purity(case), _top_above_all(case)]
            if study.data == "sst2":
                out += [_frequent_first(case), _frequent_drops(case)]
            out += [_predicted(case, 1), _predicted(case, FREQUENT)]
    return tuple(out)


def _named(case: str) -> str:
    model, _, variant = case.partition(", ")
    return f"Attn-{model}" + (", as released" if variant == "released" else "")


def _key(what: str, case: str) -> str:
    model, _, variant = case.partition(", ")
    return f"{what}-{model}" + ("-released" if variant == "released" else "")


def _accuracy(study: Sst, model: str, variant: str) -> Claim:
    case = f"{model}, {variant}"

    def read(index: int) -> Statistic:
        return lambda tree: words.values(tree, "end_test_accuracy", case)[:, index]

    known = PAPER.get(study.data)
    paper = known[model] if known else 0.0
    reason = {
        "paper": "",
        "released": "The released U is 14 times longer than the paper's and the padding is a word "
        "of its own; that is another model.",
    }[variant]
    return Claim(
        key=_key("accuracy", case),
        sentence=f"{_named(case)} reaches the paper's test accuracy, to two points."
        if known
        else f"{_named(case)} does better on test sentences than the most frequent class.",
        source="section 5.2",
        paper=f"{paper:.2%}" if known else "",
        statistic=read(1),
        criterion=within(paper - 0.02, paper + 0.02) if known else above(_majority(study)),
        control_sentence="the same model before training",
        control=read(0),
        each=False,
        reason=reason,
        measure="share of test sentences, at the best dev loss",
    )


def _majority(study: Sst) -> float:
    labels = study.text().test.labels.numpy()
    return float(np.bincount(labels).max() / len(labels))


def _score_range(model: str, variant: str) -> Claim:
    case = f"{model}, {variant}"

    def read(index: int) -> Statistic:
        return lambda tree: words.values(tree, "score_all", case)[:, index].max(axis=1)

    return Claim(
        key=_key("scores", case),
        sentence=f"{_named(case)} ends with largest scores as Fig 4 shows them.",
        source="Figs 4 and 5",
        paper="3 to 4" if model == "FC" else "0.6 to 0.8",
        statistic=read(1),
        criterion=within(*SCORES[model]),
        control_sentence="before training",
        control=read(0),
        reason="A longer U lets small scores and embeddings do what large ones must do otherwise.",
        measure="largest score of all words at the best dev loss",
    )


def _stopping(model: str, variant: str) -> Claim:
    case = f"{model}, {variant}"

    def half_way(tree: xr.DataTree) -> np.ndarray:
        epochs, out = tree["observables/epoch"].to_numpy(), []
        for curve in words.values(tree, "dev_loss", case):
            known = np.isfinite(curve)
            middle = (curve[0] + curve[known].min()) / 2
            out.append(epochs[known][np.argmax(curve[known] <= middle)])
        return np.array(out)

    low, high, shown = MODEL_EPOCHS[model]
    return Claim(
        key=_key("epochs", case),
        sentence=f"{_named(case)} is best on the dev set where the figures end.",
        source="Figs 5 and 7",
        paper=shown,
        statistic=lambda tree: words.final(tree, "best_epoch", case),
        criterion=within(low, high),
        control_sentence="where the dev loss has come half its way",
        control=half_way,
        reason=REASONS.get(case, ""),
        measure="epoch of the least dev loss",
    )


def _fig4(study: Sst, case: str, theory: str) -> Claim:
    deviation = {
        "theorem1": words.theorem1_deviation,
        "corollary1": words.corollary1_deviation,
        "lemma2": words.lemma2_deviation,
    }[theory]

    def share(wrong: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            top = words.top_words(tree, case, study.top)
            partner = top[:, ::-1] if wrong else None
            return words.share_within(deviation(tree, case, top, partner), WITHIN)

        return statistic

    law = {
        "theorem1": "Theorem 1 with each word's own averages",
        "corollary1": "Corollary 1 with each word's own m",
        "lemma2": "Lemma 2 with each word's own averages, for the speed of the score",
    }[theory]
    return Claim(
        key=_key(f"fig4-{theory}", case),
        sentence=f"{_named(case)}: most of the {study.top} words of the largest scores stay within "
        f"{WITHIN:.0%} of {law}, through all of training.",
        source="Lemma 2, eq (8); ours on text" if theory == "lemma2" else "section 5.2, Fig 4",
        paper="" if theory == "lemma2" else "most of the words",
        statistic=share(False),
        criterion=above(0.5),
        control_sentence="each word against the curve of another of the top words",
        control=share(True),
        reason="Moment by moment eq (8) holds (see the claim on Lemma 2). But what stands around "
        "a word moves as much as the word does, and eqs (9) and (10) hold it at rest.",
        measure="share of the words, by |ds/dt - eq (8)| over the largest |ds/dt|"
        if theory == "lemma2"
        else f"share of the words, while the norm is above {words.GROWN:.0%} of its largest",
    )


def _early(study: Sst, case: str) -> Claim:
    def share(wrong: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            top = words.top_words(tree, case, study.top)
            off = words.theorem1_deviation(tree, case, top, top[:, ::-1] if wrong else None)
            measured = words.of_words(words.values(tree, "distance_measured", case, "theory"), top)
            return words.share_within(np.where(words.early(measured), off, np.nan), WITHIN)

        return statistic

    return Claim(
        key=_key("initial", case),
        sentence=f"{_named(case)}: until a word has come half its way, Theorem 1 holds for nearly "
        "all of the top words.",
        source="section 5, 'at least in initial training stages'",
        paper="holds",
        statistic=share(False),
        criterion=above(0.8),
        control_sentence="each word against the curve of another of the top words",
        control=share(True),
        measure=f"share of the top {study.top} within {WITHIN:.0%}",
    )


def _trend(case: str, name: str, shuffled: bool) -> Statistic:
    def statistic(tree: xr.DataTree) -> np.ndarray:
        curve = words.purity_around(tree, case, np.empty((0, 0), dtype=int), name)[:, :, 0]
        out = []
        for seed, row in enumerate(curve):
            row = row[np.isfinite(row)][1:]  # before the first step all scores are equal
            if shuffled:
                row = np.random.default_rng(seed).permutation(row)
            enough = len(row) > 2
            out.append(float(rank_correlation(np.arange(len(row)), row)) if enough else np.nan)
        return np.array(out)

    return statistic


def _purer(case: str) -> Claim:
    return Claim(
        key=_key("purer", case),
        sentence=f"{_named(case)}: over training, sentences attend to ever purer words.",
        source="Fig 7",
        paper="rises",
        statistic=_trend(case, "purity", False),
        criterion=above(0.7),
        control_sentence="the same readings in shuffled order",
        control=_trend(case, "purity", True),
        measure="rank correlation of mean purity of the attended words with training time",
    )


def _rarer(case: str) -> Claim:
    return Claim(
        key=_key("rarer", case),
        sentence=f"{_named(case)}: over training, sentences attend to ever rarer words.",
        source="Fig 7",
        paper="falls",
        statistic=_trend(case, "occurrences", False),
        criterion=below(-0.7),
        control_sentence="the same readings in shuffled order",
        control=_trend(case, "occurrences", True),
        measure="rank correlation of mean occurrence of the attended words with training time",
    )


def _around_top(tree: xr.DataTree, case: str) -> np.ndarray:
    return words.purity_around(tree, case, words.top_words(tree, case, 5), "purity").mean(axis=2)


def _last(curve: np.ndarray) -> np.ndarray:
    return np.array([row[np.isfinite(row)][-1] for row in curve])


def _top_purity(case: str) -> Claim:
    return Claim(
        key=_key("fig6", case),
        sentence=f"{_named(case)}: around the five top words, almost all attended words end with a "
        "purity close to one.",
        source="Fig 6",
        paper="close to one",
        statistic=lambda tree: _last(_around_top(tree, case)),
        criterion=above(0.9),
        control_sentence="before training, when a word is picked at random",
        control=lambda tree: _around_top(tree, case)[:, 0],
        measure="mean purity of the attended words",
    )


def _top_above_all(case: str) -> Claim:
    everywhere = np.empty((0, 0), dtype=int)

    def gap(tree: xr.DataTree, drawn: bool) -> np.ndarray:
        chosen = words.top_words(tree, case, 5)
        if drawn:
            followed = tree["data/word_number"].sizes["word"]
            chosen = np.stack(
                [np.random.default_rng(s).choice(followed, 50) for s in range(len(chosen))]
            )
        around = _last(words.purity_around(tree, case, chosen, "purity").mean(axis=2))
        return around - _last(words.purity_around(tree, case, everywhere, "purity")[:, :, 0])

    return Claim(
        key=_key("fig7", case),
        sentence=f"{_named(case)}: over all sentences, the purity of attended words ends lower "
        "than around the top words.",
        source="Figs 6 and 7",
        paper="lower",
        statistic=lambda tree: gap(tree, False),
        criterion=above(0.05),
        control_sentence="around fifty words drawn at random instead of the top five",
        control=lambda tree: gap(tree, True),
        measure="difference of the mean purities",
    )


def _pair(tree: xr.DataTree) -> tuple[int, int]:
    followed = tree["data/word_number"].to_numpy()
    pure, frequent = tree["data/pair_number"].to_numpy()
    return int(np.flatnonzero(followed == pure)[0]), int(np.flatnonzero(followed == frequent)[0])


def _frequent_first(case: str) -> Claim:
    def ratio(tree: xr.DataTree, at_start: bool) -> np.ndarray:
        norm = words.values(tree, "norm", case)
        pure, frequent = _pair(tree)
        epochs = tree["observables/epoch"].to_numpy()
        best = words.final(tree, "best_epoch", case)
        rows = [0 if at_start else int(np.searchsorted(epochs, b / 4)) for b in best]
        picked = norm[np.arange(len(norm)), rows]
        return picked[:, frequent] / picked[:, pure]

    return Claim(
        key=_key("fig5-first", case),
        sentence=f"{_named(case)}: the frequent word's embedding is longer than the pure word's "
        "in the first part of training.",
        source="Fig 5, third column",
        paper="best before powerful",
        statistic=lambda tree: ratio(tree, False),
        criterion=above(1.2),
        control_sentence="before training",
        control=lambda tree: ratio(tree, True),
        measure="ratio of the norms at a quarter of the epochs",
    )


def _frequent_drops(case: str) -> Claim:
    def kept(tree: xr.DataTree, which: int) -> np.ndarray:
        score = words.values(tree, "score", case)[:, :, _pair(tree)[which]]
        most = np.nanmax(score, axis=1)
        return np.where(most > 0, _last(score) / np.where(most > 0, most, 1.0), np.nan)

    return Claim(
        key=_key("fig5-drop", case),
        sentence=f"{_named(case)}: the score of the frequent, impure word rises and then drops.",
        source="Fig 5, second column",
        paper="a score drop in the final stage",
        statistic=lambda tree: kept(tree, 1),
        criterion=below(0.98),
        control_sentence="the pure word's score",
        control=lambda tree: kept(tree, 0),
        measure="final score over its largest",
    )


def _predicted(case: str, least: int) -> Claim:
    def share(shuffled: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            known, enough = statistics(tree), tree["data/occurrences"].to_numpy() >= least
            out = []
            for seed, gap in enumerate(vocabulary_gap(tree, case)):
                target = gap[enough]
                if shuffled:
                    target = np.random.default_rng(seed).permutation(target)
                table = {name: column[enough] for name, column in known.items()}
                out.append(fit(target, table).explained)
            return np.array(out)

        return statistic

    few = least > 1
    return Claim(
        key=_key("predicted-frequent" if few else "predicted", case),
        sentence=f"{_named(case)}: "
        + (f"for words in {least} sentences or more, a" if few else "over the whole vocabulary, a")
        + " word's distance from Theorem 1 is strongly related to its occurrence, its purity and "
        "its purer company.",
        source="section 5.2, 'strongly related'; the fit is ours",
        paper="strongly related",
        statistic=share(False),
        criterion=above(0.3),
        control_sentence="the distances handed to other words",
        control=share(True),
        reason=""
        if few
        else "Half of the vocabulary stands in one sentence, where purity is one by definition and "
        "tells nothing.",
        measure="share explained by a linear fit, on words it has not seen",
    )
