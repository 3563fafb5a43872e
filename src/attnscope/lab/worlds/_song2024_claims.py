"""What Song 2024 says of a single run of regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim

if TYPE_CHECKING:
    from attnscope.lab.worlds.song2024 import RegressionPlay

SLACK = 1e-3
"""The solver's tolerance, in the logarithm of a loss."""
LEAST = 1e-7
"""Relative loss below which bounds are not judged."""


def claims(study: RegressionPlay) -> tuple[Claim, ...]:
    """Return the statements, which depend on what learns."""
    if study.trained == "query":
        return (_fits(), _above_least(study), _awake())
    return (_fits(), _rate(), _path(), _forever(), _awake())


def curve(tree: xr.DataTree) -> np.ndarray:
    """Return the relative loss as far as the run went."""
    loss = tree["observables/relative_loss"].to_numpy()[0]
    return np.asarray(loss[np.isfinite(loss)])


def final(tree: xr.DataTree) -> float:
    """Return what is left of the loss at the end."""
    stats = tree["stats"].to_dataset().isel(run=0)
    loss = curve(tree)
    if str(stats["outcome"].values) == "stopped":
        return 1e-8  # the run ended where it fell below that, between two record points
    return float(loss[-1])


def _excess(tree: xr.DataTree, bound: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
    loss = curve(tree)
    over = np.log(np.maximum(loss, LEAST)) - np.log(np.maximum(bound[: len(loss)], LEAST))
    if where is not None:
        over = over[where[: len(loss)] > 0]
    return np.array([over.max() if over.size else np.nan])


def _bound(tree: xr.DataTree, name: str) -> np.ndarray:
    return np.asarray(tree[f"theory/{name}"].to_numpy()[0])


def _fits() -> Claim:
    return Claim(
        key="fits",
        sentence="Training fits every label.",
        source="Song 2024, Theorem 1",
        paper="global optimum if HD ≥ Nn",
        statistic=lambda tree: np.log10([final(tree)]),
        criterion=below(-4),
        control_sentence="before training",
        control=lambda tree: np.log10(curve(tree)[:1]),
        measure="log10 of the relative loss at the end",
    )


def too_fast(tree: xr.DataTree) -> np.ndarray:
    """Compare with the largest singular value of B_0 in place of the smallest."""
    rate = float(tree["theory/largest"])
    return _excess(tree, curve(tree)[0] * np.exp(-rate * tree["observables/time"].to_numpy()))


def _rate() -> Claim:
    return Claim(
        key="rate",
        sentence="As long as the certificate holds, the loss stays below f(0) exp(-βt).",
        source="Song 2024, Theorem 1",
        paper="(1 - ηβ)^t",
        statistic=lambda tree: _excess(tree, _bound(tree, "rate_bound"), _bound(tree, "certified")),
        criterion=below(SLACK),
        control_sentence="the largest singular value of B_0 in place of the smallest",
        control=too_fast,
        measure="largest log(f/bound) where certified",
    )


def _path() -> Claim:
    return Claim(
        key="path",
        sentence="The loss stays below f(0) exp(-2∫μ) at all times.",
        source="Song 2024, inequality of Polyak and Łojasiewicz",
        paper="not stated",
        statistic=lambda tree: _excess(tree, _bound(tree, "path_bound")),
        criterion=below(SLACK),
        control_sentence="the largest singular value of B_0 in place of the smallest",
        control=too_fast,
        measure="largest log(f/bound)",
    )


def _forever() -> Claim:
    return Claim(
        key="certificate",
        sentence="It is certain before training that the rate holds for all time.",
        source="Song 2024, Theorem 1",
        paper="for wide layers and a suitable start",
        statistic=lambda tree: np.array([float(tree["theory/forever"])]),
        criterion=above(0.5),
        control_sentence="W^O = 0, which certifies nothing",
        control=lambda tree: np.zeros(1),
        measure="1 if certified, else 0",
        reason="features may move further than the certificate allows. That proves nothing against "
        "convergence.",
    )


def _above_least(study: RegressionPlay) -> Claim:
    def gap(tree: xr.DataTree, least: float) -> np.ndarray:
        return np.array([np.log(max(final(tree), LEAST) / max(least, LEAST))])

    return Claim(
        key="reach",
        sentence="The loss ends close to the least that these weights can reach.",
        source="Song 2024, Theorem 2 (softmax may stop early)",
        paper="Gaussian: yes; softmax: not always",
        statistic=lambda tree: gap(tree, float(tree["theory/least_loss"])),
        criterion=below(0.7),
        control_sentence="a loss of 1, before anything is learned, against a least of 0",
        control=lambda tree: np.array([np.log(1 / LEAST)]),
        measure="log of the final loss over the least",
    )


def _awake() -> Claim:
    return Claim(
        key="awake",
        sentence="Attention stays able to learn: few rows saturate.",
        source="Song 2024, on softmax",
        paper="softmax saturates",
        statistic=lambda tree: _last(tree["observables/saturated"].to_numpy()),
        criterion=below(0.1),
        control_sentence="all rows saturated",
        control=lambda tree: np.ones(1),
        measure="share of saturated rows at the end",
    )


def _last(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, np.isfinite(values[0])][:, -1])
