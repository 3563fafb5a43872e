"""Small models of five architectures, all trained in seconds, and the views that flaws need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from clinic_tasks import CLASSES, PATCH, WORDS
from torch import Tensor, nn

WIDTH, HEADS = 32, 4


@dataclass(frozen=True)
class Shape:
    """What an architecture can be told.

    Args:
        layers: number of blocks.
        post_norm: norms behind the residual sums, as in the first transformer.
        skip: whether there are residual connections at all.
        sink: added to the logits of the first key, as a wrong mask does.
        cut: the block whose input is detached, so that nothing below it gets a gradient.
    """

    layers: int = 2
    post_norm: bool = False
    skip: bool = True
    sink: float = 0.0
    cut: int = -1


class Attention(nn.Module):
    """Attention with four matrices of its own, which keeps the weights of its last call."""

    def __init__(self, sink: float) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.heads, self.sink, self.weights = HEADS, sink, torch.empty(0)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        logits = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        self.weights = torch.softmax(logits, dim=-1)
        out: Tensor = self.o((self.weights @ v).transpose(1, 2).flatten(-2))
        return out


class Block(nn.Module):
    """A block whose norms stand before or behind, with or without residual connections."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.attention = Attention(shape.sink)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        before = (lambda norm, y: y) if self.shape.post_norm else (lambda norm, y: norm(y))
        behind = (lambda norm, y: norm(y)) if self.shape.post_norm else (lambda norm, y: y)
        stay = 1.0 if self.shape.skip else 0.0
        x = behind(self.first, stay * x + self.attention(before(self.first, x), mask))
        return behind(self.second, stay * x + self.mlp(before(self.second, x)))


class Decoder(nn.Module):
    """A small GPT."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, WIDTH)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        mask[:, 0] += self.shape.sink
        x = self.words(ids) + self.positions(torch.arange(length))
        for number, block in enumerate(self.blocks):
            x = block(x.detach() if number == self.shape.cut else x, mask)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Encoder(nn.Module):
    """``nn.TransformerEncoder`` over words, averaged, with a classifier."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, WIDTH)
        self.layers = _encoder(shape)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
        logits: Tensor = self.head(_encoded(self.layers, x, self.shape).mean(dim=1))
        return logits


class Vision(nn.Module):
    """Patches, a class token, blocks of one's own."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.patch = nn.Linear(PATCH, WIDTH)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, WIDTH))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, patches: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(patches), -1, -1), self.patch(patches)], dim=1)
        x = x + self.places
        mask = torch.zeros(x.shape[1], x.shape[1])
        mask[:, 0] += self.shape.sink
        for number, block in enumerate(self.blocks):
            x = block(x.detach() if number == self.shape.cut else x, mask)
        logits: Tensor = self.head(self.norm(x[:, 0]))
        return logits


class Translator(nn.Module):
    """Encoder and decoder of PyTorch's own layers: reverse a row of words."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words, self.positions = nn.Embedding(WORDS + 1, WIDTH), nn.Embedding(32, WIDTH)
        self.encoder = _encoder(shape)
        layer = nn.TransformerDecoderLayer(
            WIDTH, HEADS, 64, 0.0, batch_first=True, norm_first=not shape.post_norm
        )
        self.decoder = nn.TransformerDecoder(layer, 1)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        def seen(ids: Tensor) -> Tensor:
            out: Tensor = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
            return out

        memory = _encoded(self.encoder, seen(source), self.shape)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        logits: Tensor = self.head(self.decoder(seen(target), memory, tgt_mask=mask))
        return logits


def _encoder(shape: Shape) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 64, 0.0, batch_first=True, norm_first=not shape.post_norm
    )
    made = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
    for part in made.layers:  # PyTorch copies the first layer; each gets a start of its own.
        for matrix in part.parameters():
            if matrix.ndim == 2:
                nn.init.xavier_uniform_(matrix)
    return made


def _encoded(encoder: nn.TransformerEncoder, x: Tensor, shape: Shape) -> Tensor:
    mask = torch.zeros(x.shape[1], x.shape[1])
    mask[:, 0] += shape.sink
    for number, layer in enumerate(encoder.layers):
        x = layer(x.detach() if number == shape.cut else x, src_mask=mask if shape.sink else None)
    return x


ARCHITECTURES: dict[str, Callable[[Shape], nn.Module]] = {
    "decoder": Decoder,
    "encoder": Encoder,
    "vision": Vision,
    "translator": Translator,
}
WATCHED = {
    "decoder": "blocks.*.attention:weights",
    "vision": "blocks.*.attention:weights",
    "encoder": None,
    "translator": None,
}
"""Where attention is: a path, or nothing for modules that the recorder finds itself."""


def matrices(model: nn.Module) -> list[dict[str, Tensor]]:
    """Return views of Q, K, V, O and their biases of every attention, for a flaw to change."""
    found = []
    for part in model.modules():
        if isinstance(part, Attention):
            named = zip("QKVO", (part.q, part.k, part.v, part.o), strict=True)
            views = {name: layer.weight.data for name, layer in named}
            named = zip("qkvo", (part.q, part.k, part.v, part.o), strict=True)
            found.append(views | {name: layer.bias.data for name, layer in named})
        elif isinstance(part, nn.MultiheadAttention):
            weights = part.in_proj_weight.data.chunk(3)
            biases = part.in_proj_bias.data.chunk(3)
            views = dict(zip("QKVqkv", (*weights, *biases), strict=True))
            found.append(views | {"O": part.out_proj.weight.data, "o": part.out_proj.bias.data})
    return found


def query_key_parts(model: nn.Module) -> list[tuple[nn.Parameter, slice]]:
    """Return the parameters that hold W^Q and W^K, with the rows that do."""
    found: list[tuple[nn.Parameter, slice]] = []
    for part in model.modules():
        if isinstance(part, Attention):
            for layer in (part.q, part.k):
                found += [(layer.weight, slice(None)), (layer.bias, slice(None))]
        elif isinstance(part, nn.MultiheadAttention):
            rows = slice(0, 2 * WIDTH)
            found += [(part.in_proj_weight, rows), (part.in_proj_bias, rows)]
    return found
