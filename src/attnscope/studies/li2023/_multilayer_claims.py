"""The claims of ``li2023.multilayer``: topics in heads, and two stages."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.trajectory import select

DEEP, SHALLOW = "all layers", "one layer"
MARGIN = 1.1
"""Least factor between same-topic and different-topic attention that counts."""
MATRICES = ("W^K", "W^Q", "W^V")


def claims() -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _same_topic(DEEP),
        _same_topic(SHALLOW),
        _apart(),
        _main_topic(),
        _stages(),
        _mean_stage(),
    )


def ratios(tree: xr.DataTree, case: str, step: int = -1) -> np.ndarray:
    """Return same-topic over different-topic attention, ``(seed, layer, head)``."""
    return _ratio(select(tree, "attention", case).isel(step=step).to_numpy(), case)


def shuffled_ratios(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the same after training with topics shuffled among words."""
    return _ratio(select(tree, "shuffled", case).isel(snapshot=-1).to_numpy(), case)


def _ratio(kinds: np.ndarray, case: str) -> np.ndarray:
    present = kinds if case == DEEP else kinds[:, :1]
    return np.asarray(present[..., 1] / present[..., 2])


def _share(holds: np.ndarray) -> np.ndarray:
    return np.asarray(holds.mean(axis=(1, 2)))


def _same_topic(case: str) -> Claim:
    def share(values: np.ndarray) -> np.ndarray:
        return _share(values > MARGIN)

    return Claim(
        key="same-topic-deep" if case == DEEP else "same-topic-one-layer",
        sentence=f"In a model of {case}, most heads attend more to other words of the topic than "
        "to words of other topics.",
        source="Table 1, of trained models on Wikipedia"
        if case == DEEP
        else "Table 3, of one layer",
        paper="attention ratio 1.2 to 2.1, mean over heads" if case == DEEP else "ratio 1.4 to 1.7",
        statistic=lambda tree: share(ratios(tree, case)),
        criterion=above(0.5),
        control_sentence="the larger share of the untrained twin and of topics shuffled among "
        "words",
        control=lambda tree: np.maximum(
            share(ratios(tree, case, 0)), share(shuffled_ratios(tree, case))
        ),
        reason=INVERTED if case == DEEP else "",
        measure=f"share of heads with a ratio above {MARGIN}",
    )


INVERTED = (
    "heads do tell topics apart, the other way round. In the last layer [MASK], which has no topic "
    "of its own, weighs words of the document's main topic less than others (see the claim on it): "
    "it knows the document from the layers below. Why the first layer, whose input is added to its "
    "output, looks at topics other than the query's is not explained here. A single layer adds "
    "nothing and looks at its own topic."
)


def _apart() -> Claim:
    def share(values: np.ndarray) -> np.ndarray:
        return _share(np.abs(np.log(values)) > np.log(MARGIN))

    return Claim(
        key="topics-in-most-heads",
        sentence="In a model of all layers, most heads tell the topics apart, one way or the "
        "other.",
        source="beyond the paper",
        paper="not stated",
        statistic=lambda tree: share(ratios(tree, DEEP)),
        criterion=above(0.5),
        control_sentence="the larger share of the untrained twin and of topics shuffled among "
        "words",
        control=lambda tree: np.maximum(
            share(ratios(tree, DEEP, 0)), share(shuffled_ratios(tree, DEEP))
        ),
        measure=f"share of heads with a ratio above {MARGIN} or below its inverse",
    )


def _main_topic() -> Claim:
    def ratio(tree: xr.DataTree, case: str) -> np.ndarray:
        values = select(tree, "main_topic", case).isel(snapshot=-1).to_numpy()
        return np.asarray(values[:, -1 if case == DEEP else 0].mean(axis=-1))

    return Claim(
        key="away-from-main-topic",
        sentence="In the last of all layers [MASK], which has no topic of its own, looks away from "
        "the document's main topic.",
        reason="not by a tenth in every seed.",
        source="beyond the paper: why heads look at other topics",
        paper="not stated",
        statistic=lambda tree: ratio(tree, DEEP),
        criterion=below(1 / MARGIN),
        control_sentence="the single layer, whose [MASK] cannot know the document",
        control=lambda tree: ratio(tree, SHALLOW),
        measure="factor on the weight of a word if its topic is the main one, mean over heads",
    )


def growth_at_half(norms: np.ndarray, mover: int, other: int) -> np.ndarray:
    """Return the share of one norm's growth that is done when another is half-way.

    Args:
        norms: shape ``(seed, step, matrix, layer)``.
        mover: matrix whose clock it is; half-way is the first reading at which it has made half of
            its largest change.
        other: matrix that is looked at.

    Returns:
        Shape ``(seed, layer)``.
    """
    change = np.abs(norms - norms[:, :1])
    change = change / change.max(axis=1, keepdims=True)
    half = (change[:, :, mover] >= 0.5).argmax(axis=1)
    return np.asarray(np.take_along_axis(change[:, :, other], half[:, None], axis=1)[:, 0])


def stage_overlap(tree: xr.DataTree, exchanged: bool) -> np.ndarray:
    """Return the growth of W^K and W^Q, the larger, when W^V is half-way, ``(seed, layer)``.

    ``exchanged`` asks for that of W^V when W^K or W^Q, the earlier, is half-way.
    """
    norms = select(tree, "norm", DEEP).to_numpy()
    if exchanged:
        return np.minimum(growth_at_half(norms, 0, 2), growth_at_half(norms, 1, 2))
    return np.maximum(growth_at_half(norms, 2, 0), growth_at_half(norms, 2, 1))


def _stages() -> Claim:
    return Claim(
        key="two-stage-every-layer",
        sentence="Training has two stages in every layer: W^V is half-way before W^K and W^Q have "
        "made a tenth of their growth.",
        source="Figs 4 and 5",
        paper="visible in the figures",
        statistic=lambda tree: stage_overlap(tree, False).max(axis=1),
        criterion=below(0.1),
        control_sentence="roles exchanged: W^V when W^K or W^Q is half-way",
        control=lambda tree: stage_overlap(tree, True).min(axis=1),
        reason="the layers differ: in some W^K and W^Q start while W^V still grows (see the table "
        "of layers).",
        measure="growth of W^K or W^Q, the larger, when W^V is half-way, in the worst layer",
    )


def _mean_stage() -> Claim:
    return Claim(
        key="values-first",
        sentence="W^V leads: it is half-way when W^K and W^Q have made less than a quarter of "
        "their growth, mean over layers.",
        source="Figs 4 and 5",
        paper="visible in the figures",
        statistic=lambda tree: stage_overlap(tree, False).mean(axis=1),
        criterion=below(0.25),
        control_sentence="roles exchanged: W^V when W^K or W^Q is half-way",
        control=lambda tree: stage_overlap(tree, True).mean(axis=1),
        reason="Adam rescales the small gradients of W^K and W^Q, so they move from the first "
        "steps on; W^V leads by less than asked for (see the norms over training).",
        measure="growth of W^K or W^Q, the larger, when W^V is half-way, mean over layers",
    )
