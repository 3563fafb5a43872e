"""A module's trainable parameters as one flat vector, without copying."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError

Loss = Callable[..., Tensor]
"""A loss is called as ``loss(model)``; with mini-batches as ``loss(model, rows)``.

It may have a method ``value_and_gradient(model, out, *rows) -> float | None`` besides, see
:mod:`attnscope.models.objective`. That is asked on the CPU, and elsewhere if the loss has an
attribute ``any_device`` that is true.
"""


class FlatParameters:
    """The trainable parameters of a module, living side by side in :attr:`vector`.

    While it is in use the module's parameters are views of ``vector``: writing the vector moves
    the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.tensors = [p for p in model.parameters() if p.requires_grad]
        if not self.tensors:
            raise AttnscopeError(
                f"{type(model).__name__} has no parameter that requires a gradient: expected at "
                "least one to train."
            )
        kinds = {(p.dtype, p.device) for p in self.tensors}
        if len(kinds) > 1:
            raise AttnscopeError(
                f"{type(model).__name__} has parameters of {sorted(map(str, kinds))}: expected one "
                "dtype on one device."
            )
        if self.tensors[0].dtype not in (torch.float32, torch.float64):
            raise AttnscopeError(
                f"{type(model).__name__} has parameters of {self.tensors[0].dtype}: expected "
                "torch.float32 or torch.float64, since the steps of a trajectory are lost in the "
                "rounding of shorter numbers; model.float() gives the first."
            )
        self._own_storage = [p.data for p in self.tensors]
        self._gradient: tuple[Tensor, list[Tensor]] | None = None
        first = self.tensors[0]
        self.vector = torch.empty(
            sum(p.numel() for p in self.tensors), dtype=first.dtype, device=first.device
        )
        for p, part in zip(self.tensors, self.parts(self.vector), strict=True):
            part.copy_(p.data)
            p.data = part

    def parts(self, vector: Tensor) -> list[Tensor]:
        """Return the view of each parameter into a flat vector."""
        return views(self.tensors, vector)

    def release(self) -> None:
        """Give each parameter storage of its own again, holding the current value."""
        for p, own in zip(self.tensors, self._own_storage, strict=True):
            own.copy_(p.data)
            p.data = own

    def value_and_gradient(self, loss: Loss, model: nn.Module, out: Tensor, *rows: Tensor) -> float:
        """Write the gradient of the loss into the flat vector ``out``; return the loss."""
        by_hand = getattr(loss, "value_and_gradient", None)
        if self.vector.device.type != "cpu" and not getattr(loss, "any_device", False):
            by_hand = None
        known: float | None = None if by_hand is None else by_hand(model, out, *rows)
        if known is not None:
            return known
        value = scalar_loss(loss, model, *rows)
        slopes = gradients(value, self.tensors, model)
        if self._gradient is None or self._gradient[0] is not out:
            # A descent writes to one vector: cutting forty views of it at every step would show.
            self._gradient = out, self.parts(out)
        for part, g in zip(self._gradient[1], slopes, strict=True):
            if g is None:
                part.zero_()
            else:
                part.copy_(g)
        return value.item()


def check_memory(model: nn.Module, vectors: int) -> None:
    """Refuse a model of which so many copies of its parameters do not fit in what is free.

    Raises:
        AttnscopeError: they do not.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    need = vectors * sum(p.numel() * p.element_size() for p in trained)
    free = free_memory()
    if need > free and all(p.device.type == "cpu" for p in trained):
        raise AttnscopeError(
            f"a flow of the {sum(p.numel() for p in trained):,} parameters of "
            f"{type(model).__name__} holds {vectors} vectors of their length, {need / 1e9:.2g} GB, "
            f"and {free / 1e9:.2g} GB are free: expected room for them; Descent holds two."
        )


def free_memory() -> float:
    """Return the bytes that this machine can still give; infinity where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return math.inf
    found = (line.split() for line in lines if line.startswith("MemAvailable:"))
    return next((1024.0 * float(words[1]) for words in found), math.inf)


@contextmanager
def flattened(model: nn.Module) -> Iterator[FlatParameters]:
    """Flatten the parameters for the duration of a run."""
    flat = FlatParameters(model)
    try:
        yield flat
    finally:
        flat.release()


def views(tensors: Sequence[Tensor], vector: Tensor) -> list[Tensor]:
    """Return the view of each tensor into a flat vector that holds them side by side.

    Matrices with many more rows than columns lie there column after column: a dictionary of
    thousands of short vectors is several times faster to work on in that order.
    """
    parts = []
    for p, part in zip(tensors, vector.split([p.numel() for p in tensors]), strict=True):
        tall = p.ndim == 2 and p.shape[0] >= 16 * p.shape[1]
        parts.append(part.view(p.shape[::-1]).T if tall else part.view(p.shape))
    return parts


def gradients(
    value: Tensor, tensors: Sequence[Tensor], model: nn.Module
) -> tuple[Tensor | None, ...]:
    """Differentiate a loss; ``None`` stands for a tensor that it does not depend on."""
    if not value.requires_grad:
        raise AttnscopeError(
            f"the loss of {type(model).__name__} depends on none of its trainable parameters: "
            "expected a loss with a gradient."
        )
    return torch.autograd.grad(value, tensors, allow_unused=True)


def scalar_loss(loss: Loss, model: nn.Module, *args: Any) -> Tensor:
    """Call the loss and check that it is a scalar tensor."""
    value = loss(model, *args)
    if not isinstance(value, Tensor) or value.numel() != 1:
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else value
        raise AttnscopeError(f"the loss returned {what!r}: expected a tensor with one element.")
    return value
