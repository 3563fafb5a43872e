"""What reads the context vector: the three classifiers of Lu 2021, section 5.

A classifier is split into a linear map without bias, :meth:`first`, and the :meth:`rest`. Pooling
is linear, so the first map can act on the dictionary before pooling instead of on the context
vectors after it: the same numbers with fewer of them to move.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.pooling import project

ClassifierKind = Literal["FC", "FC-released", "TC", "TL"]


class FixedLinear(nn.Module):
    """Attn-FC: softmax(Uᵀ v̄) with U fixed.

    Args:
        dim: d, length of the context vector.
        classes: J.
        orthonormal: the paper's U has orthonormal columns. The released code draws
            ``randn(d, J)`` and sets its diagonal to one instead.
        generator: source of U.
    """

    weight: Tensor

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        orthonormal: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if orthonormal and dim < classes:
            raise AttnscopeError(
                f"dim = {dim} with {classes} topics: expected {classes} dimensions or more, so "
                "that the fixed classifier can have a direction for each topic."
            )
        draw = torch.randn(dim, classes, generator=generator)
        weight = torch.linalg.qr(draw)[0] if orthonormal else draw.fill_diagonal_(1.0)
        self.register_buffer("weight", weight.contiguous())

    def first(self, values: Tensor) -> Tensor:
        """Project vectors onto the columns of U."""
        return project(values, self.weight)

    def rest(self, projected: Tensor) -> Tensor:
        """Return the logits, which the projections are."""
        return projected


class TrainableLinear(nn.Module):
    """Attn-TC: softmax(Uᵀ v̄) with U trained, drawn from U(-1/√d, 1/√d) as PyTorch does."""

    def __init__(self, dim: int, classes: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weight = _uniform((dim, classes), dim, generator)

    def first(self, values: Tensor) -> Tensor:
        """Project vectors onto the columns of U."""
        return project(values, self.weight)

    def rest(self, projected: Tensor) -> Tensor:
        """Return the logits, which the projections are."""
        return projected


class TwoLayer(nn.Module):
    """Attn-TL: softmax(U₂ᵀ ReLU(U₁ᵀ v̄ + b₁) + b₂), all trained."""

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        hidden: int = 10,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.weight = _uniform((dim, hidden), dim, generator)
        self.bias = _uniform((hidden,), dim, generator)
        self.readout = _uniform((hidden, classes), hidden, generator)
        self.readout_bias = _uniform((classes,), hidden, generator)

    def first(self, values: Tensor) -> Tensor:
        """Apply U₁, without its bias."""
        return project(values, self.weight)

    def rest(self, projected: Tensor) -> Tensor:
        """Apply the bias, the ReLU and the second layer."""
        return torch.relu(projected + self.bias) @ self.readout + self.readout_bias


Classifier = FixedLinear | TrainableLinear | TwoLayer


def classifier(
    kind: ClassifierKind, dim: int, classes: int, *, generator: torch.Generator | None = None
) -> Classifier:
    """Build the classifier that the paper calls ``kind``."""
    match kind:
        case "FC":
            return FixedLinear(dim, classes, generator=generator)
        case "FC-released":
            return FixedLinear(dim, classes, orthonormal=False, generator=generator)
        case "TC":
            return TrainableLinear(dim, classes, generator=generator)
        case "TL":
            return TwoLayer(dim, classes, generator=generator)


def _uniform(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator | None
) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
