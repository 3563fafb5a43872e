"""The claims of ``song2024.landscape``: what "smoother" comes to in numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, below
from attnscope.probes.landscapes.roughness import Roughness, roughness
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

CASES = SOFTMAX, GAUSSIAN, NORMALISED = "softmax", "gaussian", "normalised-gaussian"
"""The kernel of the second stage."""
PAIR = ("W_Q", "W_K")
BLOCKS: dict[str, str | tuple[str, ...]] = {
    ", ".join(PAIR): PAIR,
    **{name: name for name in ("W_Q", "W_K", "W_V", "W_O")},
    "all": "*",
}
"""Blocks whose curvature is measured; the first is that of the poster's planes."""


def surfaces_of(run: Readings, case: str) -> xr.DataArray:
    """Return the surfaces at the end, along ``seed, draw, b, a``."""
    return final(run.of(case).surface)


def rough(study: Landscape, run: Readings, case: str) -> list[list[Roughness]]:
    """Return the roughness of every surface, by seed and draw."""
    surfaces, axis = surfaces_of(run, case).to_numpy(), study.axis
    return [[roughness(axis, axis, surface) for surface in seed] for seed in surfaces]


def claims_of(study: Landscape) -> list[Claim]:
    """Return three readings of one sentence; each needs a margin that chance does not reach."""

    def by_draw(run: Readings, case: str, field: str) -> np.ndarray:
        found = rough(study, run, case)
        return np.array([np.mean([getattr(one, field) for one in seed]) for seed in found])

    def bends(run: Readings, case: str) -> np.ndarray:
        return by_draw(run, case, "nonconvex") - by_draw(run, SOFTMAX, "nonconvex")

    def uneven(run: Readings, case: str) -> np.ndarray:
        return by_draw(run, case, "variation") / by_draw(run, SOFTMAX, "variation")

    def sharp(run: Readings, case: str) -> xr.DataArray:
        top = final(run.largest).sel(block=", ".join(PAIR))
        return top.sel(case=case) / top.sel(case=SOFTMAX)

    smoother = partial(
        Claim,
        given=GAUSSIAN,
        control=(SOFTMAX, "softmax beside itself: no difference is not enough"),
        source="poster, landscape visualisation and Fig 3",
        paper="'exhibit a more smooth landscape compared to transformers with Softmax attention'",
    )
    return [
        smoother(
            "sharpness",
            "With the Gaussian kernel the loss is less sharp in W^Q and W^K: its top Hessian "
            "eigenvalue there is less than half of that with softmax.",
            sharp,
            holds=below(0.5),
            measure="largest eigenvalue of the Hessian in W^Q and W^K of all layers, Gaussian over "
            "softmax",
            reason="over a few seeds either kernel can be the sharper one; runs that end at "
            "different losses do not compare, since Hessians of cross-entropy shrink with the "
            "loss.",
        ),
        smoother(
            "bends-down",
            "With the Gaussian kernel fewer points of the plane in W^Q and W^K bend down.",
            bends,
            holds=below(-0.05),
            measure="share of the grid where the surface's 2 × 2 Hessian has a negative "
            "eigenvalue, mean over draws, Gaussian minus softmax",
            each=False,
        ),
        smoother(
            "even-curvature",
            "With the Gaussian kernel the curvature over the plane varies less, relative to its "
            "mean.",
            uneven,
            holds=below(0.8),
            measure="standard deviation of the surface's Laplacian over its mean size, mean over "
            "draws, Gaussian over softmax",
            each=False,
        ),
    ]
