"""A layer of the transformer of Song 2024: attention, then two dense maps."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernels.by_hand import LONGEST
from attnscope.models.layers.dropout import drop
from attnscope.models.layers.kernel_layer_by_hand import LayerByHand, parts_of


class KernelLayer(nn.Module):
    """x ← x + MH(LN(x)), then x ← x + W₂ GELU(W₁ LN(x)), with dropout on what is added.

    Where it trains on the CPU on sequences that are not long, the derivative is written out
    (:mod:`attnscope.models.layers.kernel_layer_by_hand`); :meth:`plain` is the same by plain
    operations.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int,
        head_width: int,
        kernel: str,
        dropout: float,
    ) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = KernelAttention(
            width, heads, head_width, kernel=kernel, dropout=dropout, bias=True
        )
        self.W_1, self.W_2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = dropout

    def forward(self, x: Tensor, mask: Tensor | None, fast: bool = True) -> Tensor:
        """Return the layer's output, shape ``(batch, n, width)``."""
        if not (fast and self._can_be_fast(x, mask)):
            return self.plain(x, mask)
        out: Tensor = LayerByHand.apply(self, x, mask, *parts_of(self))
        return out

    def plain(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the same by plain operations, one after the other."""
        x = x + self._drop(self.attention(self.norm_1(x), mask))
        inner = self._drop(F.gelu(self.W_1(self.norm_2(x))))
        return x + self._drop(self.W_2(inner))

    def _can_be_fast(self, x: Tensor, mask: Tensor | None) -> bool:
        """Return whether nothing is lost: no hook, no part exchanged, one kind of numbers."""
        inner = (self.norm_1, self.norm_2, self.attention, self.W_1, self.W_2)
        kinds = (nn.LayerNorm, nn.LayerNorm, KernelAttention, nn.Linear, nn.Linear)
        return (
            torch.is_grad_enabled()
            and x.device.type == "cpu"
            and x.ndim == 3
            and x.shape[-1] == self.attention.width
            and x.shape[1] <= LONGEST
            and (mask is None or (mask.shape == x.shape[:2] and mask.dtype == torch.bool))
            and x.dtype == self.W_1.weight.dtype
            and self.attention.by_hand is not None
            and all(type(part) is kind for part, kind in zip(inner, kinds, strict=True))
            and not any(part._forward_hooks or part._forward_pre_hooks for part in inner)
            and not any(part._backward_hooks or part._backward_pre_hooks for part in inner)
        )

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout, self.training)
