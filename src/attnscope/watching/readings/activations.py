"""How large the states of a model become from block to block."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.depth import lacks_states
from attnscope.watching.readings.offer import Offer, WatchedModel


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family; states are the outputs of the attention's blocks."""
    kinds: tuple[tuple[str, Callable[[Tensor], Tensor], str], ...] = (
        (
            "activation_norm",
            lambda x: torch.linalg.vector_norm(x, dim=-1).mean(),
            "norm of a position's state behind the layer's block, mean over positions",
        ),
        (
            "largest_activation",
            lambda x: x.abs().max(),
            "largest entry of a state behind the layer's block: massive activations show here",
        ),
    )
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
        for name, measure, meaning in kinds
    ]


def _read(measure: Callable[[Tensor], Tensor]) -> Callable[[Moment], Tensor]:
    def read(moment: Moment) -> Tensor:
        found = moment.evaluation
        values = [
            measure(_real(states, real)).cpu().double()
            if states.numel() and real.any()
            else torch.tensor(float("nan"), dtype=torch.float64)
            for states, real in zip(found.hidden, found.asking, strict=True)
        ]
        return torch.stack(values)

    return read


def _real(states: Tensor, real: Tensor) -> Tensor:
    """Return the states of positions that are no padding, in single precision at least."""
    kept = states.detach()[real.to(states.device)]
    return kept.float() if kept.itemsize < 4 else kept
