"""One attention head whose two matrices are products: of vectors, entry by entry, or of matrices.

softmax(X S Xᵀ) X V with S = W_K W_Qᵀ of the scores and V = W_V W_Oᵀ of the values, without a scale
or a bias. In the diagonal head both are diagonal, and each entry is the product of two
numbers (Boix-Adsera et al. 2023, section 3).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MATRICES = ("KQ", "VO")
"""S and V, in the order of every first axis here."""


def attend(tokens: Tensor, scores: Tensor, values: Tensor) -> Tensor:
    """Return softmax(X S Xᵀ) X V; S and V may be given by their diagonals.

    Args:
        tokens: X, shape ``(sample, token, d)``.
        scores: S, shape ``(d, d)``, or its diagonal, ``(d,)``.
        values: V, likewise.
    """
    return attention(tokens, scores) @ _times(tokens, values)


def attention(tokens: Tensor, scores: Tensor) -> Tensor:
    """Return softmax(X S Xᵀ), shape ``(sample, query, key)``."""
    return torch.softmax(_times(tokens, scores) @ tokens.transpose(-1, -2), dim=-1)


def _times(tokens: Tensor, matrix: Tensor) -> Tensor:
    return tokens * matrix if matrix.ndim == 1 else tokens @ matrix


class FactoredHead(nn.Module):
    """A head of products, from a random start of a given size.

    Args:
        width: d, entries of a token.
        size: α, the standard deviation of every factor at the start.
        diagonal: vectors, whose product is taken entry by entry; otherwise matrices.
        generator: draws the start. It draws the same for every α.
    """

    def __init__(
        self,
        width: int,
        size: float,
        diagonal: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        shape = (2, width) if diagonal else (2, width, width)
        left, right = (
            size * torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        self.left, self.right = nn.Parameter(left), nn.Parameter(right)

    def products(self) -> Tensor:
        """Return S and V, shape ``(2, d, d)``, or their diagonals, ``(2, d)``."""
        if self.left.ndim == 2:
            return self.left * self.right
        return self.left @ self.right.transpose(-1, -2)

    def diagonals(self) -> Tensor:
        """Return the diagonals of S and V, shape ``(2, d)``."""
        found = self.products()
        return found if found.ndim == 2 else torch.diagonal(found, dim1=-2, dim2=-1)

    def singular_values(self) -> Tensor:
        """Return the singular values of S and V, largest first, shape ``(2, d)``."""
        found = self.products()
        if found.ndim == 2:
            return found.abs().sort(dim=-1, descending=True).values
        return torch.linalg.svdvals(found)

    def conserved(self) -> Tensor:
        """Return what a gradient flow keeps: u² - v², or LᵀL - RᵀR."""
        left, right = self.left, self.right
        if left.ndim == 2:
            return left**2 - right**2
        return left.transpose(-1, -2) @ left - right.transpose(-1, -2) @ right

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the output at every token, shape ``(sample, token, d)``."""
        scores, values = self.products()
        return attend(tokens, scores, values)
