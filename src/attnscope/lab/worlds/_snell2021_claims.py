"""What Snell 2021 says of a single run on a small corpus, and of the toy system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim

if TYPE_CHECKING:
    from attnscope.lab.worlds.snell2021 import WordsFirstPlay


def claims(study: WordsFirstPlay) -> tuple[Claim, ...]:
    """Return the statements."""
    return (_exact(study), _counts(study), _aims(study), _new(study), _toy(), _toy_right())


def _theta(tree: xr.DataTree) -> np.ndarray:
    return np.asarray(tree["observables/theta"].to_numpy()[0])


def _error(study: WordsFirstPlay, tree: xr.DataTree, name: str) -> np.ndarray:
    gap = study.knowledge(_theta(tree)) - study.knowledge(tree[f"theory/{name}"].to_numpy())
    return np.array([np.abs(gap).max()])


def _exact(study: WordsFirstPlay) -> Claim:
    return Claim(
        key="exact",
        sentence="What words know is solved exactly from the inner products at the start.",
        source="Beyond Snell 2021, section 4.1",
        paper="to first order",
        statistic=lambda tree: _error(study, tree, "theta_exact"),
        criterion=below(0.01),
        control_sentence="eq 15 at all times, which is right to first order only",
        control=lambda tree: _error(study, tree, "theta_early"),
        measure="largest error of the probability of the right word",
    )


def _counts(study: WordsFirstPlay) -> Claim:
    return Claim(
        key="counts",
        sentence="A wide model needs no look at its start: counts of words alone say what it will "
        "know.",
        source="Snell 2021, section 4.1, for d → ∞",
        paper="equal in the limit",
        statistic=lambda tree: _error(study, tree, "theta_limit"),
        criterion=below(0.02),
        control_sentence="eq 15 at all times, which is right to first order only",
        control=lambda tree: _error(study, tree, "theta_early"),
        measure="largest error of the probability of the right word",
    )


def _aims(study: WordsFirstPlay) -> Claim:
    def largest(tree: xr.DataTree, moment: int) -> np.ndarray:
        theta = _theta(tree)[moment][3:, 3:]
        return np.array([float((theta.argmax(axis=0) == np.arange(len(theta))).mean())])

    return Claim(
        key="words",
        sentence="Every word is best known by the right word, without any attention.",
        source="Snell 2021, section 3",
        paper="knowledge of words comes first",
        statistic=lambda tree: largest(tree, -1),
        criterion=above(0.999),
        control_sentence="before training",
        control=lambda tree: largest(tree, 0),
        measure="share of words",
    )


def _new(study: WordsFirstPlay) -> Claim:
    def gold(tree: xr.DataTree, moment: int) -> np.ndarray:
        weights = tree["observables/attention"].to_numpy()[0, moment]
        return np.array([float(np.diagonal(weights).mean()) * study.length])

    return Claim(
        key="aims",
        sentence="That knowledge is enough to aim attention in a new sentence.",
        source="Snell 2021, section 3",
        paper="attention follows β",
        statistic=lambda tree: gold(tree, -1),
        criterion=above(1.5),
        control_sentence="before training",
        control=lambda tree: gold(tree, 0),
        measure="attention to the right word over uniform attention",
    )


def _toy() -> Claim:
    def error(tree: xr.DataTree, sign: float) -> np.ndarray:
        run, solved = tree["observables/toy"].to_numpy()[0], tree["theory/toy"].to_numpy()
        scale = max(1e-3, np.abs(solved).max())
        return np.array([np.abs(run - sign * solved).max() / scale])

    return Claim(
        key="toy",
        sentence="The toy system moves as its solution says, with exp(√2 τ).",
        source="Snell 2021, the authors' blog",
        paper="not solved",
        statistic=lambda tree: error(tree, 1.0),
        criterion=below(0.01),
        control_sentence="the solution with its sign turned",
        control=lambda tree: error(tree, -1.0),
        measure="largest error over the largest value",
    )


def _toy_right() -> Claim:
    def looks(tree: xr.DataTree, moment: int) -> np.ndarray:
        return np.array([float(tree["observables/toy"].to_numpy()[0, moment, 2])])

    return Claim(
        key="toy-right",
        sentence="In the toy system attention ends at the right word.",
        source="Snell 2021, the authors' blog",
        paper="knowledge drives attention",
        statistic=lambda tree: looks(tree, -1),
        criterion=above(0.5),
        control_sentence="at the start",
        control=lambda tree: looks(tree, 0),
        measure="p at the end",
        reason="which way it goes is decided by β₁ - β₀ + √2 p at the start: above 0 it is the "
        "right word.",
    )
