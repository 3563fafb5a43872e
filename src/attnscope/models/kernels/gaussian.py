"""Gaussian attention: S_kj = exp(-‖q_k - k_j‖² / (2√d)), whose rows do not sum to one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernels._inputs import check
from attnscope.models.kernels.softmax import fused, masked_softmax


@dataclass(frozen=True)
class Gaussian:
    """S_kj = exp(-‖q_k - k_j‖²/(2√d)), the kernel of Song 2024, equations 3 and 4.

    The minus sign is lost in the poster's text; without it weights would grow with the distance.

    Args:
        bandwidth: σ; distances are divided by it, S_kj = exp(-‖c q_k - k_j/c‖²/(2σ²√d)). The same
            weights come of W^Q/σ and W^K/σ.
        stretch: c, by which queries are longer and keys shorter. Softmax does not notice it.
    """

    bandwidth: float = 1.0
    stretch: float = 1.0

    name = "gaussian"
    normalised = False

    def __post_init__(self) -> None:
        for name in ("bandwidth", "stretch"):
            if not 0 < getattr(self, name) < math.inf:
                raise AttnscopeError(
                    f"{name} = {getattr(self, name)}: expected a finite number above 0."
                )

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, by plain operations in one n × n buffer."""
        check(q, k, None, mask)
        return _weights(*self.scaled(q, k), mask)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v; one n × n matrix is kept for the backward pass, also with dropout."""
        check(q, k, v, mask, dropout)
        out: Tensor = _Attend.apply(*self.scaled(q, k), v, mask, dropout)
        return out

    def scaled(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return c q/σ and k/(cσ), between which distances are measured."""
        if self.bandwidth == self.stretch == 1:
            return q, k
        return q * (self.stretch / self.bandwidth), k / (self.stretch * self.bandwidth)


@dataclass(frozen=True)
class NormalisedGaussian:
    """Gaussian weights divided by their sum over the row.

    ‖q‖² is the same for a whole row and drops out: this is softmax attention with the logits
    (q·k - ‖k‖²/2)/√d, so with a query of one more entry, 1, and a key of one more, -‖k‖²/2.
    """

    name = "normalised-gaussian"
    normalised = True

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, by plain operations."""
        check(q, k, None, mask)
        logits = (q @ k.mT - 0.5 * (k * k).sum(dim=-1)[..., None, :]) / math.sqrt(q.shape[-1])
        return masked_softmax(logits, mask)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v by PyTorch's fused attention, which keeps no n × n matrix."""
        check(q, k, v, mask, dropout)
        longer_q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
        longer_k = torch.cat([k, -0.5 * (k * k).sum(dim=-1, keepdim=True)], dim=-1)
        if v.shape[-1] != q.shape[-1]:
            return fused(longer_q, longer_k, v, mask, dropout, 1 / math.sqrt(q.shape[-1]))
        # Fused attention wants values as long as keys.
        out = fused(longer_q, longer_k, F.pad(v, (0, 1)), mask, dropout, 1 / math.sqrt(q.shape[-1]))
        return out[..., :-1]


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return exp(-(‖q‖² + ‖k‖² - 2 q·k)/(2√d)), worked out in place on q kᵀ."""
    half_q, half_k = 0.5 * (q * q).sum(dim=-1), 0.5 * (k * k).sum(dim=-1)
    # Where ‖q‖² is beyond the largest number, q·k may be too, and inf - inf is no number. The
    # distance is infinite then and the weight 0, which -‖q‖² alone brings about.
    q = q.masked_fill(torch.isinf(half_q)[..., None], 0.0)
    k = k.masked_fill(torch.isinf(half_k)[..., None], 0.0)
    scores = q @ k.mT
    scores.sub_(half_q[..., None]).sub_(half_k[..., None, :]).mul_(1 / math.sqrt(q.shape[-1]))
    with torch.no_grad():
        # Rounding alone makes an exponent positive. Out of autograd's sight: the derivative is
        # that of the exponent, not 0.
        scores.clamp_(max=0.0)
    if mask is not None:
        scores.masked_fill_(~mask[..., None, :], -math.inf)
    return scores.exp_()


class _Attend(torch.autograd.Function):
    """S v with its derivative written out.

    With G the gradient of the output and P = S ∘ (G vᵀ):

        dv = Sᵀ G,   dq = (P k - q ∘ P1)/√d,   dk = (Pᵀ q - k ∘ Pᵀ1)/√d.

    Dropout multiplies S by a random M. Only S ∘ M is needed: P is (S ∘ M) ∘ (G vᵀ). When a graph
    of the backward pass is asked for, S is computed again by operations that have a derivative.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
    ) -> Tensor:
        weights = _weights(q, k, mask)
        if dropout:
            weights.mul_(torch.empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout))
        ctx.save_for_backward(q, k, v, weights)
        ctx.mask, ctx.dropout = mask, dropout
        return weights @ v

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        q, k, v, weights = ctx.saved_tensors
        if torch.is_grad_enabled():
            kept = (weights != 0) / (1 - ctx.dropout) if ctx.dropout else 1.0
            weights = _weights(q, k, ctx.mask) * kept
            pulled = (grad @ v.mT) * weights
        else:
            pulled = (grad @ v.mT).mul_(weights)
        scale = 1 / math.sqrt(q.shape[-1])
        dq = (pulled @ k - q * pulled.sum(dim=-1)[..., None]) * scale
        dk = (pulled.mT @ q - k * pulled.sum(dim=-2)[..., None]) * scale
        return dq, dk, weights.mT @ grad, None, None
