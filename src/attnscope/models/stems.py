"""How tokens become vectors before the first layer: patches of an image, bytes with neighbours.

A stem maps ids ``(batch, n)`` to vectors ``(batch, tokens, width)``. It says how many tokens it
makes of n ids and which of them are there, so that attention and pooling can follow.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError

BRIGHTEST = 255.0
"""Grey value of white."""


def check_patch(window: int, patch: int) -> None:
    """Refuse patches that do not tile an image."""
    if patch < 1 or window % patch:
        raise AttnscopeError(
            f"patch = {patch} with a window of {window} pixels: expected a number that divides it."
        )


class Patches(nn.Module):
    """Square patches of grey pixels as tokens, by one dense map, with learned rows and columns.

    Token (r, c) is W p + b + row_r + column_c, with p the grey values of patch (r, c) and of
    ``margin`` pixels around it, between 0 and 2; there is nothing beyond the border. Places begin
    far apart (standard deviation 0.5): of places that begin at 0.02 a small model on few images
    learns nothing for thousands of steps.

    Args:
        window: pixels along a side of an image.
        patch: pixels along a side of a patch; it must divide the window.
        width: entries of a token.
        margin: pixels around a patch that its token sees as well. A stroke that is cut by the edge
            of a patch shows its direction in one token only with a margin.
        spread: standard deviation of the initial rows and columns.
    """

    def __init__(
        self, window: int, patch: int, width: int, margin: int = 0, spread: float = 0.5
    ) -> None:
        super().__init__()
        check_patch(window, patch)
        if margin < 0:
            raise AttnscopeError(f"margin = {margin}: expected 0 or more pixels.")
        self.window, self.patch, self.margin = window, patch, margin
        self.side = window // patch
        self.dense = nn.Linear((patch + 2 * margin) ** 2, width)
        self.rows = nn.Parameter(spread * torch.randn(self.side, width))
        self.columns = nn.Parameter(spread * torch.randn(self.side, width))

    @property
    def tokens(self) -> int:
        """Tokens of an image."""
        return self.side**2

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the patches of images ``(batch, pixel)`` as vectors."""
        grey = ids.view(-1, 1, self.window, self.window).to(self.rows.dtype) * (2 / BRIGHTEST)
        seen = F.unfold(grey, self.patch + 2 * self.margin, padding=self.margin, stride=self.patch)
        places = (self.rows[:, None] + self.columns).flatten(0, 1)
        made: Tensor = self.dense(seen.mT) + places
        return made


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
