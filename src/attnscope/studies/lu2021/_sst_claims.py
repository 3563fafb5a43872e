"""The claims of ``lu2021.sst``: section 5.2, and whether a variant reproduces it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, within
from attnscope.studies.old import Claim
from attnscope.studies.lu2021 import _sst_attended_claims, _sst_theory_claims
from attnscope.studies.lu2021 import _sst_words as words
from attnscope.studies.lu2021._sst_names import key, named
from attnscope.studies.lu2021._sst_tables import MODEL_EPOCHS, PAPER

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst import Sst

SCORES = {"FC": (2.0, 6.0), "TC": (0.3, 1.2)}
"""Where the largest scores of Fig 4 lie: 3 to 4 for Attn-FC, 0.6 to 0.8 for Attn-TC."""
FIG6 = {
    "FC": ("powerful", "stupid", "solid", "suffers", "mess"),
    "TC": ("worst", "mess", "stupid", "suffers", "solid"),
}
"""The five words of the largest scores on SST-2: Fig 6, and for Attn-FC the released script."""
FIG5 = ("powerful", "best")
"""The two words of Fig 5."""
REASONS = {
    "FC, paper": "With an orthonormal U and a learning rate of 0.1 Attn-FC needs many times the "
    "epochs on the paper's axes. There it has the paper's accuracy, scores and leading words; "
    "where the axes end it has none of them.",
    "FC, released": "The released U is 14 times longer than the paper's, and training is faster.",
    "TC, released": "The padding, most of every sentence, first learns the class balance of the "
    "training set, which the dev set does not share: the dev loss rises at first. With some seeds "
    "patience runs out then and there; with the others training goes on for longer than the "
    "paper's.",
}

Statistic = Callable[[xr.DataTree], np.ndarray]


def claims(study: Sst) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    out: list[Claim] = []
    for case in study.cases():
        model, _, variant = case.partition(", ")
        out.append(_accuracy(study, model, variant))
        if study.data in PAPER:
            out.append(_score_range(model, variant))
        # Figs 5 to 7 are of SST-2 alone.
        if study.data == "sst2":
            out += [_stopping(model, variant), _leaders(model, variant)]
        out += _sst_theory_claims.claims(study, case)
        out += _sst_attended_claims.claims(
            case, top=study.data == "sst2", pair=study.data == "sst2" and study.pair == FIG5
        )
    return tuple(out)


def _accuracy(study: Sst, model: str, variant: str) -> Claim:
    case = f"{model}, {variant}"

    def read(index: int) -> Statistic:
        return lambda tree: words.values(tree, "end_test_accuracy", case)[:, index]

    known = PAPER.get(study.data)
    paper = known[model] if known else 0.0
    return Claim(
        key=key("accuracy", case),
        sentence=f"{named(case)} reaches the paper's test accuracy, to two points."
        if known
        else f"{named(case)} does better on test sentences than the most frequent class.",
        source="section 5.2",
        paper=f"{paper:.2%}" if known else "",
        statistic=read(1),
        criterion=within(paper - 0.02, paper + 0.02) if known else above(_majority(study)),
        control_sentence="the same model before training",
        control=read(0),
        each=False,
        reason=REASONS.get(case, ""),
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
        key=key("scores", case),
        sentence=f"{named(case)} ends with largest scores as Fig 4 shows them.",
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

    def greatest(tree: xr.DataTree) -> np.ndarray:
        curves = words.values(tree, "dev_loss", case)
        return np.asarray(tree["observables/epoch"].to_numpy()[np.nanargmax(curves, axis=1)])

    low, high, shown = MODEL_EPOCHS[model]
    return Claim(
        key=key("epochs", case),
        sentence=f"{named(case)} is best on the dev set where the figures end.",
        source="Figs 5 and 7",
        paper=shown,
        statistic=lambda tree: words.final(tree, "best_epoch", case),
        criterion=within(low, high),
        control_sentence="where the dev loss is greatest",
        control=greatest,
        reason=REASONS.get(case, ""),
        measure="epoch of the least dev loss",
    )


def _leaders(model: str, variant: str) -> Claim:
    case = f"{model}, {variant}"

    def shared(tree: xr.DataTree, early: bool) -> np.ndarray:
        names = tree["data/words"].to_numpy()[tree["data/word_number"].to_numpy()]
        tops = words.top_words(tree, case, 5)
        if early:
            epochs = tree["observables/epoch"].to_numpy()
            rows = [
                int(np.argmin(np.abs(epochs - b / 8)))
                for b in words.final(tree, "best_epoch", case)
            ]
            scores = words.values(tree, "score", case)[np.arange(len(rows)), rows]
            tops = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        return np.array([float(len(set(names[top]) & set(FIG6[model]))) for top in tops])

    return Claim(
        key=key("leaders", case),
        sentence=f"{named(case)}: the five words of the largest scores are those of Fig 6.",
        source="Fig 6",
        paper=", ".join(FIG6[model]),
        statistic=lambda tree: shared(tree, False),
        criterion=above(4.5),
        control_sentence="the five leading words at an eighth of the epochs",
        control=lambda tree: shared(tree, True),
        reason=REASONS.get(case, ""),
        measure="how many of the five are the same",
    )
