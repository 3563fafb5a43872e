r"""The minimal model of Edelman 2024: two layers with one vector and one matrix to learn.

Layer 1 averages the states before a position with weights that depend on the distance alone, layer
2 is linear attention to what layer 1 found:

.. math::

    u_i = \sum_{j \le i} \operatorname{softmax}_j(v_{i-j}) \, e_{x_j}, \qquad
    \text{logits}_t = \sum_{i \le t} (e_{x_t}^\top W u_i) \, e_{x_i} .

:math:`v_1 \to \infty` with :math:`W \propto I` is the bigram rule, :math:`W = c \, 11^\top` the
unigram rule whatever v is, since every :math:`u_i` sums to 1. Layer 1 sees no later state (the
released code forgets to mask them).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.tasks.markov_chains import Chains


class MinimalInduction(nn.Module):
    """The vector v of layer 1 and the matrix W of layer 2.

    Args:
        states: k.
        length: T, longest sequence.
        unigram: c of the start W = c 11ᵀ; v begins at 0.
        rate: how much faster v moves than W. The parameter is v/√rate: gradient flow in it is
            gradient flow in v at ``rate`` times the speed.

    Raises:
        AttnscopeError: the rate is not above 0.
    """

    def __init__(
        self, states: int, length: int, *, unigram: float = 0.01, rate: float = 100.0
    ) -> None:
        super().__init__()
        if not 0 < rate < math.inf:
            raise AttnscopeError(f"rate = {rate}: expected a finite number above 0.")
        self.speed = math.sqrt(rate)
        self.W = nn.Parameter(torch.full((states, states), unigram, dtype=torch.float64))
        self.slow_v = nn.Parameter(torch.zeros(length, dtype=torch.float64))
        lags = torch.arange(length)[:, None] - torch.arange(length)
        self.register_buffer("lags", lags.clamp(min=0), persistent=False)
        self.register_buffer("future", lags < 0, persistent=False)
        self.lags: Tensor
        self.future: Tensor

    @property
    def v(self) -> Tensor:
        """Logits of layer 1 by distance, shape ``(lag,)``."""
        return self.speed * self.slow_v

    def first_layer(self, v: Tensor | None = None) -> Tensor:
        """Return the weights of layer 1, shape ``(query, key)``."""
        v = self.v if v is None else v
        return v[self.lags].masked_fill(self.future, -math.inf).softmax(dim=-1)

    def second_layer(self, tokens: Tensor) -> Tensor:
        """Return the linear attention of layer 2, shape ``(row, query, key)``."""
        one_hot = F.one_hot(tokens, len(self.W)).to(self.W)
        scores = one_hot @ self.W @ (self.first_layer() @ one_hot).transpose(1, 2)
        return scores.masked_fill(self.future, 0.0)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next state, shape ``(row, position, state)``."""
        return self.second_layer(tokens) @ F.one_hot(tokens, len(self.W)).to(self.W)


class ExpectedLoss:
    """Cross-entropy of the next state, its mean over the law that the state is drawn from.

    Averaging over the last draw changes no gradient on average and takes its noise away.
    """

    def __init__(self, chains: Chains) -> None:
        self.tokens, self.laws = chains.tokens, chains.next_laws()

    def __call__(self, model: nn.Module) -> Tensor:
        """Return the mean over sequences and positions."""
        return -(self.laws * model(self.tokens).log_softmax(dim=-1)).sum(dim=-1).mean()
