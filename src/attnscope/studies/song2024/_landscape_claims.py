"""The claims of ``song2024.landscape``: what "smoother" comes to in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, below
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


def claims(study: Landscape) -> tuple[Claim, ...]:
    """Return three readings of one sentence; each needs a margin that chance does not reach."""

    def by_draw(tree: xr.DataTree, case: str, field: str, draws: slice) -> np.ndarray:
        found = rough(surfaces_of(tree, case)[:, draws], study.radius)
        return np.array([np.mean([getattr(one, field) for one in seed]) for seed in found])

    whole, first, second = slice(None), slice(0, None, 2), slice(1, None, 2)

    def bends(tree: xr.DataTree) -> np.ndarray:
        return by_draw(tree, GAUSSIAN, "nonconvex", whole) - by_draw(
            tree, SOFTMAX, "nonconvex", whole
        )

    def uneven(tree: xr.DataTree) -> np.ndarray:
        return by_draw(tree, GAUSSIAN, "variation", whole) / by_draw(
            tree, SOFTMAX, "variation", whole
        )

    def between_draws(tree: xr.DataTree, field: str) -> tuple[np.ndarray, np.ndarray]:
        return by_draw(tree, SOFTMAX, field, first), by_draw(tree, SOFTMAX, field, second)

    def other_bends(tree: xr.DataTree) -> np.ndarray:
        one, two = between_draws(tree, "nonconvex")
        return one - two

    def other_uneven(tree: xr.DataTree) -> np.ndarray:
        one, two = between_draws(tree, "variation")
        return one / two

    return (
        Claim(
            key="sharpness",
            sentence="With the Gaussian kernel the loss is less sharp in W^Q and W^K: its top "
            "Hessian eigenvalue there is less than half of that with softmax.",
            source=FIGURE,
            paper=SAYS,
            statistic=lambda tree: top(tree, GAUSSIAN, PAIR) / top(tree, SOFTMAX, PAIR),
            criterion=below(0.5),
            control_sentence="softmax runs in place of the Gaussian ones, each beside that of the "
            "next seed, the smaller eigenvalue over the larger",
            control=lambda tree: _apart(top(tree, SOFTMAX, PAIR)),
            measure="largest eigenvalue of the Hessian in W^Q and W^K of all layers, Gaussian over "
            "softmax",
        ),
        Claim(
            key="bends-down",
            sentence="With the Gaussian kernel fewer points of the plane in W^Q and W^K bend down.",
            source=FIGURE,
            paper=SAYS,
            statistic=bends,
            criterion=below(-0.05),
            control_sentence="softmax on the even draws of the directions beside softmax on the "
            "odd ones",
            control=other_bends,
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
            statistic=uneven,
            criterion=below(0.8),
            control_sentence="softmax on the even draws of the directions beside softmax on the "
            "odd ones",
            control=other_uneven,
            each=False,
            measure="standard deviation of the surface's Laplacian over its mean size, mean over "
            "draws, Gaussian over softmax",
        ),
    )


def _apart(values: np.ndarray) -> np.ndarray:
    """Return the smaller over the larger of every value and its neighbour."""
    ratio = values / np.roll(values, 1)
    return np.minimum(ratio, 1 / ratio)
