"""The loss of a full batch that does not fit in memory at once."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from attnscope.engines.parameters import Loss, gradients, scalar_loss, views
from attnscope.errors import AttnscopeError


class Chunked:
    """A mean over all rows, from means over chunks of them: L = Σ_c (n_c / n) L_c.

    Forward and backward pass of a chunk are done before the next one begins, so that memory holds
    one chunk's graph and one gradient, whatever the number of rows. Value and gradient are those of
    the whole batch up to rounding, for a loss that is a mean over rows: no batch normalisation, no
    dropout.

    Example:
        A loss as for mini-batches, and 10,000 rows of which 500 fit::

            def loss(model, rows):
                return F.cross_entropy(model(x[rows]), y[rows])

            attnscope.train(model, Chunked(loss, rows=10_000, size=500), Flow(), ...)

    Args:
        loss: ``loss(model, rows)`` is the mean over the rows of a tensor of row numbers.
        rows: how many rows there are.
        size: rows in a chunk; the last one may have fewer.
    """

    any_device: ClassVar[bool] = True

    def __init__(self, loss: Loss, *, rows: int, size: int) -> None:
        for name, value in (("rows", rows), ("size", size)):
            if value < 1:
                raise AttnscopeError(f"Chunked({name}={value}): expected 1 or more.")
        self.loss, self.rows = loss, rows
        self.chunks = torch.arange(rows).split(size)

    def __call__(self, model: nn.Module) -> Tensor:
        """Return the mean as one tensor; its graph holds all chunks at once."""
        parts = [self._share(c) * scalar_loss(self.loss, model, c) for c in self.chunks]
        return torch.stack([part.reshape(()) for part in parts]).sum()

    def value_and_gradient(self, model: nn.Module, out: Tensor, *rows: Tensor) -> float:
        """Write the gradient into ``out`` and return the loss, a chunk at a time."""
        if rows:
            raise AttnscopeError(
                f"Chunked was asked for a mini-batch of {len(rows[0])} rows: expected an engine "
                "of the full batch, without batch_size; or give it the loss itself."
            )
        trained = [p for p in model.parameters() if p.requires_grad]
        parts, total = views(trained, out.zero_()), 0.0
        for chunk in self.chunks:
            value, share = scalar_loss(self.loss, model, chunk), self._share(chunk)
            for part, slope in zip(parts, gradients(value, trained, model), strict=True):
                if slope is not None:
                    part.add_(slope, alpha=share)
            total += share * value.item()
        return total

    def _share(self, chunk: Tensor) -> float:
        return len(chunk) / self.rows
