r"""Attention of ``nn.MultiheadAttention``, and of the encoder layers that hold one.

Weights are computed beside the module's own path, which is fused and never has them:

.. math:: A = \mathrm{softmax}\bigl(Q K^\top / \sqrt{d_\text{head}} + M\bigr),

with the masks in :math:`M`, before dropout. Only the two products for ``Q`` and ``K`` and that of
both are made again; no random number is drawn.

In ``eval`` mode and without gradients ``nn.TransformerEncoderLayer`` does not call its attention at
all (its "fast path"): there the weights are computed from what goes into the layer. When
``nn.TransformerEncoder`` has packed a padded batch for that path, padding asks nothing: the rows of
padding queries are zero. A query that may attend to nothing has a row of zeros too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnscope.watching.attach_method import Detach, Keep, Keeper, MethodPatch
from attnscope.watching.moment import Handle


@dataclass(frozen=True, eq=False)
class MultiheadPoint:
    """An ``nn.MultiheadAttention``.

    Args:
        name: path of the module.
        module: the module.
        layer: the encoder layer that holds it, which may pass it by.
        encoder: the encoder that holds the layer.
        note: what else there is to say about it.
    """

    name: str
    module: nn.MultiheadAttention
    layer: nn.TransformerEncoderLayer | None = None
    encoder: nn.TransformerEncoder | None = None
    note: str = ""

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.module.num_heads

    @property
    def kind(self) -> str:
        """What it is."""
        inside = "" if self.layer is None else " in nn.TransformerEncoderLayer"
        return f"nn.MultiheadAttention{inside}"

    def attach(self, keep: Keep) -> Handle:
        """Have weights kept whenever the module runs; see :class:`AttentionPoint`."""
        watch = _Watcher(Keeper(self.name, keep), self.module)
        parts = [_ATTENTION.attach(self.module, watch)]
        if self.layer is not None:
            parts.append(_LAYER.attach(self.layer, watch))
        if self.encoder is not None:
            parts.append(_ENCODER.attach(self.encoder, watch))
        return Detach([part.remove for part in parts])


def find_multihead(model: nn.Module) -> Iterator[MultiheadPoint]:
    """Yield every ``nn.MultiheadAttention``, in the order in which the model holds them."""
    layers: dict[int, nn.TransformerEncoderLayer] = {}
    encoders: dict[int, nn.TransformerEncoder] = {}
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoderLayer):
            layers[id(module.self_attn)] = module
        elif isinstance(module, nn.TransformerEncoder):
            encoders.update((id(layer), module) for layer in module.layers)
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            layer = layers.get(id(module))
            yield MultiheadPoint(name, module, layer, encoders.get(id(layer)))


@dataclass(eq=False)
class _Watcher:
    """Reads one attention module, from inside and through the layer that holds it."""

    keeper: Keeper
    module: nn.MultiheadAttention
    called: bool = False
    """Whether the module itself was called since the layer began."""
    length: int | None = None
    """Length of the sequences before the encoder packed them."""

    def see_call(
        self, result: Any, query: Tensor, key: Tensor, padding: Any, mask: Any, whole: bool
    ) -> None:
        self.called = True
        module = self.module
        if whole and (module.dropout == 0 or not module.training):
            own: Tensor = result[1]
            self.keeper.give(lambda: own if own.ndim == 4 else own[None])
        else:
            self.keeper.give(
                lambda: multihead_weights(module, query, key, padding, mask, self.length)
            )

    def see_layer(
        self, layer: nn.TransformerEncoderLayer, src: Tensor, mask: Any, padding: Any
    ) -> None:
        def weights() -> Tensor:
            x = layer.norm1(src) if layer.norm_first else src
            return multihead_weights(self.module, x, x, padding, mask, self.length)

        if not self.called:
            self.keeper.give(weights)


def multihead_weights(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    length: int | None = None,
) -> Tensor:
    """Return the weights of a call, ``(row, head, query, key)``, before dropout.

    Args:
        module: the attention.
        query: as the module takes it; batch first or not, without a batch, or packed.
        key: likewise.
        key_padding_mask: likewise; booleans, or numbers that are added.
        attn_mask: likewise.
        length: of packed sequences, when all of them end in padding.
    """
    if query.is_nested:
        return _packed_weights(module, query, length)
    same = query is key
    if query.ndim == 2:
        query, key = query[None], key[None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    elif not module.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    q, k = _project(module, query, key, same)
    rows, extra = len(q), 0
    if module.bias_k is not None:
        k = torch.cat([k, module.bias_k.to(k.dtype).expand(rows, 1, -1)], dim=1)
        extra += 1
    if module.add_zero_attn:
        k = F.pad(k, (0, 0, 0, 1))
        extra += 1
    shape = (rows, -1, module.num_heads, module.head_dim)
    scores = q.view(shape).transpose(1, 2) @ k.view(shape).permute(0, 2, 3, 1)
    scores *= module.head_dim**-0.5
    if attn_mask is None and key_padding_mask is None:
        return scores.softmax(-1)
    if attn_mask is not None:
        mask = _additive(attn_mask, scores.dtype, extra)
        scores = scores + (mask if mask.ndim == 2 else mask.unflatten(0, (rows, -1)))
    if key_padding_mask is not None:
        scores = scores + _additive(key_padding_mask, scores.dtype, extra)[:, None, None]
    nothing = (scores == -math.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(nothing, 0.0)


def _project(
    module: nn.MultiheadAttention, query: Tensor, key: Tensor, same: bool
) -> tuple[Tensor, Tensor]:
    width, bias = module.embed_dim, module.in_proj_bias
    if module.in_proj_weight is None:
        of_query, of_key = module.q_proj_weight, module.k_proj_weight
    elif same:
        both = F.linear(
            query, module.in_proj_weight[: 2 * width], None if bias is None else bias[: 2 * width]
        )
        return both[..., :width], both[..., width:]
    else:
        of_query, of_key, _ = module.in_proj_weight.chunk(3)
    of_bias = (None, None) if bias is None else (bias[:width], bias[width : 2 * width])
    return F.linear(query, of_query, of_bias[0]), F.linear(key, of_key, of_bias[1])


def _additive(mask: Tensor, dtype: torch.dtype, extra: int) -> Tensor:
    """Return a mask as numbers to add; keys that the module adds itself are never masked."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    return F.pad(mask, (0, extra))


def _packed_weights(module: nn.MultiheadAttention, x: Tensor, length: int | None) -> Tensor:
    ends = torch.tensor([len(row) for row in x.unbind()], device=x.device)
    padded = x.to_padded_tensor(0.0)
    whole = padded.shape[1] if length is None else length
    padded = F.pad(padded, (0, 0, 0, whole - padded.shape[1]))
    padding = torch.arange(whole, device=x.device) >= ends[:, None]
    weights = multihead_weights(module, padded, padded, padding)
    return weights.masked_fill(padding[:, None, :, None], 0.0)


def _replace_attention(original: Callable[..., Any]) -> Callable[..., Any]:
    # Arguments are named as the method names them: to bind a signature costs more than to attend.
    def forward(
        self: nn.MultiheadAttention,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        *args: Any,
        **more: Any,
    ) -> Any:
        result = original(
            self,
            query,
            key,
            value,
            key_padding_mask,
            need_weights,
            attn_mask,
            average_attn_weights,
            *args,
            **more,
        )
        whole = need_weights and not average_attn_weights
        for watcher in _ATTENTION.of(self):
            watcher.see_call(result, query, key, key_padding_mask, attn_mask, whole)
        return result

    return forward


def _replace_layer(original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(
        self: nn.TransformerEncoderLayer,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        *args: Any,
        **more: Any,
    ) -> Any:
        watchers = _LAYER.of(self)
        for watcher in watchers:
            watcher.called = False
        result = original(self, src, src_mask, src_key_padding_mask, *args, **more)
        for watcher in watchers:
            watcher.see_layer(self, src, src_mask, src_key_padding_mask)
        return result

    return forward


def _replace_encoder(original: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: nn.TransformerEncoder, src: Tensor, *args: Any, **kwargs: Any) -> Any:
        watchers = _ENCODER.of(self)
        for watcher in watchers:
            watcher.length = None if src.is_nested or src.ndim != 3 else src.shape[1]
        result = original(self, src, *args, **kwargs)
        for watcher in watchers:
            watcher.length = None
        return result

    return forward


_ATTENTION = MethodPatch(lambda: nn.MultiheadAttention, "forward", _replace_attention)
_LAYER = MethodPatch(lambda: nn.TransformerEncoderLayer, "forward", _replace_layer)
_ENCODER = MethodPatch(lambda: nn.TransformerEncoder, "forward", _replace_encoder)
