"""G = ∂L/∂(W^Kᵀ W^Q) at uniform attention, of any model that exposes its attention logits."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError


def score_gradient(
    loss: Callable[[Tensor], Tensor],
    shape: tuple[int, int],
    d_a: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Differentiate a model's loss by a matrix added to its attention logits, at zero.

    >>> scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    >>> score_gradient(lambda added: (scores * added).sum(), (2, 2), d_a=4).tolist()
    [[0.5, 1.0], [1.5, 2.0]]

    Args:
        loss: from a matrix A, which the model adds to its logits, to the training loss. For
            G of the onset the model's own logits are zero and key i, query j gets A[w_i, w_j].
        shape: (keys, queries); for one-hot inputs both are the vocabulary.
        d_a: given when the model's logits are W^Kᵀ W^Q/√d_a: the gradient by A is divided by √d_a
            to become that by W^Kᵀ W^Q. Left out when the logits are not divided.
        dtype: that of the model.

    Raises:
        AttnscopeError: the loss does not depend on the matrix.
    """
    added = torch.zeros(shape, dtype=dtype, requires_grad=True)
    with torch.enable_grad():
        value = loss(added)
        gradient = (
            torch.autograd.grad(value, added, allow_unused=True)[0] if value.requires_grad else None
        )
    if gradient is None:
        raise AttnscopeError(
            "the loss does not depend on the score matrix: expected a loss that adds it to the "
            "attention logits."
        )
    return gradient if d_a is None else gradient / math.sqrt(d_a)
