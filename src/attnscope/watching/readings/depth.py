"""Whether the positions of a row become alike from layer to layer: rank collapse over depth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attnscope.probes.rank_collapse import residual, token_similarity
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.offer import NO_PROBE, Offer, WatchedModel, array


def lacks_states(watched: WatchedModel) -> str:
    """Return what is missing for readings of states, in words; empty if nothing is."""
    lacks = watched.lacks_attention or ("" if watched.probe else NO_PROBE)
    if not lacks and (watched.first is None or not any(h.numel() for h in watched.first.hidden)):
        return "blocks with outputs (row, position, width), and none was found in the model"
    return lacks


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family; states are the outputs of the attention's blocks."""
    lacks = lacks_states(watched)
    return [
        Offer(
            Reading(
                name,
                _read(measure),
                ("layer",),
                frozenset({"attention", "probe"}),
                meaning=meaning,
            ),
            True,
            lacks,
        )
        for name, measure, meaning in (
            (
                "rank_residual",
                residual,
                "norm of X - 1 mean(X)^T over the norm of X, for the output X of the layer's "
                "block; 0 when all positions are the same",
            ),
            (
                "token_similarity",
                token_similarity,
                "mean cosine of two positions of a row, in the output of the layer's block",
            ),
        )
    ]


def _read(measure: Callable[[np.ndarray, np.ndarray], float]) -> Callable[[Moment], Tensor]:
    def read(moment: Moment) -> Tensor:
        found = moment.evaluation
        values = [
            measure(array(states), array(real)) if states.numel() else float("nan")
            for states, real in zip(found.hidden, found.asking, strict=True)
        ]
        return torch.tensor(values, dtype=torch.float64)

    return read
