"""Gaussian attention: S_kj = exp(-‖q_k - k_j‖² / (2√d)), whose rows do not sum to one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernels._inputs import check
from attnscope.models.kernels.by_hand import Attend, GaussianByHand, SoftmaxByHand
from attnscope.models.kernels.softmax import by_hand_is_faster, fused, masked_softmax


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
        return GaussianByHand().weights(*self.scaled(q, k), mask)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v; one n × n matrix is kept for the backward pass, also with dropout."""
        check(q, k, v, mask, dropout)
        out: Tensor = Attend.apply(GaussianByHand(), *self.scaled(q, k), v, mask, dropout)
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
        """Return S v; only of short sequences, and with dropout, n × n matrices are kept."""
        check(q, k, v, mask, dropout)
        if by_hand_is_faster(k, dropout):
            short: Tensor = Attend.apply(SoftmaxByHand(gaussian=True), q, k, v, mask, dropout)
            return short
        longer_q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
        longer_k = torch.cat([k, -0.5 * (k * k).sum(dim=-1, keepdim=True)], dim=-1)
        if v.shape[-1] != q.shape[-1]:
            return fused(longer_q, longer_k, v, mask, 1 / math.sqrt(q.shape[-1]))
        # Fused attention wants values as long as keys.
        out = fused(longer_q, longer_k, F.pad(v, (0, 1)), mask, 1 / math.sqrt(q.shape[-1]))
        return out[..., :-1]
