"""A layer of kernel attention with its derivative written out, as one step of a graph.

The obvious twin is :meth:`attnscope.models.layers.kernel_layer.KernelLayer.plain`. What is saved
beside it: queries, keys and values come of one product; the scale γ and the shift β of a layer norm
are folded into the matrix behind it, LN(x) W + b = x̂ (diag(γ) W) + (β W + b), so that

    dW = γ ∘ (x̂ᵀ dy) + β ⊗ Σ dy,   dγ = Σ_o W ∘ (x̂ᵀ dy),   dβ = W Σ dy,
    dx = (dx̂ - mean(dx̂) - x̂ mean(dx̂ ∘ x̂))/σ;

passes over tokens are made in place, and autograd sees one step in place of thirty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from attnscope.errors import AttnscopeError
from attnscope.models.kernels.by_hand import Attended, attend, pull
from attnscope.models.layers.dropout import kept

if TYPE_CHECKING:
    from attnscope.models.layers.kernel_layer import KernelLayer

NAMES = (
    "norm_1.weight",
    "norm_1.bias",
    "attention.W_Q",
    "attention.W_K",
    "attention.W_V",
    "attention.b_Q",
    "attention.b_K",
    "attention.b_V",
    "attention.W_O",
    "attention.b_O",
    "norm_2.weight",
    "norm_2.bias",
    "W_1.weight",
    "W_1.bias",
    "W_2.weight",
    "W_2.bias",
)


class Parts(NamedTuple):
    """The parameters of a layer, in the order of :data:`NAMES`."""

    g1: Tensor
    s1: Tensor
    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    b_Q: Tensor
    b_K: Tensor
    b_V: Tensor
    W_O: Tensor
    b_O: Tensor
    g2: Tensor
    s2: Tensor
    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    b_2: Tensor


def parts_of(layer: KernelLayer) -> Parts:
    """Return the parameters of a layer as they are now."""
    a, n1, n2 = layer.attention, layer.norm_1, layer.norm_2
    biases = (a.b_Q, a.b_K, a.b_V, a.b_O)
    b_q, b_k, b_v, b_o = (_there(bias) for bias in biases)
    return Parts(
        n1.weight, n1.bias, a.W_Q, a.W_K, a.W_V, b_q, b_k, b_v, a.W_O, b_o,
        n2.weight, n2.bias, layer.W_1.weight, layer.W_1.bias, layer.W_2.weight, layer.W_2.bias,
    )  # fmt: skip


def _there(bias: Tensor | None) -> Tensor:
    assert bias is not None  # KernelLayer asks for biases.
    return bias


class LayerByHand(torch.autograd.Function):
    """x ← x + MH(LN(x)), then x ← x + W₂ GELU(W₁ LN(x))."""

    @staticmethod
    def forward(
        ctx: Any, layer: KernelLayer, x: Tensor, mask: Tensor | None, *given: Tensor
    ) -> Tensor:
        """Return the layer's output; what the way back needs is kept."""
        p, hand = Parts(*given), layer.attention.by_hand
        assert hand is not None
        share = layer.dropout if layer.training else 0.0
        within = layer.attention.dropout if layer.attention.training else 0.0
        (batch, n, width), (heads, _, d) = x.shape, p.W_Q.shape
        flat = x.reshape(-1, width)
        hat_1, over_1 = _normed(flat, layer.norm_1.eps)
        qkv, b_qkv = _qkv(p)
        made = torch.addmm(p.s1 @ qkv + b_qkv, hat_1, p.g1[:, None] * qkv)
        q, k, v = made.view(batch, n, 3, heads, d).permute(2, 0, 3, 1, 4).contiguous()
        del made  # What is asked for next gets its place, which is in the cache.
        found = attend(hand, q, k, v, None if mask is None else mask[:, None], within)
        joined = found.out.transpose(1, 2).reshape(-1, heads * d)
        y = torch.addmm(p.b_O, joined, p.W_O.flatten(0, 1))
        factor_1 = _dropped(y, share)
        y.add_(flat)
        hat_2, over_2 = _normed(y, layer.norm_2.eps)
        u = torch.addmm(p.W_1 @ p.s2 + p.b_1, hat_2, (p.W_1 * p.g2).T)
        inner = F.gelu(u)
        factor_2 = _dropped(inner, share)
        out = torch.addmm(p.b_2, inner, p.W_2.T)
        factor_3 = _dropped(out, share)
        out.add_(y)
        ctx.layer, ctx.mask, ctx.hand = layer, mask, hand
        ctx.share, ctx.within = share, within
        parts = found if within else found._replace(weights=None)
        factors = (factor_1, factor_2, factor_3)
        made_of = (hat_1, over_1, joined, hat_2, over_2, u, inner)
        ctx.save_for_backward(x, *p, *parts, *factors, *made_of)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x and by all parameters."""
        (grad,) = grads
        saved = ctx.saved_tensors
        x, p, rest = saved[0], Parts(*saved[1:17]), saved[17:]
        if torch.is_grad_enabled():
            return None, *_again(ctx, x, p, grad)
        found, (drop_1, drop_2, drop_3) = Attended(*rest[:6]), rest[6:9]
        hat_1, over_1, joined, hat_2, over_2, u, inner = rest[9:]
        if not ctx.within:
            found = found._replace(weights=found.dropped)
        (batch, n, width), (heads, _, d) = x.shape, p.W_Q.shape
        above = grad.reshape(-1, width)
        do = above if drop_3 is None else above * drop_3
        dW_2, db_2 = do.T @ inner, do.sum(dim=0)
        dinner = do @ p.W_2
        if drop_2 is not None:
            dinner.mul_(drop_2)
        du = torch.ops.aten.gelu_backward.grad_input(dinner, u, grad_input=dinner)
        core, db_1 = (hat_2.T @ du).T, du.sum(dim=0)
        dW_1 = torch.addr(core * p.g2, db_1, p.s2)
        dg2, ds2 = (core * p.W_1).sum(dim=0), db_1 @ p.W_1
        dy = _norm_back(du @ (p.W_1 * p.g2), hat_2, over_2).add_(above)
        da = dy if drop_1 is None else dy * drop_1
        dW_O, db_O = (joined.T @ da).view(p.W_O.shape), da.sum(dim=0)
        dheads = (da @ p.W_O.flatten(0, 1).T).view(batch, n, heads, d).transpose(1, 2).contiguous()
        made = dheads.new_empty(batch, n, 3, heads, d)
        for place, part in enumerate(pull(ctx.hand, found, dheads)):
            made[:, :, place].copy_(part.transpose(1, 2))
        dqkv, (qkv, _) = made.view(-1, 3 * heads * d), _qkv(p)
        core, total = hat_1.T @ dqkv, dqkv.sum(dim=0)
        dW = torch.addr(p.g1[:, None] * core, p.s1, total)
        dW_Q, dW_K, dW_V = dW.view(width, 3, heads, d).permute(1, 2, 0, 3).unbind()
        db_Q, db_K, db_V = total.view(3, heads, d).unbind()
        dg1, ds1 = (core * qkv).sum(dim=1), qkv @ total
        dx = _norm_back(dqkv @ (p.g1[:, None] * qkv).T, hat_1, over_1).add_(dy)
        return (
            None, dx.view(x.shape), None, dg1, ds1, dW_Q, dW_K, dW_V, db_Q, db_K, db_V, dW_O, db_O,
            dg2, ds2, dW_1, db_1, dW_2, db_2,
        )  # fmt: skip


def _dropped(x: Tensor, share: float) -> Tensor | None:
    """Drop a share of ``x`` in place; return what its entries were multiplied by."""
    if not share:
        return None
    factor = kept(x, share)
    x.mul_(factor)
    return factor


def _qkv(p: Parts) -> tuple[Tensor, Tensor]:
    """Return W^Q, W^K and W^V side by side, ``(width, 3 H d)``, and their biases."""
    matrices = torch.stack((p.W_Q, p.W_K, p.W_V)).permute(2, 0, 1, 3)
    return matrices.reshape(p.W_Q.shape[1], -1), torch.stack((p.b_Q, p.b_K, p.b_V)).flatten()


def _normed(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return rows less their mean over σ, and 1/σ as a column."""
    mean = x.new_full((x.shape[1], 1), 1 / x.shape[1])
    # A product with a column is several times faster than a mean along short rows.
    centred = x - x @ mean
    over = ((centred * centred) @ mean).add_(eps).rsqrt_()
    return centred.mul_(over), over


def _norm_back(grad: Tensor, hat: Tensor, over: Tensor) -> Tensor:
    """Return the gradient before the norm, in place of the one behind it."""
    mean = grad.new_full((grad.shape[1], 1), 1 / grad.shape[1])
    along = (grad * hat) @ mean
    return grad.sub_(grad @ mean).addcmul_(hat, along, value=-1).mul_(over)


def _again(ctx: Any, x: Tensor, p: Parts, grad: Tensor) -> list[Tensor | None]:
    """Return gradients with a graph of their own, by plain operations on the same numbers."""
    if ctx.share or ctx.within:
        raise AttnscopeError(
            f"second derivative of a layer with dropout = {ctx.share or ctx.within}: expected "
            "dropout 0, or the plain path (KernelAttention.eager = True)."
        )
    # Aliases, so that what was made of x before is not followed back to it.
    x, *parts = (part.view_as(part) for part in (x, *p))
    named = dict(zip(NAMES, parts, strict=True))
    out = functional_call(ctx.layer, named, (x, ctx.mask), {"fast": False})
    learn = [part for part in (x, *parts) if part.requires_grad]
    found = iter(torch.autograd.grad(out, learn, grad, create_graph=True))
    each = [next(found) if part.requires_grad else None for part in (x, *parts)]
    return [each[0], None, *each[1:]]
