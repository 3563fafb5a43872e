"""What all kernels have in common: their signature, and what they refuse."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.layers.dropout import drop


class Kernel(Protocol):
    """A rule for the weight S_kj of key j for query k.

    Queries and keys have shape ``(..., n, d)``. A mask of booleans with shape ``(..., n)`` is true
    where there is a token; a key that is none weighs exactly 0. If a query has no key at all, its
    row of S and its output are 0.
    """

    @property
    def name(self) -> str:
        """The name that :func:`attnscope.models.kernels.kernel` knows it by."""

    @property
    def normalised(self) -> bool:
        """Whether the rows of S sum to one."""

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, shape ``(..., n, n)``."""

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v, shape ``(..., n, d)``, with a share ``dropout`` of the weights left out."""


def attend_eagerly(
    kernel: Kernel,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return S v by plain operations that can be differentiated any number of times."""
    weights = kernel.weights(q, k, mask)
    if dropout:
        weights = drop(weights, dropout)
    return weights @ v


def check(
    q: Tensor, k: Tensor, v: Tensor | None, mask: Tensor | None, dropout: float = 0.0
) -> None:
    """Refuse shapes that do not fit."""
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise AttnscopeError(
            f"queries of shape {tuple(q.shape)} and keys of shape {tuple(k.shape)}: expected "
            "(..., n, d) with one d, 1 or more."
        )
    if v is not None and (v.ndim < 2 or v.shape[-2] != k.shape[-2]):
        raise AttnscopeError(
            f"values of shape {tuple(v.shape)} and keys of shape {tuple(k.shape)}: expected a "
            "value for each key."
        )
    if mask is not None and (mask.dtype != torch.bool or mask.shape[-1:] != k.shape[-2:-1]):
        raise AttnscopeError(
            f"mask of {mask.dtype} and shape {tuple(mask.shape)}: expected booleans, one for each "
            f"of the {k.shape[-2]} keys, true where there is a token."
        )
    if not 0 <= dropout < 1:
        raise AttnscopeError(f"dropout = {dropout}: expected a share from 0 to below 1.")
