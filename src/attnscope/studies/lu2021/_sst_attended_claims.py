"""What real sentences attend to, and two words that compete: the claims on Figs 5 to 7."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.probes import rank_correlation
from attnscope.studies.lu2021 import _sst_words as words
from attnscope.studies.lu2021._sst_names import key, named

SNAPSHOT = 1000
"""Epochs between two snapshots of the released code, and so the first point of Fig 7."""

Statistic = Callable[[xr.DataTree], np.ndarray]


def claims(case: str, top: bool, pair: bool) -> list[Claim]:
    """Return the claims of one case.

    Args:
        case: model and variant.
        top: with those on the leading words of Fig 6.
        pair: with those on the two words of Fig 5.
    """
    out = [_purer(case), _rarer(case)]
    if top:
        out += [_top_purity(case), _top_above_all(case)]
    if pair:
        out += [_frequent_first(case), _frequent_drops(case)]
    return out


def _trend(case: str, name: str, shuffled: bool) -> Statistic:
    def statistic(tree: xr.DataTree) -> np.ndarray:
        curve = words.purity_around(tree, case, np.empty((0, 0), dtype=int), name)[:, :, 0]
        out = []
        late = tree["observables/epoch_probe"].to_numpy() >= SNAPSHOT
        for seed, row in enumerate(curve):
            row = row[late & np.isfinite(row)]
            if shuffled:
                row = np.random.default_rng(seed).permutation(row)
            enough = len(row) > 2
            out.append(float(rank_correlation(np.arange(len(row)), row)) if enough else np.nan)
        return np.array(out)

    return statistic


def _purer(case: str) -> Claim:
    return Claim(
        key=key("purer", case),
        sentence=f"{named(case)}: over training, sentences attend to ever purer words.",
        source="Fig 7",
        paper="rises",
        statistic=_trend(case, "purity", False),
        criterion=above(0.7),
        control_sentence="the same readings in shuffled order",
        control=_trend(case, "purity", True),
        measure="rank correlation of mean purity of the attended words with time, from epoch 1,000",
    )


def _rarer(case: str) -> Claim:
    return Claim(
        key=key("rarer", case),
        sentence=f"{named(case)}: over training, sentences attend to ever rarer words.",
        source="Fig 7",
        paper="falls",
        statistic=_trend(case, "occurrences", False),
        criterion=below(-0.7),
        control_sentence="the same readings in shuffled order",
        control=_trend(case, "occurrences", True),
        measure="rank correlation of mean occurrence of the attended words, from epoch 1,000",
    )


def _around_top(tree: xr.DataTree, case: str) -> np.ndarray:
    return words.purity_around(tree, case, words.top_words(tree, case, 5), "purity").mean(axis=2)


def _last(curve: np.ndarray) -> np.ndarray:
    return np.array([row[np.isfinite(row)][-1] for row in curve])


def _top_purity(case: str) -> Claim:
    return Claim(
        key=key("fig6", case),
        sentence=f"{named(case)}: around the five top words, almost all attended words end with a "
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
        key=key("fig7", case),
        sentence=f"{named(case)}: over all sentences, the purity of attended words ends lower "
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
        key=key("fig5-first", case),
        sentence=f"{named(case)}: the frequent word's embedding is longer than the pure word's "
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
        # A score that never rose has nothing to drop from.
        return np.where(most > 0, _last(score) / np.where(most > 0, most, 1.0), 1.0)

    return Claim(
        key=key("fig5-drop", case),
        sentence=f"{named(case)}: the score of the frequent, impure word rises and then drops.",
        source="Fig 5, second column",
        paper="a score drop in the final stage",
        statistic=lambda tree: kept(tree, 1),
        criterion=below(0.98),
        control_sentence="the pure word's score",
        control=lambda tree: kept(tree, 0),
        measure="final score over its largest",
    )
