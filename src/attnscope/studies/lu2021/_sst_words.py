"""Readings of single words in a run on text: which lead, how far they are from theory."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.probes import largest, relative_deviation
from attnscope.trajectory import select
from attnscope.theory import lu2021

GROWN = 0.2
"""A word is held against theory while its norm is above this share of its largest."""


def values(tree: xr.DataTree, name: str, case: str, group: str = "observables") -> np.ndarray:
    """Return a variable of the runs of a case in double precision, seeds first."""
    return select(tree, name, case, group).to_numpy().astype(float)


def final(tree: xr.DataTree, name: str, case: str) -> np.ndarray:
    """Return what was read at the end of each run, with the best parameters back."""
    return values(tree, name, case)[:, 1]


def top_words(tree: xr.DataTree, case: str, count: int) -> np.ndarray:
    """Return which followed words have the largest final scores, best first; ``(seed, rank)``."""
    followed = tree["data/word_number"].to_numpy()
    scores = final(tree, "score_all", case)[:, followed]
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def of_words(array: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Pick words of each seed: ``(seed, time, word)`` at ``(seed, rank)``."""
    return np.take_along_axis(array, words[:, None, :], axis=2)


def theorem1_deviation(
    tree: xr.DataTree, case: str, words: np.ndarray, partner: np.ndarray | None = None
) -> np.ndarray:
    """Relative distance between ‖v - ⟨v̄⟩‖ and Theorem 1, shape ``(seed, probe, rank)``.

    Args:
        tree: the trajectory.
        case: model and variant.
        words: which followed words, ``(seed, rank)``.
        partner: whose prediction each word is held against; its own unless given.
    """
    measured = of_words(values(tree, "distance_measured", case, "theory"), words)
    partner = words if partner is None else partner
    predicted = of_words(values(tree, "distance", case, "theory"), partner)
    return _while_grown(measured, predicted)


def corollary1_deviation(
    tree: xr.DataTree, case: str, words: np.ndarray, partner: np.ndarray | None = None
) -> np.ndarray:
    """Relative distance between ‖v‖ and Corollary 1 with own m, ``(seed, step, rank)``."""
    measured = of_words(values(tree, "norm", case), words)
    partner = words if partner is None else partner
    predicted = of_words(values(tree, "norm", case, "theory"), partner)
    return _while_grown(measured, predicted)


def lemma2_deviation(
    tree: xr.DataTree, case: str, words: np.ndarray, partner: np.ndarray | None = None
) -> np.ndarray:
    """Distance between ds/dt and eq (8) at every moment, ``(seed, probe, rank)``.

    Over the word's largest |ds/dt| of the run, so that a moment at which the score stands still
    does not count as an infinite error.
    """
    sides = values(tree, "identity", case)
    partner = words if partner is None else partner
    measured, predicted = of_words(sides[..., 2], words), of_words(sides[..., 3], partner)
    return np.abs(measured - predicted) / np.nanmax(np.abs(measured), axis=1, keepdims=True)


def integral_deviation(
    tree: xr.DataTree, case: str, words: np.ndarray, partner: np.ndarray | None = None
) -> np.ndarray:
    """Distance between a score and eq (8) integrated, over the largest score of the word.

    Shape ``(seed, probe, rank)``.
    """
    clock, at = (tree[f"observables/time{suffix}"].to_numpy() for suffix in ("", "_probe"))
    score = of_words(values(tree, "score", case), words)
    measured = np.apply_along_axis(lambda curve: np.interp(at, clock, curve), 1, score)
    partner = words if partner is None else partner
    predicted = of_words(values(tree, "score", case, "theory"), partner)
    most = np.nanmax(np.abs(score), axis=1, keepdims=True)
    return np.asarray(np.abs(measured - predicted) / most)


def early(measured: np.ndarray) -> np.ndarray:
    """Return where a word has not yet come half the way of its norm; ``(seed, time, rank)``."""
    return np.asarray(measured < 0.5 * np.nanmax(measured, axis=1, keepdims=True))


def share_within(deviation: np.ndarray, bound: float) -> np.ndarray:
    """Return the share of words that are never further off than ``bound``; one per seed."""
    return np.asarray((largest(deviation, axis=(1,)) < bound).mean(axis=1))


def score_lag(tree: xr.DataTree, case: str, words: np.ndarray) -> np.ndarray:
    """How much larger Corollary 1 makes the final score than it is; ``(seed, rank)``.

    The score that eq (10) gives to the final norm, over the measured score, less one.
    """
    numbers = tree["data/word_number"].to_numpy()[words]
    m = tree["data/m"].to_numpy()[numbers]
    norm = np.take_along_axis(final(tree, "norm_all", case), numbers, axis=1)
    score = np.take_along_axis(final(tree, "score_all", case), numbers, axis=1)
    expected = np.stack(
        [
            [float(lu2021.score_from_norm(n, k)) for n, k in zip(*row, strict=True)]
            for row in zip(norm, m, strict=True)
        ]
    )
    return expected / score - 1


def purity_around(tree: xr.DataTree, case: str, words: np.ndarray, name: str) -> np.ndarray:
    """Mean purity or occurrences of the words attended to around each word.

    Args:
        tree: the trajectory.
        case: model and variant.
        words: which followed words, ``(seed, rank)``; empty for all sentences.
        name: ``purity`` or ``occurrences``.

    Returns:
        Shape ``(seed, probe, rank)``, or ``(seed, probe, 1)`` over all sentences.
    """
    attended = values(tree, "attended", case)
    known = np.isfinite(attended)
    table = tree[f"data/{name}"].to_numpy().astype(float)
    read = np.where(known, table[np.where(known, attended, 0).astype(int)], np.nan)
    if not words.size:
        return read.mean(axis=2, keepdims=True)
    ids, numbers = tree["data/ids"].to_numpy(), tree["data/word_number"].to_numpy()
    out = np.empty((*read.shape[:2], words.shape[1]))
    for seed, row in enumerate(words):
        for rank, word in enumerate(row):
            holds = (ids == numbers[word]).any(axis=1)
            out[seed, :, rank] = read[seed][:, holds].mean(axis=1)
    return out


def _while_grown(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    grown = measured > GROWN * np.nanmax(measured, axis=1, keepdims=True)
    return np.where(grown, relative_deviation(measured, predicted, 0.0), np.nan)
