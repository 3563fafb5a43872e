"""Weights split into the sums of their rows and the shares within them, one held while one moves.

The weights of a query are S_kj = m_k p_kj with m_k = Σ_j S_kj and shares p that sum to one. With
softmax m is 1 whatever Q and K are; with the Gaussian kernel it moves with them. What does that to
the loss? At a point θ* of the parameters the sums m* and shares p* are known, and with e the kernel
before any division and Z its sums

    both move     S(θ) = m* e(θ)/Z*           (the Gaussian kernel itself; softmax set free)
    sums held     S(θ) = m* e(θ)/Z(θ)         (softmax itself)
    shares held   S(θ) = m* p* Z(θ)/Z*

are three models that are one and the same at θ*, with the same loss, and differ around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernels._inputs import Kernel, attend_eagerly
from attnscope.models.kernels.gaussian import Gaussian, NormalisedGaussian
from attnscope.models.kernels.softmax import Softmax

Moves = Literal["both", "sums", "shares"]
MOVES: tuple[Moves, ...] = ("both", "sums", "shares")
"""What moves with queries and keys; the other part is held."""


@dataclass(frozen=True, eq=False)
class SplitWeights:
    """A kernel some of whose parts stay as they were for one batch at one point.

    Args:
        logits_of: the kernel whose exponents are taken.
        moves: which part moves.
        log_sums: log Z*, shape ``(batch, head, n, 1)``.
        sums: m*, the same shape.
        shares: p*, shape ``(batch, head, n, n)``.
    """

    logits_of: Kernel
    moves: Moves
    log_sums: Tensor
    sums: Tensor
    shares: Tensor

    normalised = False

    @property
    def name(self) -> str:
        """The name of the kernel whose weights these are, and what moves."""
        return f"{self.logits_of.name}, {self.moves} moving"

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, for the batch that it was made for."""
        logits = _logits(self.logits_of, q, k, mask)
        if logits.shape != self.shares.shape:
            raise AttnscopeError(
                f"weights of shape {tuple(logits.shape)}: expected {tuple(self.shares.shape)}, "
                "those of the batch whose sums and shares are held."
            )
        if self.moves == "both":
            return self.sums * torch.exp(logits - self.log_sums)
        if self.moves == "shares":
            return self.sums * torch.softmax(logits, dim=-1)
        moved = torch.logsumexp(logits, dim=-1, keepdim=True)
        return self.sums * self.shares * torch.exp(moved - self.log_sums)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0
    ) -> Tensor:
        """Return S v by plain operations."""
        return attend_eagerly(self, q, k, v, mask, dropout)


@contextmanager
def moving(
    model: KernelClassifier, ids: Tensor, mask: Tensor | None, moves: Moves
) -> Iterator[None]:
    """Let only a part of the weights move with Q and K, for one batch, from where the model is.

    Within, the model can be called with this batch alone. At the end it has its kernels back.

    Args:
        model: the point θ* is where it is now.
        ids: tokens of the batch, shape ``(batch, n)``.
        mask: true where there is a token; every row must have one.
        moves: ``"sums"`` of the rows, ``"shares"`` within them, or both.

    Raises:
        AttnscopeError: a kernel that is no exponential, rows without a token, no such part.
    """
    if moves not in MOVES:
        raise AttnscopeError(f"moves = {moves!r}: expected one of {', '.join(MOVES)}.")
    if mask is not None and not bool(mask.any(dim=1).all()):
        raise AttnscopeError("A sequence has no token at all: expected one or more in each.")
    before = [layer.weighing for layer in model.attention]
    keys = None if mask is None else mask[:, None]
    with torch.no_grad():
        held = []
        for layer, x in zip(model.attention, model.attention_inputs(ids, mask), strict=True):
            logits = _logits(layer.weighing, *layer.queries_keys(x), keys)
            log_sums = torch.logsumexp(logits, dim=-1, keepdim=True)
            sums = layer.weights(x, mask).sum(dim=-1, keepdim=True)
            shares = torch.softmax(logits, dim=-1)
            held.append(SplitWeights(layer.weighing, moves, log_sums, sums, shares))
    try:
        for layer, split in zip(model.attention, held, strict=True):
            layer.use(split)
        yield
    finally:
        for layer, kernel in zip(model.attention, before, strict=True):
            layer.use(kernel)


def _logits(kernel: Kernel, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return log e, the exponents of a kernel before rows are divided by anything."""
    if isinstance(kernel, Softmax):
        logits = (q / math.sqrt(q.shape[-1])) @ k.mT
    elif isinstance(kernel, Gaussian | NormalisedGaussian):
        if isinstance(kernel, Gaussian):
            q, k = kernel.scaled(q, k)
        squares = (q * q).sum(dim=-1)[..., None] + (k * k).sum(dim=-1)[..., None, :]
        logits = (q @ k.mT - 0.5 * squares) / math.sqrt(q.shape[-1])
    else:
        raise AttnscopeError(
            f"a layer with {kernel.name} attention: expected softmax, gaussian or "
            "normalised-gaussian, whose weights are exponentials."
        )
    return logits if mask is None else logits.masked_fill(~mask[..., None, :], -math.inf)
