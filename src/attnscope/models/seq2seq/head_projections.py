"""One projection for each attention head, as in the released code of Snell 2021.

The paper adds up the contexts of the heads (eq 21), so that the output network reads one sum
whatever head it came from. The released code maps the context of each head by a matrix of its own
and takes the mean,

    c_t = (1/K) Σ_k (P^(k) c_t^(k) + p^(k)).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class HeadProjections(nn.Module):
    """Maps the contexts of K heads to one.

    P and p start uniform up to 1/√E, as a linear layer of PyTorch does.

    Args:
        heads: K.
        width: E, length of a context.
        hidden: H, length of what comes out.
        mean: take the mean over heads; else the sum.
    """

    def __init__(self, heads: int, width: int, hidden: int, *, mean: bool) -> None:
        super().__init__()
        bound = width**-0.5
        self.weight = nn.Parameter(torch.empty(heads, width, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(heads, hidden).uniform_(-bound, bound))
        self.scale = 1 / heads if mean else 1.0

    def forward(self, weights: Tensor, encoder: Tensor) -> Tensor:
        """Return the context.

        Args:
            weights: α, shape ``(row, head, T, L)``.
            encoder: h_l, shape ``(row, L, E)``.

        Returns:
            Shape ``(row, T, H)``.
        """
        rows, heads, steps, length = weights.shape
        contexts = weights.transpose(1, 2).reshape(rows, steps * heads, length) @ encoder
        # Contexts side by side and P one below the other: one product, which sums over heads.
        together = contexts.view(rows * steps, -1) @ (self.scale * self.weight).flatten(0, 1)
        return (together + self._bias()).view(rows, steps, -1)

    def at_one_position(self, encoder: Tensor) -> Tensor:
        """Return the context if all heads looked at l alone, for each l, ``(row, L, H)``."""
        return encoder @ (self.scale * self.weight.sum(dim=0)) + self._bias()

    def _bias(self) -> Tensor:
        return self.scale * self.bias.sum(dim=0)
