"""Attention-weighted averages over bags of words, without ever building the padded batch.

The obvious way, ``(weights[..., None] * values[ids]).sum(1)``, copies every word's vector once per
occurrence and scatters it back in the backward pass. But scores belong to words, not to positions.
With the matrix C of word counts, which never changes,

    v̄ = C (e ⊙ V) / (C e),    e_w = exp(s_w),

and the backward pass is one more sparse product: with h = ∂l/∂v̄ and D = Cᵀ [h / Z, -hᵀv̄ / Z],

    ∂l/∂V_w = e_w D_w,    ∂l/∂s_w = e_w (V_wᵀ D_w + D'_w),

which are eqs (3) and (4) of Lu 2021. Vectors are kept feature by feature, ``(feature, word)``:
elementwise work on a handful of long rows is several times faster than on thousands of short ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnscope.tasks.bags import Bags

MAX_SPREAD = 60.0
"""Largest difference of two scores at which exp(s_w - max s) is safe in single precision."""


def bag_softmax(scores: Tensor, bags: Bags) -> Tensor:
    """Attention weights a_χ,l = exp(s_l) / Σ_l' exp(s_l') of every position.

    Args:
        scores: a score per word, shape ``(word,)``.
        bags: the sentences.

    Returns:
        Weights of shape ``(sentence, position)``; padding has weight zero.
    """
    return position_softmax(scores.index_select(0, bags.ids.reshape(-1)).view_as(bags.ids), bags)


def position_softmax(scores: Tensor, bags: Bags) -> Tensor:
    """Softmax over the occupied positions of scores given position by position."""
    if bags.mask is not None:
        scores = scores.masked_fill(~bags.mask, -torch.inf)
    return torch.softmax(scores, dim=1)


def bag_average(scores: Tensor, values: Tensor, bags: Bags) -> Tensor:
    """Attention-weighted average of word vectors, v̄(χ) = Σ_l a_χ,l V_{w_l}, of every sentence.

    Differentiable once, in scores and values; :func:`bag_average_padded` is the slow twin that can
    be differentiated as often as one likes.

    Args:
        scores: a score per word, shape ``(word,)``.
        values: a vector per word, shape ``(word, feature)``.
        bags: the sentences.

    Returns:
        Shape ``(sentence, feature)``.
    """
    if scores.device.type != "cpu":
        return bag_average_padded(scores, values, bags)  # What is fast elsewhere is a gather.
    low, high = torch.aminmax(scores.detach())
    if not (high - low).item() <= MAX_SPREAD:
        return bag_average_padded(scores, values, bags)
    out: Tensor = _BagAverage.apply(scores, values, bags, high)
    return out


def bag_average_padded(scores: Tensor, values: Tensor, bags: Bags) -> Tensor:
    """Compute :func:`bag_average` the obvious way: softmax, gather, weigh, add."""
    weights = bag_softmax(scores, bags)
    return (weights[..., None] * values[bags.ids]).sum(dim=1)


def project(values: Tensor, weight: Tensor) -> Tensor:
    """Matrix product ``values @ weight`` of a tall matrix with a small one.

    BLAS is several times faster on the transposed problem, short and wide, than on the tall one.
    """
    out: Tensor = _Project.apply(values, weight)
    return out


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log softmax(logits)[label]: ``F.cross_entropy``, fast on few classes."""
    rows = torch.log_softmax(logits.T, dim=0)
    return -rows.gather(0, labels[None]).mean()


class _BagAverage(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, values: Tensor, bags: Bags, shift: Tensor) -> Tensor:
        rows = values.T
        factors = torch.exp(scores - shift)
        weighted = values.new_empty(rows.shape[0] + 1, rows.shape[1])
        torch.mul(rows, factors, out=weighted[:-1])
        weighted[-1] = factors
        sums = (bags.counts(values.dtype) @ weighted.T.contiguous()).T.contiguous()
        total = sums[-1]
        average = sums[:-1] / total
        ctx.save_for_backward(rows, factors, average, total)
        ctx.bags = bags
        return average.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        rows, factors, average, total = ctx.saved_tensors
        pulled = grad.T / total
        signal = grad.new_empty(rows.shape[0] + 1, len(ctx.bags))
        signal[:-1] = pulled
        torch.neg((pulled * average).sum(dim=0), out=signal[-1])
        spread = (ctx.bags.counts_by_word(grad.dtype) @ signal.T.contiguous()).T.contiguous()
        spread *= factors
        grad_scores = grad_values = None
        if ctx.needs_input_grad[0]:
            grad_scores = (spread[:-1] * rows).sum(dim=0).add_(spread[-1])
        if ctx.needs_input_grad[1]:
            grad_values = spread[:-1].T
        return grad_scores, grad_values, None, None


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(values, weight)
        return (weight.T @ values.T).T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        values, weight = ctx.saved_tensors
        grad_values = (weight @ grad.T).T if ctx.needs_input_grad[0] else None
        grad_weight = (grad.T @ values).T if ctx.needs_input_grad[1] else None
        return grad_values, grad_weight
