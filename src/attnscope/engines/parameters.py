"""A module's trainable parameters as one flat vector, without copying."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError

Loss = Callable[..., Tensor]
"""A loss is called as ``loss(model)``; with mini-batches as ``loss(model, rows)``."""


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
        self.vector = torch.cat([p.detach().reshape(-1) for p in self.tensors])
        self._own_storage = [p.data for p in self.tensors]
        start = 0
        for p in self.tensors:
            p.data = self.vector[start : start + p.numel()].view_as(p)
            start += p.numel()

    def release(self) -> None:
        """Give each parameter storage of its own again, holding the current value."""
        for p, own in zip(self.tensors, self._own_storage, strict=True):
            own.copy_(p.data)
            p.data = own

    def gradient(self, value: Tensor, out: Tensor) -> None:
        """Write the gradient of the scalar ``value`` into the flat vector ``out``."""
        grads = torch.autograd.grad(value, self.tensors, allow_unused=True)
        flat = [
            (torch.zeros_like(p) if g is None else g).reshape(-1)
            for p, g in zip(self.tensors, grads, strict=True)
        ]
        torch.cat(flat, out=out)


@contextmanager
def flattened(model: nn.Module) -> Iterator[FlatParameters]:
    """Flatten the parameters for the duration of a run."""
    flat = FlatParameters(model)
    try:
        yield flat
    finally:
        flat.release()


def scalar_loss(loss: Loss, model: nn.Module, *args: Any) -> Tensor:
    """Call the loss and check that it is a scalar tensor."""
    value = loss(model, *args)
    if not isinstance(value, Tensor) or value.numel() != 1:
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else value
        raise AttnscopeError(f"the loss returned {what!r}: expected a tensor with one element.")
    return value
