"""What Lu 2021 says of a single run on topic words, in words for a class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.probes import largest, relative_deviation
from attnscope.theory import lu2021

if TYPE_CHECKING:
    from attnscope.lab.worlds.lu2021 import TopicWordsPlay

GROWN = 0.3
"""Norms below this still feel their random start, which eq (10) leaves out."""


def claims(study: TopicWordsPlay) -> tuple[Claim, ...]:
    """Return the statements; one of them is for a fixed classifier only."""
    ahead = (_ahead(),) if study.classifier == "FC" else ()
    return (_corollary1(study), *ahead, _apart(), _attended(), _loss())


def _read(tree: xr.DataTree, name: str, group: str = "observables") -> np.ndarray:
    return np.asarray(tree[f"{group}/{name}"].to_numpy())


def _corollary1(study: TopicWordsPlay) -> Claim:
    def deviation(tree: xr.DataTree, m: float) -> np.ndarray:
        predicted = lu2021.norm_from_score(_read(tree, "score"), m)
        return largest(relative_deviation(_read(tree, "norm"), predicted, GROWN), axis=(1, 2))

    return Claim(
        key="corollary1",
        sentence="The norm of every topic word is √(2(s + (exp(s) - 1)/m)), whatever the "
        "classifier.",
        source="Lu 2021, Corollary 1",
        paper="curves coincide",
        statistic=lambda tree: deviation(tree, study.m),
        criterion=below(0.02),
        control_sentence=f"the wrong m: {2 * study.m} instead of {study.m}",
        control=lambda tree: deviation(tree, 2 * study.m),
        measure="largest relative deviation while the norm is above 0.3",
    )


def _ahead() -> Claim:
    def error(tree: xr.DataTree, stretch: float) -> np.ndarray:
        norm, known = _read(tree, "norm"), _read(tree, "norm_ahead", "theory")
        clock = _read(tree, "time")
        moved = [np.interp(stretch * clock, clock, column) for column in known[0].T]
        gap = np.abs(norm[0] - np.stack(moved, axis=-1)).max()
        return np.array([gap / norm[0, -1].mean()])

    return Claim(
        key="ahead",
        sentence="The norms are known at all times before training starts.",
        source="Lu 2021, Theorem 2, solved for a fixed classifier",
        paper="not stated",
        statistic=lambda tree: error(tree, 1.0),
        criterion=below(0.05),
        control_sentence="the same prediction with twice the learning rate",
        control=lambda tree: error(tree, 2.0),
        measure="largest error over the final norm",
    )


def _apart() -> Claim:
    def ratio(tree: xr.DataTree, moment: int) -> np.ndarray:
        topic = np.abs(_read(tree, "score"))[:, moment].mean(axis=1)
        others = _read(tree, "other_score")[:, moment]
        return np.asarray(topic / np.maximum(others, 1e-12))

    return Claim(
        key="assumption1",
        sentence="The scores of topic words exceed those of all other words by two orders of "
        "magnitude.",
        source="Lu 2021, Assumption 1",
        paper="two orders of magnitude",
        statistic=lambda tree: ratio(tree, -1),
        criterion=above(100),
        control_sentence="before training",
        control=lambda tree: ratio(tree, 0),
        measure="mean |score| of topic words over the largest of another word",
    )


def _attended() -> Claim:
    return Claim(
        key="attention",
        sentence="The topic word gets the largest weight in every training sentence.",
        source="Lu 2021, Theorem 2",
        paper="every sentence",
        statistic=lambda tree: _read(tree, "attended")[:, -1],
        criterion=above(0.999),
        control_sentence="before training",
        control=lambda tree: _read(tree, "attended")[:, 0],
        measure="share of sentences whose topic word has the largest weight",
    )


def _loss() -> Claim:
    return Claim(
        key="loss",
        sentence="The training loss comes close to zero.",
        source="Lu 2021, Theorem 2",
        paper="close to zero",
        statistic=lambda tree: _read(tree, "loss")[:, -1],
        criterion=below(0.05),
        control_sentence="before training",
        control=lambda tree: _read(tree, "loss")[:, 0],
        measure="cross-entropy in nats",
    )
