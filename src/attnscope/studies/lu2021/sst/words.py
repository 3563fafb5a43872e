"""Readings of single words in a run on text: which lead, how far they are from theory.

All of them are of one case, ``run.of(case)``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
import xarray as xr

from attnscope.trajectory import Readings, final, initial

GROWN = 0.2
"""A word is held against theory while its norm is above this share of its largest."""
Curve = Callable[[Readings], xr.DataArray]
"""A reading of all followed words of a case."""


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


class Law(NamedTuple):
    """What a word is held against: its name in a table and in a sentence, and both sides of it.

    Where ``scale`` is given, distances are parts of its largest value over the run, so that a
    moment at which a score stands still does not count as an infinite error. Otherwise they are
    parts of what is measured, while the word has grown.
    """

    label: str
    sentence: str
    measured: Curve
    predicted: Curve
    scale: Curve | None = None


def off(
    run: Readings, law: Law, words: xr.DataArray, partner: xr.DataArray | None = None
) -> xr.DataArray:
    """Return how far words are from a law at all times, along ``seed``, ``rank`` and time.

    Args:
        run: the readings of a case.
        law: what they are held against.
        words: which followed words, ``(seed, rank)``.
        partner: whose prediction each word is held against; its own unless given.
    """
    measured = law.measured(run).isel(word=words).astype(float)
    predicted = law.predicted(run).isel(word=words if partner is None else partner).astype(float)
    if law.scale is not None:
        scale = abs(law.scale(run).isel(word=words).astype(float))
        return abs(measured - predicted) / scale.max(times(scale))
    grown = measured.where(measured > GROWN * measured.max(times(measured)))
    return abs(grown - predicted) / grown


def times(reading: xr.DataArray) -> list[Hashable]:
    """Return the dimension of time of a reading of words."""
    return [dim for dim in reading.dims if dim not in ("seed", "rank")]


def at_probes(run: Readings, curve: xr.DataArray) -> xr.DataArray:
    """Return a curve at the times at which whole sentences are read."""
    return curve.astype(float).interp(step=run.identity["probe"]).drop_vars("step")


def share_within(deviation: xr.DataArray, bound: float) -> xr.DataArray:
    """Return the share of words that are never further off than ``bound``; one per seed."""
    return (deviation.max(times(deviation)) < bound).mean("rank")


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


def vocabulary_gap(run: Readings) -> xr.DataArray:
    """Distance of every word from Theorem 1 at the end, from 0 to 1; ``(seed, vocab)``.

    With ΔL and ΔR the growth of the two sides of eq (9), |ΔL - ΔR| / (|ΔL| + |ΔR|): 0 if they grew
    alike, 1 if one went up and the other down. It needs no threshold for words that hardly moved.
    """
    sides = run.identity_all.astype(float)
    growth = final(sides) - initial(sides)
    left, right = (growth.sel(side=side, drop=True) for side in ("level", "half square"))
    return abs(left - right) / (abs(left) + abs(right))


def statistics(run: Readings) -> dict[str, np.ndarray]:
    """Return what the data alone say of each word, before any training."""
    data = run.data
    known = {
        "log occurrence": xr.ufuncs.log(data.occurrences.where(data.occurrences > 0)),
        "topic purity": data.purity,
        "share of its sentences with a purer word": data.purer_company,
        "m, words around it": data.m,
    }
    return {name: column.to_numpy() for name, column in known.items()}


LAWS = {
    "theorem1": Law(
        "Theorem 1, own averages",
        "Theorem 1 with each word's own averages",
        lambda run: run.theory.distance_measured,
        lambda run: run.theory.distance,
    ),
    "corollary1": Law(
        "Corollary 1, own m",
        "Corollary 1 with each word's own m",
        lambda run: run.norm,
        lambda run: run.theory.norm,
    ),
    "lemma2": Law(
        "Lemma 2, eq (8), at every moment",
        "Lemma 2 with each word's own averages, for the speed of the score",
        lambda run: run.identity.sel(side="speed", drop=True),
        lambda run: run.identity.sel(side="lemma2", drop=True),
        scale=lambda run: run.identity.sel(side="speed", drop=True),
    ),
    "integral": Law(
        "Lemma 2 integrated along the run",
        "the score that Lemma 2 integrates to, with each word's own averages",
        lambda run: at_probes(run, run.score),
        lambda run: run.theory.score,
        scale=lambda run: run.score,
    ),
}
"""Distances, norms, speeds of scores, and scores."""
