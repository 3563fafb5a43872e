"""A small transformer that classifies sequences, with the attention kernel of one's choice.

The set-up of the experiments in Song 2024, which is that of Skyformer (Chen et al. 2021): token and
position embeddings, layers of attention and of two dense maps, the mean over tokens, a dense head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernels import Kernel
from attnscope.models.layers.dropout import drop
from attnscope.models.layers.kernel_layer import KernelLayer

EMBEDDING_STD = 0.02
"""Standard deviation of the initial embeddings."""


class KernelClassifier(nn.Module):
    """Layers of kernel attention over embedded tokens, their mean, and a dense head.

    Number of parameters, with D = ``width``, p = ``head_width``, F = ``hidden``, M = ``mlp_hidden``
    and C classes: ``vocabulary`` D + ``length`` D; a layer has 3 H (D + 1) p + (H p + 1) D for
    attention, (D + 1) F + (F + 1) D for the dense maps and 4 D for two layer norms; 2 D for the
    last norm; (D + 1) M + (M + 1) C for the head.

    Args:
        vocabulary: number of tokens; ids go from 0 to ``vocabulary - 1``.
        length: most tokens in a sequence.
        classes: C.
        width: D, entries of a token.
        hidden: entries between the two dense maps of a layer.
        heads: H.
        head_width: entries of a query.
        layers: number of layers.
        kernel: name of the attention kernel.
        dropout: share that is left out in training, of embeddings, attention weights, what a layer
            adds and the head's hidden entries.
        mlp_hidden: hidden entries of the head.
        pooling: what becomes of the tokens behind the last layer, their mean or the largest of
            each entry.
        stem: makes the module of :mod:`attnscope.models.stems` that turns ids into vectors, given
            the width; embeddings of tokens and places unless given.
        seed: of the initial values. The kernel does not change them.
    """

    def __init__(
        self,
        vocabulary: int,
        length: int,
        classes: int,
        *,
        width: int = 64,
        hidden: int = 128,
        heads: int = 2,
        head_width: int = 32,
        layers: int = 2,
        kernel: str = "softmax",
        dropout: float = 0.1,
        mlp_hidden: int = 128,
        pooling: Literal["mean", "max"] = "mean",
        stem: Callable[[int], nn.Module] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        numbers = {
            "vocabulary": vocabulary,
            "length": length,
            "classes": classes,
            "hidden": hidden,
            "layers": layers,
            "mlp_hidden": mlp_hidden,
        }
        for name, number in numbers.items():
            if number < 1:
                raise AttnscopeError(f"{name} = {number}: expected 1 or more.")
        self.vocabulary, self.length, self.dropout = vocabulary, length, dropout
        self.pooling = pooling
        # Modules of PyTorch draw from its global source, which is put back.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if stem is None:
                self.tokens = nn.Embedding(vocabulary, width)
                self.positions = nn.Embedding(length, width)
                for table in (self.tokens, self.positions):
                    nn.init.normal_(table.weight, std=EMBEDDING_STD)
            self.stem = None if stem is None else stem(width)
            self.layers = nn.ModuleList(
                KernelLayer(width, hidden, heads, head_width, kernel, dropout)
                for _ in range(layers)
            )
            self.norm = nn.LayerNorm(width)
            self.head_1, self.head_2 = nn.Linear(width, mlp_hidden), nn.Linear(mlp_hidden, classes)

    @property
    def attention(self) -> list[KernelAttention]:
        """The attention of each layer."""
        return [layer.attention for layer in self._layers()]

    @property
    def kernel(self) -> str:
        """Name of the attention kernel."""
        return self.attention[0].kernel

    def freeze_uniform(self) -> None:
        """Make attention weigh all tokens alike, for good: W^Q and W^K are 0 and do not learn.

        With softmax every row is then exactly 1/n. Everything else learns as before, so that what
        such a twin lacks in the end is what attention brought.
        """
        for attention in self.attention:
            for name in ("W_Q", "W_K", "b_Q", "b_K"):
                part = getattr(attention, name)
                if part is not None:
                    part.detach().zero_()
                    part.requires_grad_(False)

    def set_kernel(self, kernel: str | Kernel) -> None:
        """Exchange the kernel of all layers; the parameters stay."""
        for attention in self.attention:
            attention.use(kernel)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits, shape ``(batch, classes)``.

        Args:
            ids: tokens, shape ``(batch, n)``.
            mask: true where there is a token, shape ``(batch, n)``; the rest is padding, which is
                neither attended to nor averaged over.
        """
        return self.classify(self._through(ids, mask), mask)

    def classify(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits from what the layers made of the tokens, ``(batch, n, width)``."""
        x = self.norm(x)
        if self.pooling == "max":
            pooled = (x if mask is None else x.masked_fill(~mask[..., None], -torch.inf)).amax(
                dim=1
            )
        elif mask is None:
            pooled = x.mean(dim=1)
        else:
            kept = mask[..., None]
            # Not x * mask: what padding holds may be infinite with a kernel of one's own.
            pooled = x.masked_fill(~kept, 0.0).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
        hidden = drop(F.relu(self.head_1(pooled)), self.dropout, self.training)
        logits: Tensor = self.head_2(hidden)
        return logits

    def attention_inputs(self, ids: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """Return LN(x) as it enters the attention of each layer, ``(batch, n, width)``."""
        seen: list[Tensor] = []
        self._through(ids, mask, lambda layer, x: seen.append(layer.norm_1(x)))
        return seen

    def attention_weights(self, ids: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """Return S of each layer, shape ``(batch, head, n, n)``."""
        inputs = self.attention_inputs(ids, mask)
        pairs = zip(self.attention, inputs, strict=True)
        return [attention.weights(x, mask) for attention, x in pairs]

    def _layers(self) -> list[KernelLayer]:
        return [layer for layer in self.layers if isinstance(layer, KernelLayer)]

    def _through(
        self,
        ids: Tensor,
        mask: Tensor | None,
        look: Callable[[KernelLayer, Tensor], None] | None = None,
    ) -> Tensor:
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= self.length:
            raise AttnscopeError(
                f"tokens of shape {tuple(ids.shape)}: expected (batch, n) with n from 1 to "
                f"length = {self.length}."
            )
        if self.stem is None:
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        else:
            x = self.stem(ids, mask)
        x = drop(x, self.dropout, self.training)
        for layer in self._layers():
            if look is not None:
                look(layer, x)
            x = layer(x, mask)
        return x
