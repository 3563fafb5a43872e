"""Attention as other people write it, and what looks like it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, WORDS = 16, 4, 11


class Masking(torch.autograd.Function):
    """A softmax with a backward pass of its own, which sets to 0 what is masked."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, hidden: Tensor) -> Tensor:
        made = torch.softmax(scores.masked_fill(hidden, -1e9), -1)
        made.masked_fill_(hidden, 0)
        ctx.save_for_backward(made)
        return made

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        (made,) = ctx.saved_tensors
        return made * (slope - (slope * made).sum(-1, keepdim=True)), None


class Attention(nn.Module):
    """Attention in one of many hands; what it weighed is in ``told``."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.style, self.told = style, torch.empty(0)
        self.num_heads = HEADS
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.softmax, self.dropout = nn.Softmax(dim=-1), nn.Dropout(0.1)
        self.talk = nn.Linear(HEADS, HEADS)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        mixed = getattr(self, f"by_{self.style}")(q * q.shape[-1] ** -0.5, k, v)
        made: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return made

    def tell(self, weights: Tensor) -> Tensor:
        self.told = weights.detach().clone()
        return weights

    def by_sdpa(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
        self.tell(_weigh(q, k, hidden))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)

    def by_module(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.dropout(self.tell(self.softmax(q @ k.transpose(-1, -2)))) @ v

    def by_einsum(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.einsum("b h i d, b h j d -> b i h j", q, k).softmax(-1)
        self.tell(weights.transpose(1, 2))
        return torch.einsum("b i h j, b h j d -> b h i d", weights, v)

    def by_bmm(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        flat = [part.flatten(0, 1) for part in (q, k, v)]
        bias = torch.zeros(1, 1, 1, dtype=q.dtype)
        weights = bias.baddbmm(batch1=flat[0], batch2=flat[1].mT).softmax(dim=-1)
        self.tell(weights.unflatten(0, (-1, HEADS)))
        return torch.bmm(weights, flat[2]).unflatten(0, (-1, HEADS))

    def by_function(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
        return self.tell(Masking.apply(q @ k.mT, hidden)) @ v  # type: ignore[no-untyped-call]

    def by_talking_heads(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = self.talk((q @ k.mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        weights = F.softmax(scores.tanh() * 5, dim=-1)
        return self.tell(weights.masked_fill(weights < 0.01, 0.0)) @ v

    def by_keys_first(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax(k @ q.mT, dim=-2)
        self.tell(weights.mT)
        return weights.mT @ v


def _weigh(q: Tensor, k: Tensor, hidden: Tensor) -> Tensor:
    # Written with exp, so that nothing but the fused call is heard.
    scores = (q @ k.mT).detach().masked_fill(hidden, -torch.inf)
    grown = (scores - scores.amax(-1, keepdim=True)).exp()
    return grown / grown.sum(-1, keepdim=True)


STYLES = [name[3:] for name in vars(Attention) if name.startswith("by_")]


class Router(nn.Module):
    """A mixture of experts, all of them run: a softmax and a product, and no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 3)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        shares = self.gate(x).softmax(-1)
        made = torch.stack([expert(x) for expert in self.experts], dim=-2)
        mixed = (shares[..., None, :] @ made)[..., 0, :]
        return torch.einsum("bte,bted->btd", shares, made) + mixed


class Model(nn.Module):
    """Attention, and softmax of other kinds: a router, a pooling, words and classes."""

    def __init__(self, style: str, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {"attn": Attention(style), "router": Router(), "norm": nn.LayerNorm(WIDTH)}
            )
            for _ in range(layers)
        )
        self.pool, self.classes = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 3)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        for block in self.blocks:
            x = x + block["attn"](block["norm"](x))
            x = x + block["router"](x)
        pooled = (self.pool(x).softmax(1).mT @ x)[:, 0]
        guess = (x @ self.words.weight.T).softmax(-1)
        return self.classes(pooled).softmax(-1) + (guess @ self.words.weight).mean()

    def told(self) -> list[Tensor]:
        """Return what every layer weighed in the last forward pass."""
        return [block["attn"].told for block in self.blocks]  # type: ignore[index]
