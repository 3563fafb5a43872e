"""The claims of ``lu2021.synergy``: the second half of section 5.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.probes import largest, relative_deviation
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.lu2021.synergy import Synergy

NEGATIVE = ", negative start"
BEFORE = 1000
"""Epoch at which models are compared; the paper says that Attn-TC has converged at around it."""


def claims(study: Synergy) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _score_grows_faster(),
        _norm_grows_faster(),
        _fastest_loss(),
        _embedding_frozen_surpasses(),
        _diminution_of_score(),
        _diminution_of_norm(),
        _turn(),
        _converged(),
        *(_accuracy(case) for case in ("TC", "TC-KF", "TC-EF")),
        _theorem1(),
    )


def followed(tree: xr.DataTree, name: str, case: str, epoch: float | None) -> np.ndarray:
    """Return score or norm of the followed word at an epoch, or at the end, one per seed."""
    data = select(tree, name, case)
    if "word" in data.dims:
        data = data.isel(word=0)
    if epoch is None:
        return data.isel(step=-1).to_numpy()
    return data.isel(step=int(np.argmin(np.abs(data["epoch"].to_numpy() - epoch)))).to_numpy()


def _score_grows_faster() -> Claim:
    def ratio(tree: xr.DataTree, epoch: float | None) -> np.ndarray:
        return followed(tree, "score", "TC", epoch) / followed(tree, "score", "TC-EF", epoch)

    return Claim(
        key="enhancement-score",
        sentence="The score grows faster when the embedding may grow too (TC) than when it is "
        "frozen (EF).",
        source="section 5.1, Fig 3, first plot",
        paper="grows faster",
        statistic=lambda tree: ratio(tree, BEFORE),
        criterion=above(1.2),
        control_sentence="the same ratio at the end, long after TC has converged",
        control=lambda tree: ratio(tree, None),
        measure=f"score of TC over score of EF at epoch {BEFORE}",
    )


def _norm_grows_faster() -> Claim:
    def ratio(tree: xr.DataTree, epoch: float | None) -> np.ndarray:
        grown = [
            followed(tree, "norm", case, epoch) - followed(tree, "norm", case, 0)
            for case in ("TC", "TC-KF")
        ]
        return np.asarray(grown[0] / grown[1])

    return Claim(
        key="enhancement-norm",
        sentence="The embedding grows faster when the score may grow too (TC) than when it is "
        "frozen (KF).",
        source="section 5.1, Fig 3, second plot",
        paper="increases more rapidly",
        statistic=lambda tree: ratio(tree, BEFORE),
        criterion=above(1.1),
        control_sentence="the same ratio at the end, long after TC has converged",
        control=lambda tree: ratio(tree, None),
        measure=f"growth of the norm, TC over KF, by epoch {BEFORE}",
    )


def _fastest_loss() -> Claim:
    def ratio(tree: xr.DataTree, first: str, others: tuple[str, str]) -> np.ndarray:
        loss = [followed(tree, "loss", case, 2 * BEFORE) for case in (first, *others)]
        return np.asarray(loss[0] / np.minimum(loss[1], loss[2]))

    return Claim(
        key="enhancement-loss",
        sentence="Attn-TC has the fastest drop of the training loss of the three.",
        source="section 5.1, Fig 3, third plot",
        paper="fastest",
        statistic=lambda tree: ratio(tree, "TC", ("TC-KF", "TC-EF")),
        criterion=below(0.5),
        control_sentence="Attn-TC-KF in the place of Attn-TC",
        control=lambda tree: ratio(tree, "TC-KF", ("TC", "TC-EF")),
        measure=f"loss over the smaller of the two others' at epoch {2 * BEFORE}",
    )


def _embedding_frozen_surpasses() -> Claim:
    def lead(tree: xr.DataTree, epoch: float | None) -> np.ndarray:
        return followed(tree, "score", "TC-EF", epoch) - followed(tree, "score", "TC", epoch)

    return Claim(
        key="frozen-embedding-surpasses",
        sentence="The score in Attn-TC-EF finally surpasses the one in Attn-TC, which has "
        "converged.",
        source="section 5.1",
        paper="finally surpasses",
        statistic=lambda tree: lead(tree, None),
        criterion=above(0),
        control_sentence=f"the same lead at epoch {BEFORE}",
        control=lambda tree: lead(tree, BEFORE),
        measure="score of EF minus score of TC at the end",
    )


def lowest_scores(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the lowest score that the followed word had, one per seed."""
    return select(tree, "score", case).isel(word=0).min("step").to_numpy()


def _diminution_of_score() -> Claim:
    return Claim(
        key="diminution-score",
        sentence="From an initial embedding with a negative projection, the score first falls.",
        source="section 5.1, Fig 3, fourth plot; eq (8)",
        paper="decreases",
        statistic=lambda tree: lowest_scores(tree, "TC" + NEGATIVE),
        criterion=below(-0.005),
        control_sentence="a positive projection of the same size",
        control=lambda tree: lowest_scores(tree, "TC"),
        measure="lowest score",
    )


def _diminution_of_norm() -> Claim:
    def shrunk(tree: xr.DataTree, case: str) -> np.ndarray:
        norm = select(tree, "norm", case).isel(word=0)
        return (norm.min("step") - norm.isel(step=0)).to_numpy()

    return Claim(
        key="diminution-norm",
        sentence="From a negative projection the embedding first shrinks.",
        source="section 5.1, Fig 3, last plot",
        paper="impeded, or shrinks",
        statistic=lambda tree: shrunk(tree, "TC" + NEGATIVE),
        criterion=below(-0.002),
        control_sentence="a positive projection of the same size",
        control=lambda tree: shrunk(tree, "TC"),
        measure="lowest norm minus initial norm",
    )


RESOLUTION = 5e-8
"""Differences of growth per epoch below this are rounding of single-precision norms."""


def turning_epochs(tree: xr.DataTree, suffix: str = NEGATIVE) -> np.ndarray:
    """Return the epoch at which TC's norm begins to grow faster than KF's after growing slower.

    Zero if it never grew slower in the time until TC's loss has halved (a model that has converged
    does not grow any more), or never faster again. One number per seed.
    """
    curves = [select(tree, "norm", name + suffix).isel(word=0) for name in ("TC", "TC-KF")]
    loss = select(tree, "loss", "TC" + suffix).to_numpy()
    epochs = curves[0]["epoch"].to_numpy()
    speed = [np.gradient(curve.to_numpy().astype(float), epochs, axis=1) for curve in curves]
    turns = []
    for lead, own_loss in zip(speed[0] - speed[1], loss, strict=True):
        slower = np.flatnonzero((lead < -RESOLUTION) & (own_loss > own_loss[0] / 2))
        faster = np.flatnonzero(lead > RESOLUTION)
        faster = faster[faster > slower[0]] if slower.size else faster[:0]
        turns.append(epochs[faster[0]] if faster.size else 0.0)
    return np.asarray(turns)


def _turn() -> Claim:
    return Claim(
        key="diminution-turns",
        sentence="The diminution does not last: after a few hundred epochs the embedding grows "
        "faster with attention than without.",
        source="section 5.1, Fig 3, last plot",
        paper="epoch 370",
        statistic=turning_epochs,
        criterion=within(20, 1000),
        control_sentence="a positive projection: there is nothing to turn",
        control=lambda tree: turning_epochs(tree, ""),
        measure="epoch from which TC's norm grows faster than KF's",
        reason="how long it lasts depends on how far on the wrong side the embedding starts and on "
        "the seed; the paper shows one word of one run.",
    )


def _converged() -> Claim:
    def worst(tree: xr.DataTree, epoch: float | None) -> np.ndarray:
        losses = [followed(tree, "loss", case, epoch) for case in ("TC", "TC-KF", "TC-EF")]
        return np.asarray(np.max(losses, axis=0))

    return Claim(
        key="converged",
        sentence="60,000 epochs are enough for all three models to converge.",
        source="section 5.1",
        paper="fully converge",
        statistic=lambda tree: worst(tree, None),
        criterion=below(0.05),
        control_sentence=f"epoch {BEFORE}",
        control=lambda tree: worst(tree, BEFORE),
        measure="largest training loss of the three (nats)",
    )


def _accuracy(case: str) -> Claim:
    def share(tree: xr.DataTree, snapshot: int) -> np.ndarray:
        return select(tree, "test_accuracy", case).isel(snapshot=snapshot).to_numpy()

    return Claim(
        key=f"accuracy-{case}",
        sentence=f"The trained Attn-{case} classifies every test sentence rightly.",
        source="section 5.1",
        paper="100 %",
        statistic=lambda tree: share(tree, -1),
        criterion=above(0.999),
        control_sentence="the same model before training",
        control=lambda tree: share(tree, 0),
        measure="share of test sentences",
        reason="in some seeds the score of one or two topic words turns negative, as the table of "
        "frozen embeddings shows: their sentences are fitted by the non-topic words in them, which "
        "does not carry over to new sentences. In the other seeds every sentence is right."
        if case == "TC-EF"
        else "",
    )


def _theorem1() -> Claim:
    def deviation(tree: xr.DataTree, blind: bool) -> np.ndarray:
        sides = select(tree, "identity", "TC").to_numpy()
        distance = np.sqrt(2 * sides[..., 1])
        predicted = select(tree, "distance", "TC", "theory").to_numpy()
        if blind:
            distance = select(tree, "norm", "TC").to_numpy()
            predicted = select(tree, "norm", "TC", "theory").to_numpy()
        return largest(relative_deviation(distance, predicted, 0.3), axis=(1, 2))

    return Claim(
        key="theorem1-large-start",
        sentence="Theorem 1, with the initial values and the means over Ψ_t that Corollary 1 "
        "leaves out, also holds from an initial variance of 0.1.",
        source="Theorem 1, eq (9), in the setting of Fig 3",
        paper="stated for small σ²",
        statistic=lambda tree: deviation(tree, False),
        criterion=below(0.02),
        control_sentence="Corollary 1, which knows nothing of the start",
        control=lambda tree: deviation(tree, True),
        measure="largest relative deviation of a topic word's distance",
        reason="Theorem 1 takes h and v̄ as uncorrelated over Ψ_t, which needs a small σ²; at "
        "σ²/d = 0.1 the words around a topic word differ from sentence to sentence.",
    )
