r"""The transformer of Edelman 2024: attention layers with relative positions, and nothing else.

Each layer adds to the stream what one head reads of the layer-normalised stream, with the logits

.. math::

    \ell_{ij} = \frac{q_i \cdot (k_j + r_{i-j})}{\sqrt d}, \qquad j \le i .

A vector :math:`r_n` for every distance is learned in each layer. There is no feed-forward layer, no
bias and no dropout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError

STD, OUTPUT_STD = 0.02, 0.01
"""Standard deviations of the weights at the start; the output projections' is the smaller one."""


class RelativeAttention(nn.Module):
    """One causal head with relative positions.

    Args:
        width: d, of the stream and of the head.
        length: longest sequence.
    """

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.distance = nn.Parameter(torch.empty(length, width))
        lags = torch.arange(length)[:, None] - torch.arange(length)
        self.register_buffer("lags", lags.clamp(min=0), persistent=False)
        self.register_buffer("future", lags < 0, persistent=False)
        self.lags: Tensor
        self.future: Tensor

    def logits(self, x: Tensor) -> Tensor:
        """Return the attention logits, -inf where a query may not look; (row, query, key)."""
        n = x.shape[1]
        q = self.query(x)
        by_lag = q @ self.distance[:n].T
        lags = self.lags[:n, :n].expand(len(x), n, n)
        logits = (q @ self.key(x).transpose(1, 2) + by_lag.gather(2, lags)) / math.sqrt(x.shape[2])
        return logits.masked_fill(self.future[:n, :n], -math.inf)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the head adds to the stream, its weights and its logits."""
        logits = self.logits(x)
        weights = logits.softmax(dim=-1)
        return self.output(weights @ self.value(x)), weights, logits


class Answer(NamedTuple):
    """What the model makes of sequences.

    Args:
        logits: of the next state, (row, position, state).
        attention: weights of every layer, each (row, query, key).
        attention_logits: of every layer, -inf where a query may not look.
    """

    logits: Tensor
    attention: list[Tensor]
    attention_logits: list[Tensor]


class RelativeTransformer(nn.Module):
    """Attention layers with relative positions on one stream.

    Args:
        states: k, the vocabulary.
        length: longest sequence.
        layers: number of attention layers.
        width: d.
        scale: of all weights at the start, relative to the paper's.
        distance_std: standard deviation of the vectors of distances at the start.
        generator: source of the start.

    Raises:
        AttnscopeError: a size is below 1.
    """

    def __init__(
        self,
        states: int,
        length: int,
        *,
        layers: int = 2,
        width: int = 16,
        scale: float = 1.0,
        distance_std: float = STD,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {"states": states, "length": length, "layers": layers, "width": width}
        for name, size in sizes.items():
            if size < 1:
                raise AttnscopeError(f"{name} = {size}: expected 1 or more.")
        self.embedding = nn.Parameter(torch.empty(states, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers + 1))
        self.layers = nn.ModuleList(RelativeAttention(width, length) for _ in range(layers))
        self.readout = nn.Linear(width, states, bias=False)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if not name.startswith("norms"):
                    kinds = {"output.weight": OUTPUT_STD, "distance": distance_std}
                    std = next((kinds[kind] for kind in kinds if name.endswith(kind)), STD)
                    p.normal_(0.0, scale * std, generator=generator)

    def answer(self, tokens: Tensor) -> Answer:
        """Return logits of the next state with the attention that led to them."""
        x = self.embedding[tokens]
        weights, logits = [], []
        for norm, layer in zip(self.norms, self.layers, strict=False):
            added, attention, own = layer(norm(x))
            x = x + added
            weights.append(attention)
            logits.append(own)
        return Answer(self.readout(self.norms[-1](x)), weights, logits)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next state, (row, position, state)."""
        return self.answer(tokens).logits


def next_state_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy of every state but the first, given those before it."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
