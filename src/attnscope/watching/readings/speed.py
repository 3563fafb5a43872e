"""How fast a model learns: the learning rate in force, and the speed of every block."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.offer import Offer, WatchedModel
from attnscope.watching.readings.weights import blocks

SAMPLE = 4096
"""So many weights of a block stand for all of it: a copy of every weight would cost a pass over the
model's memory at every reading."""


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    groups = blocks(watched.model)
    optimizer = watched.optimizer

    def rates(_: Moment) -> Tensor:
        assert optimizer is not None
        return torch.tensor(
            [float(group.get("lr", math.nan)) for group in optimizer.param_groups],
            dtype=torch.float64,
        )

    speed = Reading(
        "learning_speed",
        _Speed(groups),
        ("block",),
        meaning="change of a block's weights per step since the last reading, over their norm; "
        f"from {SAMPLE} weights where it has more",
    )
    rate = Reading(
        "learning_rate",
        rates,
        ("group",),
        meaning="learning rate of every parameter group, as the optimizer has it",
    )
    return [
        Offer(speed, True, "" if groups else "parameters, and the model has none"),
        Offer(rate, True, "" if optimizer is not None else "the optimizer: optimizer=..."),
    ]


class _Speed:
    """Keeps the sampled weights of the last reading."""

    def __init__(self, groups: dict[str, list[str]]) -> None:
        self.groups = groups
        self.last: tuple[int, list[Tensor]] | None = None
        self.found: Tensor | None = None

    def __call__(self, moment: Moment) -> Tensor | None:
        if self.last is not None and self.last[0] == moment.step:
            # Some blocks may be asked for beside all of them.
            return self.found
        now = dict(moment.model.named_parameters())
        sampled = [self._sample(names, now) for names in self.groups.values()]
        before, self.last = self.last, (moment.step, sampled)
        self.found = None
        if before is None or moment.step <= before[0]:
            return None
        steps = moment.step - before[0]
        self.found = (
            torch.stack(
                [
                    torch.linalg.vector_norm(new - old) / torch.linalg.vector_norm(old) / steps
                    for new, old in zip(sampled, before[1], strict=True)
                ]
            )
            .cpu()
            .double()
        )
        return self.found

    def _sample(self, names: list[str], now: Mapping[str, Tensor]) -> Tensor:
        """Return weights of a block, the same places at every reading, as a copy."""
        share = max(1, SAMPLE // len(names))
        parts = []
        for name in names:
            flat = now[name].detach().flatten()
            step = max(1, flat.numel() // share)
            wide = torch.promote_types(flat.dtype, torch.float32)
            parts.append(flat[::step].to("cpu", wide, copy=True))
        return torch.cat(parts)
