"""What is known about a training before its first step: the optimizer, and how blocks are built.

Advice that does not know it is no advice: "use Adam" under AdamW, "warm up" in a warm-up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from attnscope.watching.moment import AttentionPoint
from attnscope.watching.undisturbed import bare

SETTINGS = ("lr", "momentum", "betas", "eps", "weight_decay", "nesterov", "maximize")
NORM = re.compile(r"norm|^ln", re.IGNORECASE)


def optimizer_facts(
    optimizer: torch.optim.Optimizer | None, model: nn.Module
) -> dict[str, Any] | None:
    """Return name, settings by group, and the parameters that no group holds, as JSON values."""
    groups = getattr(optimizer, "param_groups", None)
    if optimizer is None or not isinstance(groups, list):
        return None
    held = {id(p) for group in groups for p in group.get("params", ())}
    left = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    inner = getattr(optimizer, "optimizer", optimizer)
    return {
        "name": type(inner).__name__,
        "groups": [
            {key: _plain(group[key]) for key in SETTINGS if key in group}
            | {"parameters": sum(p.numel() for p in group.get("params", ()))}
            for group in groups
        ],
        # A frozen model is left out on purpose; more names than these say nothing new.
        "left_out": left[:50],
    }


def block_facts(model: nn.Module, points: Sequence[AttentionPoint]) -> dict[str, Any]:
    """Return what advice has to know about the blocks that hold attention, as JSON values."""
    inside = bare(model)
    modules = dict(inside.named_modules())
    norms = [part for part in modules.values() if NORM.search(type(part).__name__)]
    first = next(
        (part.norm_first for part in modules.values() if hasattr(part, "norm_first")), None
    )
    held = [modules.get(point.name) for point in points]
    return {
        "attentions": len(points),
        "norms": len(norms),
        # Queries and keys that are normalised inside attention bound its logits.
        "query_key_norm": any(
            re.search(r"(q|k|query|key)_?(layer)?_?norm", name.lower())
            for part in held
            if part is not None
            for name, _ in part.named_modules()
        ),
        "norm_first": first if isinstance(first, bool) else None,
        "frozen": sum(p.numel() for p in model.parameters() if not p.requires_grad),
    }


def _plain(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else None
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value if isinstance(value, bool | int | float | str) else None
