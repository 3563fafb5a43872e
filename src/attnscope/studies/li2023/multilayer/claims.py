"""The claims of ``li2023.multilayer``: topics in heads, and two stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.studies.li2023._held_out import BASELINES, TRAINED, ratio
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.multilayer.study import Multilayer

DEEP, SHALLOW = "all layers", "one layer"
MARGIN = 1.1
"""Least factor between same-topic and different-topic attention that counts."""
MATRICES = ("W^K", "W^Q", "W^V")
KEYS, QUERIES, VALUES = MATRICES
BASELINE = "the larger share of the untrained twin and of topics shuffled among words"
EXCHANGED = "roles exchanged: W^V when W^K or W^Q is half-way"
OVERLAP = "growth of W^K or W^Q, the larger, when W^V is half-way"
INVERTED = (
    "heads do tell topics apart, the other way round. In the last layer [MASK], which has no topic "
    "of its own, weighs words of the document's main topic less than others (see the claim on it): "
    "it knows the document from the layers below. Why the first layer, whose input is added to its "
    "output, looks at topics other than the query's is not explained here. A single layer adds "
    "nothing and looks at its own topic."
)


def claims(_: Multilayer) -> list[Claim]:
    """Return what is said of deeper models."""
    return [
        *(
            Claim(
                f"same-topic-{key}",
                f"In a model of {case}, most heads attend more to other words of the topic than to "
                "words of other topics.",
                share,
                (case, False, TRAINED),
                above(0.5),
                ((case, False, BASELINES), BASELINE),
                source,
                paper,
                f"share of heads with a ratio above {MARGIN}",
                reason=reason,
            )
            for key, case, source, paper, reason in (
                (
                    "deep",
                    DEEP,
                    "Table 1, of trained models on Wikipedia",
                    "attention ratio 1.2 to 2.1, mean over heads",
                    INVERTED,
                ),
                ("one-layer", SHALLOW, "Table 3, of one layer", "ratio 1.4 to 1.7", ""),
            )
        ),
        Claim(
            "topics-in-most-heads",
            "In a model of all layers, most heads tell the topics apart, one way or the other.",
            share,
            (DEEP, True, TRAINED),
            above(0.5),
            ((DEEP, True, BASELINES), BASELINE),
            "beyond the paper",
            "not stated",
            f"share of heads with a ratio above {MARGIN} or below its inverse",
        ),
        Claim(
            "away-from-main-topic",
            "In the last of all layers [MASK], which has no topic of its own, looks away from the "
            "document's main topic.",
            lambda run, case: (
                final(run.of(case).main_topic).isel(layer=-1 if case == DEEP else 0).mean("head")
            ),
            DEEP,
            below(1 / MARGIN),
            (SHALLOW, "the single layer, whose [MASK] cannot know the document"),
            "beyond the paper: why heads look at other topics",
            "not stated",
            "factor on the weight of a word if its topic is the main one, mean over heads",
            reason="not by a tenth in every seed.",
        ),
        Claim(
            "two-stage-every-layer",
            "Training has two stages in every layer: W^V is half-way before W^K and W^Q have made "
            "a tenth of their growth.",
            lambda run, exchanged: stage_overlap(run, exchanged).reduce(
                np.min if exchanged else np.max, "layer"
            ),
            False,
            below(0.1),
            (True, EXCHANGED),
            "Figs 4 and 5",
            "visible in the figures",
            f"{OVERLAP}, in the worst layer",
            reason="the layers differ: in some W^K and W^Q start while W^V still grows (see the "
            "table of layers).",
        ),
        Claim(
            "values-first",
            "W^V leads: it is half-way when W^K and W^Q have made less than a quarter of their "
            "growth, mean over layers.",
            lambda run, exchanged: stage_overlap(run, exchanged).mean("layer"),
            False,
            below(0.25),
            (True, EXCHANGED),
            "Figs 4 and 5",
            "visible in the figures",
            f"{OVERLAP}, mean over layers",
            reason="Adam rescales the small gradients of W^K and W^Q, so they move from the first "
            "steps on; W^V leads by less than asked for (see the norms over training).",
        ),
    ]


def ratios(reading: xr.DataArray) -> xr.DataArray:
    """Return same-topic over different-topic attention of the layers that there are."""
    return ratio(reading).dropna("layer", how="all")


def share(run: Readings, given: tuple[str, bool, Any]) -> np.ndarray:
    """Return the share of heads that tell topics apart, the largest in some readings of a case."""
    case, either_way, readings = given
    found = []
    for name, when in readings:
        values = ratios(when(run.of(case).get(name)))
        apart = values > MARGIN
        if either_way:
            apart = abs(xr.apply_ufunc(np.log, values)) > np.log(MARGIN)
        found.append(apart.mean(("layer", "head")))
    return np.max(found, axis=0)


def growth_at_half(norms: xr.DataArray, mover: str, other: str) -> xr.DataArray:
    """Return the share of one norm's growth that is done when another is half-way.

    Args:
        norms: along ``step``, ``matrix`` and others.
        mover: matrix whose clock it is; half-way is the first reading at which it has made half of
            its largest change.
        other: matrix that is evaluated.
    """
    change = abs(norms - initial(norms))
    change = change / change.max("step")
    half = (change.sel(matrix=mover) >= 0.5).argmax("step")
    return change.sel(matrix=other).isel(step=half)


def stage_overlap(run: Readings, exchanged: bool) -> xr.DataArray:
    """Return the growth of W^K and W^Q, the larger, when W^V is half-way, seed by layer.

    ``exchanged`` asks for that of W^V when W^K or W^Q, the earlier, is half-way.
    """
    norms, sides = run.of(DEEP).norm, (KEYS, QUERIES)
    if exchanged:
        return xr.concat([growth_at_half(norms, side, VALUES) for side in sides], "side").min(
            "side"
        )
    return xr.concat([growth_at_half(norms, VALUES, side) for side in sides], "side").max("side")
