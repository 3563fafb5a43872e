"""Softmax attention: S = softmax(q kᵀ / √d), row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.models.kernels._inputs import check
from attnscope.models.kernels.by_hand import LONGEST, Attend, SoftmaxByHand


@dataclass(frozen=True)
class Softmax:
    """S_kj = exp(q_k·k_j/√d) / Σ_l exp(q_k·k_l/√d), the kernel of Song 2024, equations 1 and 2."""

    name = "softmax"
    normalised = True

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, by plain operations."""
        check(q, k, None, mask)
        return masked_softmax((q / math.sqrt(q.shape[-1])) @ k.mT, mask)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v; only of short sequences, and with dropout, n × n matrices are kept."""
        check(q, k, v, mask, dropout)
        if by_hand_is_faster(k, dropout):
            short: Tensor = Attend.apply(SoftmaxByHand(), q, k, v, mask, dropout)
            return short
        return fused(q, k, v, mask, 1 / math.sqrt(q.shape[-1]))


def by_hand_is_faster(k: Tensor, dropout: float) -> bool:
    """Return whether weights had better be held: on the CPU, of few keys, or with dropout.

    PyTorch's fused attention on the CPU knows no dropout and holds them then too.
    """
    return bool(dropout) or (k.shape[-2] <= LONGEST and k.device.type == "cpu")


def masked_softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax of rows over the keys that are there; 0 where there is none."""
    if mask is None:
        return torch.softmax(logits, dim=-1)
    keys = mask[..., None, :]
    # A row of nothing but -inf would be 0/0; any finite row will do, as it is multiplied by 0.
    some = keys.any(dim=-1, keepdim=True)
    weights = torch.softmax(logits.masked_fill(~keys & some, -math.inf), dim=-1)
    return weights * some


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Return softmax(scale q kᵀ) v by :func:`torch.nn.functional.scaled_dot_product_attention`."""
    if not torch.is_grad_enabled() or not (q.requires_grad or k.requires_grad or v.requires_grad):
        return _sdpa(q, k, v, mask, scale)
    out: Tensor = _Fused.apply(q, k, v, mask, scale)
    return out


def _sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, scale=scale)
    some = mask.any(dim=-1)[..., None, None]
    # As above: rows without a key see all of them, and are then set to 0.
    shown = (mask[..., None, :] | ~some).expand(*mask.shape[:-1], q.shape[-2], mask.shape[-1])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=shown, scale=scale) * some


class _Fused(torch.autograd.Function):
    """Fused attention whose gradient can be differentiated again.

    PyTorch's fused backward pass has no derivative of its own. When a graph of it is asked for,
    the gradient is computed by plain operations instead.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
    ) -> Tensor:
        inner = [part.detach().requires_grad_() for part in (q, k, v)]
        with torch.enable_grad():
            out = _sdpa(inner[0], inner[1], inner[2], mask, scale)
        ctx.save_for_backward(q, k, v)
        ctx.mask, ctx.scale = mask, scale
        ctx.inner, ctx.out = inner, out
        return out.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        if not torch.is_grad_enabled():
            parts = torch.autograd.grad(ctx.out, ctx.inner, grad, retain_graph=True)
            return *parts, None, None
        q, k, v = ctx.saved_tensors
        weights = masked_softmax(ctx.scale * (q @ k.mT), ctx.mask)
        pulled = weights * (grad @ v.mT)
        logits = ctx.scale * (pulled - weights * pulled.sum(dim=-1, keepdim=True))
        return logits @ k, logits.mT @ q, weights.mT @ grad, None, None
