"""What there is only while a step is taken: its gradients, and the weights before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn


def hear_steps(optimizer: Any, hear: Callable[..., None]) -> list[Any]:
    """Have a function called before every step of an optimizer; return what ends that.

    One that cannot be heard is said.
    """
    inside = stepping(optimizer)
    try:
        return [inside.register_step_pre_hook(hear)]
    except Exception as error:
        warnings.warn(
            f"attnscope: the optimizer, a {type(optimizer).__name__}, cannot be heard "
            f"({type(error).__name__}: {error}). Gradients are those that the parameters have when "
            "scope.step is called; the rest is recorded.",
            stacklevel=5,
        )
        return []


def stepping(optimizer: Any) -> Any:
    """Return the optimizer that takes the steps, inside what accelerate or an engine wraps."""
    while True:
        inner = getattr(optimizer, "optimizer", None)
        if inner is None or inner is optimizer or not hasattr(inner, "param_groups"):
            return optimizer
        optimizer = inner


def gradients_of(model: nn.Module, optimizer: Any = None) -> dict[str, Tensor]:
    """Return gradients by parameter name: copies as an optimizer sees them, or what is there.

    Args:
        model: whose parameters.
        optimizer: that is about to step; ``None`` after the step.
    """
    found = {n: p.grad.detach() for n, p in model.named_parameters() if p.grad is not None}
    if optimizer is None:
        return found
    copies = {name: gradient.clone() for name, gradient in found.items()}
    # A fused optimizer is handed the scale of the loss and divides inside its own step.
    scale = getattr(optimizer, "grad_scale", None)
    if scale is not None:
        for gradient in copies.values():
            gradient.div_(scale.to(gradient.device))
    return copies


def weights_of(model: nn.Module, names: Sequence[frozenset[str] | None]) -> dict[str, Tensor]:
    """Return copies of weights by parameter name.

    Args:
        model: whose parameters.
        names: of those that somebody needs, several sets; ``None`` in it for all.
    """
    wanted = None if None in names else frozenset().union(*(part for part in names if part))
    return {
        name: p.detach().clone()
        for name, p in model.named_parameters()
        if wanted is None or name in wanted
    }
