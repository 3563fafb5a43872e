"""Linear attention: weights φ(q)·φ(k) over their sum, in time and memory linear in n."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.models.kernels._inputs import attend_eagerly, check


@dataclass(frozen=True)
class Linear:
    """S_kj = φ(q_k)·φ(k_j) / Σ_l φ(q_k)·φ(k_l) with φ(x) = elu(x) + 1 (Katharopoulos 2020)."""

    name = "linear"
    normalised = True

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, by plain operations."""
        check(q, k, None, mask)
        products = _features(q) @ _keys(k, mask).mT
        return products / _divisor(products.sum(dim=-1, keepdim=True))

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v as φ(q) (φ(k)ᵀ v), without any n × n matrix.

        Dropout leaves out single weights and so needs the matrix: with it the weights are made.
        """
        check(q, k, v, mask, dropout)
        if dropout:
            return attend_eagerly(self, q, k, v, mask, dropout)
        queries, keys = _features(q), _keys(k, mask)
        sums = queries @ keys.sum(dim=-2)[..., None]
        return (queries @ (keys.mT @ v)) / _divisor(sums)


def _features(x: Tensor) -> Tensor:
    # elu(x) + 1 itself rounds to 0 below -17 in single precision; exp(x) does not.
    return F.relu(x) + torch.exp(x.clamp(max=0.0))


def _keys(k: Tensor, mask: Tensor | None) -> Tensor:
    features = _features(k)
    return features if mask is None else features * mask[..., None]


def _divisor(sums: Tensor) -> Tensor:
    # A row without a key is 0/0; it becomes 0/1, also in its derivatives.
    return sums.masked_fill(sums == 0, 1.0)
