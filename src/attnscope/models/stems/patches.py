"""Patches of an image as tokens."""

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
