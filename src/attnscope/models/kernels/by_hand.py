"""Attention of a few hundred tokens with its derivative written out.

Fused attention never holds the n × n weights, and pays for that by small products. For sequences
that fit the cache a few large products and passes in place take less time. The obvious twin of
every class here is ``weights(q, k, mask) @ v`` of the kernel of the same name.

With G the gradient of the output, A = S ∘ M the weights after dropout and P = A ∘ (G vᵀ):

    dv = Aᵀ G;     softmax: dL = P - S ∘ P1,   dq = dL k/√d,   dk = dLᵀ q/√d,

with L the logits; (P1)_i = G_i · out_i. Logits less ‖k_j‖²/(2√d), the normalised Gaussian kernel,
add -k_j (dLᵀ1)_j/√d to dk. Gaussian weights have dL = P, and besides -q_i (P1)_i/√d in dq.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from attnscope.models.layers.dropout import kept, realised

LONGEST = 256
"""Most keys for which this is used where there is a fused path."""


class Attended(NamedTuple):
    """The output, and what the backward pass needs."""

    q: Tensor
    k: Tensor
    v: Tensor
    weights: Tensor | None
    """S, before dropout; ``None`` where A is enough."""
    dropped: Tensor
    """A, after dropout."""
    out: Tensor


class ByHand(Protocol):
    """A kernel's passes forward and back."""

    @property
    def both(self) -> bool:
        """Whether the backward pass needs S beside A."""

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return S, by operations that have a derivative."""

    def pull_logits(self, found: Attended, pulled: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Return dq and dk, given G vᵀ, which is overwritten."""


def attend(
    hand: ByHand, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, share: float
) -> Attended:
    """Return A v and what its derivative needs; a share of the weights is dropped."""
    weights = hand.weights(q, k, mask)
    if not share:
        return Attended(q, k, v, weights, weights, weights @ v)
    factor = kept(weights, share)
    dropped = weights * factor if hand.both else weights.mul_(factor)
    return Attended(q, k, v, weights if hand.both else None, dropped, dropped @ v)


def pull(hand: ByHand, found: Attended, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients by q, k and v."""
    dq, dk = hand.pull_logits(found, grad @ found.v.mT, grad)
    return dq, dk, found.dropped.mT @ grad


class SoftmaxByHand:
    """Softmax of q·k/√d, or of (q·k - ‖k‖²/2)/√d: the normalised Gaussian kernel.

    Args:
        gaussian: whether the length of a key counts.
    """

    both = True

    def __init__(self, gaussian: bool = False) -> None:
        self.gaussian = gaussian

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return S; a row without a key is 0."""
        scale = 1 / math.sqrt(q.shape[-1])
        logits = (q * scale) @ k.mT
        if self.gaussian:
            logits.sub_(((0.5 * scale) * (k * k).sum(dim=-1))[..., None, :])
        if mask is None:
            return torch.softmax(logits, dim=-1)
        # A row of nothing but -inf would be 0/0; such rows see all keys, and are then set to 0.
        some = mask.any(dim=-1, keepdim=True)
        shut = q.new_zeros(mask.shape).masked_fill_(~mask & some, -math.inf)
        weights = torch.softmax(logits.add_(shut[..., None, :]), dim=-1)
        # On another device a look would wait for it.
        all_there = mask.device.type == "cpu" and bool(some.all())
        return weights if all_there else weights * some[..., None]

    def pull_logits(self, found: Attended, pulled: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Return dq and dk."""
        q, k, weights = found.q, found.k, found.weights
        assert weights is not None
        inner = (grad * found.out).sum(dim=-1, keepdim=True)
        if weights is found.dropped:
            logits = pulled.sub_(inner).mul_(weights)
        else:
            logits = pulled.mul_(found.dropped).addcmul_(weights, inner, value=-1)
        scale = 1 / math.sqrt(q.shape[-1])
        dk = logits.mT @ q
        if self.gaussian:
            dk.addcmul_(k, logits.sum(dim=-2)[..., None], value=-1)
        return (logits @ k).mul_(scale), dk.mul_(scale)


class GaussianByHand:
    """Weights exp(-‖q - k‖²/(2√d))."""

    both = False

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return exp(-(‖q‖² + ‖k‖² - 2 q·k)/(2√d)), worked out in place on q kᵀ."""
        scale = 1 / math.sqrt(q.shape[-1])
        half_q = (0.5 * scale) * (q * q).sum(dim=-1, keepdim=True)
        half_k = (0.5 * scale) * (k * k).sum(dim=-1, keepdim=True)
        # Where ‖q‖² is beyond the largest number, q·k may be too, and inf - inf is no number. The
        # distance is infinite then and the weight 0, which -‖q‖² alone brings about.
        q, k = _but_infinite(q, half_q), _but_infinite(k, half_k)
        scores = ((q * scale) @ k.mT).sub_(half_q).sub_(half_k.mT)
        with torch.no_grad():
            # Rounding alone makes an exponent positive. Out of autograd's sight: the derivative is
            # that of the exponent, not 0.
            scores.clamp_(max=0.0)
        if mask is not None:
            scores.masked_fill_(~mask[..., None, :], -math.inf)
        return scores.exp_()

    def pull_logits(self, found: Attended, pulled: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Return dq and dk."""
        q, k, logits = found.q, found.k, pulled.mul_(found.dropped)
        scale = 1 / math.sqrt(q.shape[-1])
        inner = (grad * found.out).sum(dim=-1, keepdim=True)
        dq = (logits @ k).addcmul_(q, inner, value=-1).mul_(scale)
        dk = (logits.mT @ q).addcmul_(k, logits.sum(dim=-2)[..., None], value=-1).mul_(scale)
        return dq, dk


def _but_infinite(x: Tensor, squares: Tensor) -> Tensor:
    """Return rows with 0 in place of those whose squares add up to infinity."""
    infinite = torch.isinf(squares)
    # On another device a look would wait for it.
    if x.device.type == "cpu" and not bool(infinite.any()):
        return x
    return x.masked_fill(infinite, 0.0)


class Attend(torch.autograd.Function):
    """A v as one step of a graph.

    When a graph of the backward pass is asked for, the gradient is that of plain operations.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hand: ByHand,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        share: float,
    ) -> Tensor:
        """Return A v."""
        found = attend(hand, q, k, v, mask, share)
        ctx.save_for_backward(*(found if share else found._replace(weights=None)))
        ctx.hand, ctx.mask, ctx.share = hand, mask, share
        return found.out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by q, k and v."""
        (grad,) = grads
        found = Attended(*ctx.saved_tensors)
        if not torch.is_grad_enabled():
            if not ctx.share:
                found = found._replace(weights=found.dropped)
            return None, *pull(ctx.hand, found, grad), None, None
        # Aliases, so that a key that was made of a query is not followed back to it.
        q, k, v = (part.view_as(part) for part in (found.q, found.k, found.v))
        weights = ctx.hand.weights(q, k, ctx.mask)
        if ctx.share:
            weights = weights * (found.dropped != 0) / (1 - _left_out(weights, ctx.share))
        return None, *_gradients(weights @ v, (q, k, v), grad), None, None


def _gradients(out: Tensor, parts: tuple[Tensor, ...], grad: Tensor) -> list[Tensor | None]:
    learn = [part for part in parts if part.requires_grad]
    found = iter(torch.autograd.grad(out, learn, grad, create_graph=True))
    return [next(found) if part.requires_grad else None for part in parts]


def _left_out(x: Tensor, share: float) -> float:
    return realised(share) if x.device.type == "cpu" else share
