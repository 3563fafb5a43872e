"""Tokens that know those beside them, by a convolution."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError


class Neighbours(nn.Module):
    """Tokens that know those beside them: embeddings, then a convolution over a few of them.

    Padding counts as zero, before the convolution and after it.

    Args:
        vocabulary: number of tokens.
        length: most tokens in a sequence.
        width: entries of a token.
        reach: tokens that the convolution sees, an odd number.
        spread: standard deviation of the initial embeddings and places.
    """

    def __init__(
        self, vocabulary: int, length: int, width: int, reach: int, spread: float = 0.5
    ) -> None:
        super().__init__()
        if reach < 1 or reach % 2 == 0 or reach > length:
            raise AttnscopeError(
                f"a convolution over {reach} tokens of a sequence of {length}: expected an odd "
                "number, no more than the sequence has."
            )
        self.length, self.reach = length, reach
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=spread)
        self.beside = nn.Linear(reach * width, width)

    @property
    def tokens(self) -> int:
        """Most tokens in a sequence."""
        return self.length

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return tokens ``(batch, n)`` as vectors."""
        x = self.embedding(ids)
        if mask is not None:
            x = x * mask[..., None]
        half = self.reach // 2
        windows = F.pad(x, (0, 0, half, half)).unfold(1, self.reach, 1)
        x = F.gelu(self.beside(windows.flatten(2))) + self.positions.weight[: ids.shape[1]]
        return x if mask is None else x * mask[..., None]
