"""The claims of ``song2024.landscape``: what "smoother" comes to in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import below
from attnscope.studies.old import Claim
from attnscope.studies.song2024._landscape_readings import (
    BLOCKS,
    GAUSSIAN,
    SOFTMAX,
    rough,
    surfaces_of,
    top,
)

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape import Landscape

FIGURE = "poster, landscape visualisation and Fig 3"
SAYS = "'exhibit a more smooth landscape compared to transformers with Softmax attention'"
PAIR = next(iter(BLOCKS))
ITSELF = "softmax beside itself: no difference is not enough"
REASON = (
    "over a few seeds either kernel can be the sharper one; runs that end at different losses do "
    "not compare, since Hessians of cross-entropy shrink with the loss."
)


def claims(study: Landscape) -> tuple[Claim, ...]:
    """Return three readings of one sentence; each needs a margin that chance does not reach."""

    def by_draw(tree: xr.DataTree, case: str, field: str) -> np.ndarray:
        found = rough(surfaces_of(tree, case), study.radius)
        return np.array([np.mean([getattr(one, field) for one in seed]) for seed in found])

    def bends(tree: xr.DataTree, case: str) -> np.ndarray:
        return by_draw(tree, case, "nonconvex") - by_draw(tree, SOFTMAX, "nonconvex")

    def uneven(tree: xr.DataTree, case: str) -> np.ndarray:
        return by_draw(tree, case, "variation") / by_draw(tree, SOFTMAX, "variation")

    def sharp(tree: xr.DataTree, case: str) -> np.ndarray:
        return top(tree, case, PAIR) / top(tree, SOFTMAX, PAIR)

    return (
        Claim(
            key="sharpness",
            sentence="With the Gaussian kernel the loss is less sharp in W^Q and W^K: its top "
            "Hessian eigenvalue there is less than half of that with softmax.",
            source=FIGURE,
            paper=SAYS,
            statistic=lambda tree: sharp(tree, GAUSSIAN),
            criterion=below(0.5),
            control_sentence=ITSELF,
            control=lambda tree: sharp(tree, SOFTMAX),
            reason=REASON,
            measure="largest eigenvalue of the Hessian in W^Q and W^K of all layers, Gaussian over "
            "softmax",
        ),
        Claim(
            key="bends-down",
            sentence="With the Gaussian kernel fewer points of the plane in W^Q and W^K bend down.",
            source=FIGURE,
            paper=SAYS,
            statistic=lambda tree: bends(tree, GAUSSIAN),
            criterion=below(-0.05),
            control_sentence=ITSELF,
            control=lambda tree: bends(tree, SOFTMAX),
            each=False,
            measure="share of the grid where the surface's 2 × 2 Hessian has a negative "
            "eigenvalue, mean over draws, Gaussian minus softmax",
        ),
        Claim(
            key="even-curvature",
            sentence="With the Gaussian kernel the curvature over the plane varies less, relative "
            "to its mean.",
            source=FIGURE,
            paper=SAYS,
            statistic=lambda tree: uneven(tree, GAUSSIAN),
            criterion=below(0.8),
            control_sentence=ITSELF,
            control=lambda tree: uneven(tree, SOFTMAX),
            each=False,
            measure="standard deviation of the surface's Laplacian over its mean size, mean over "
            "draws, Gaussian over softmax",
        ),
    )
