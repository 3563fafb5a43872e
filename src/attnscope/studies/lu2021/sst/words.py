"""Readings of single words in a run on text: which lead, how far they are from theory.

All of them are of one case, ``run.of(case)``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final, initial

GROWN = 0.2
"""A word is held against theory while its norm is above this share of its largest."""

Partner = Callable[[xr.DataArray], xr.DataArray]
"""Says for each word whose prediction it is held against."""
Law = Callable[[Readings, xr.DataArray, xr.DataArray], xr.DataArray]
"""How far words are from a theory: of a case, words and partners, ``(seed, rank)`` and time."""


def end(run: Readings, name: str) -> xr.DataArray:
    """Return what was read at the end of each run, with the best parameters back."""
    return final(run.get(name)).astype(float)


def names(run: Readings) -> xr.DataArray:
    """Return the words that are followed."""
    return run.data.words.isel(vocab=run.data.word_number).astype(object)


def rivals(run: Readings) -> xr.DataArray:
    """Return which of the followed words are the pair."""
    number = run.data.pair_number
    return number.copy(data=np.searchsorted(run.data.word_number, number))


def leading(scores: xr.DataArray, count: int) -> xr.DataArray:
    """Return which words have the largest scores, best first; ``(seed, rank)``."""
    order = np.argsort(-scores.transpose("seed", "word").to_numpy(), axis=1, kind="stable")
    return xr.DataArray(order[:, :count], {"seed": scores["seed"]}, ("seed", "rank"))


def top_words(run: Readings, count: int) -> xr.DataArray:
    """Return which followed words have the largest final scores, best first; ``(seed, rank)``."""
    return leading(end(run, "score_all").isel(vocab=run.data.word_number), count)


def themselves(words: xr.DataArray) -> xr.DataArray:
    """Return each word: it is held against its own curve."""
    return words


def others(words: xr.DataArray) -> xr.DataArray:
    """Return another word for each: the best has the curve of the last, and so on."""
    return words.isel(rank=slice(None, None, -1))


def theorem1(run: Readings, words: xr.DataArray, partner: xr.DataArray) -> xr.DataArray:
    """Relative distance between ‖v - ⟨v̄⟩‖ and Theorem 1, at every ``probe``.

    Args:
        run: the readings of a case.
        words: which followed words, ``(seed, rank)``.
        partner: whose prediction each word is held against; the word itself, or another one.
    """
    measured = run.theory.distance_measured.isel(word=words).astype(float)
    return _while_grown(measured, run.theory.distance.isel(word=partner), "probe")


def corollary1(run: Readings, words: xr.DataArray, partner: xr.DataArray) -> xr.DataArray:
    """Relative distance between ‖v‖ and Corollary 1 with own m, at every ``step``."""
    measured = run.norm.isel(word=words).astype(float)
    return _while_grown(measured, run.theory.norm.isel(word=partner), "step")


def lemma2(run: Readings, words: xr.DataArray, partner: xr.DataArray) -> xr.DataArray:
    """Distance between ds/dt and eq (8) at every ``probe``.

    Over the word's largest |ds/dt| of the run, so that a moment at which the score stands still
    does not count as an infinite error.
    """
    sides = run.identity.astype(float)
    measured = sides.sel(side="speed").isel(word=words)
    predicted = sides.sel(side="lemma2").isel(word=partner)
    return abs(measured - predicted) / abs(measured).max("probe")


def integral(run: Readings, words: xr.DataArray, partner: xr.DataArray) -> xr.DataArray:
    """Distance between a score and eq (8) integrated, over the largest score of the word."""
    score = run.score.isel(word=words).astype(float)
    predicted = run.theory.score.isel(word=partner).astype(float)
    return abs(at_probes(run, score) - predicted) / abs(score).max("step")


def at_probes(run: Readings, curve: xr.DataArray) -> xr.DataArray:
    """Return a curve at the times at which whole sentences are read."""
    return curve.astype(float).interp(step=run.identity["probe"]).drop_vars("step")


def share_within(deviation: xr.DataArray, bound: float) -> xr.DataArray:
    """Return the share of words that are never further off than ``bound``; one per seed."""
    times = [dim for dim in deviation.dims if dim not in ("seed", "rank")]
    return (deviation.max(times) < bound).mean("rank")


def attended(run: Readings, name: str, words: xr.DataArray | None = None) -> xr.DataArray:
    """Mean purity or occurrences of the words attended to, ``(seed, probe)``.

    Args:
        run: the readings of a case.
        name: ``purity`` or ``occurrences``.
        words: over the sentences that hold each of these followed words, ``(seed, rank)``, and
            then also along ``rank``; over all sentences unless given.
    """
    read = run.data.get(name).astype(float).isel(vocab=run.attended.fillna(0).astype(int))
    read = read.where(run.attended.notnull())
    if words is None:
        return read.mean("sentence", skipna=False)
    holds = (run.data.ids == run.data.word_number.isel(word=words)).any("position")
    return xr.dot(read, holds.astype(float), dim="sentence") / holds.sum("sentence")


def score_lag(run: Readings, number: int) -> xr.DataArray:
    """How much larger Corollary 1 makes the final score of a word than it is.

    The score that eq (10) gives to the final norm, over the measured score, less one.
    """
    norm, score = (end(run, name).isel(vocab=number) for name in ("norm_all", "score_all"))
    return lu2021.score_from_norm(norm, run.data.m.isel(vocab=number)) / score - 1


def vocabulary_gap(run: Readings) -> xr.DataArray:
    """Distance of every word from Theorem 1 at the end, from 0 to 1; ``(seed, vocab)``.

    With ΔL and ΔR the growth of the two sides of eq (9), |ΔL - ΔR| / (|ΔL| + |ΔR|): 0 if they grew
    alike, 1 if one went up and the other down. It needs no threshold for words that hardly moved.
    """
    sides = run.identity_all.astype(float)
    growth = final(sides) - initial(sides)
    left, right = (growth.sel(side=side, drop=True) for side in ("level", "half square"))
    return abs(left - right) / (abs(left) + abs(right))


def statistics(run: Readings) -> dict[str, xr.DataArray]:
    """Return what the data alone say of each word, before any training."""
    data = run.data
    return {
        "log occurrence": np.log(data.occurrences.where(data.occurrences > 0)),
        "topic purity": data.purity,
        "share of its sentences with a purer word": data.purer_company,
        "m, words around it": data.m,
    }


def _while_grown(measured: xr.DataArray, predicted: xr.DataArray, time: str) -> xr.DataArray:
    grown = measured.where(measured > GROWN * measured.max(time))
    return abs(grown - predicted.astype(float)) / grown
