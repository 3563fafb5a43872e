"""The transformer of Li 2023 written down plainly: one-hot vectors, every pair of positions.

Slow and obvious, for any number of layers and heads. It is what the fast computation is compared
with, and the only one where deeper layers see words in their documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.tasks.topic_documents import Documents

if TYPE_CHECKING:
    from attnscope.models.topic_transformer import TopicTransformer


def padded_logits(model: TopicTransformer, documents: Documents) -> Tensor:
    """Return the output at the selected positions, in reading order, ``(position, word)``."""
    *_, (hidden, _) = _layers(model, documents)
    out = hidden[documents.places] @ model.decoder().T
    bias = model.output_bias if model.b_pred is None else model.b_pred
    return out if bias is None else out + bias


def padded_attention(model: TopicTransformer, documents: Documents) -> Tensor:
    """Return the attention weights, ``(document, key, query)`` or with (layer, head) in between."""
    weights = torch.stack([weights for _, weights in _layers(model, documents)], dim=1)
    return weights[:, 0, 0] if model.single else weights


def _layers(model: TopicTransformer, documents: Documents) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each layer's output ``(document, position, dim)`` and weights, head by head."""
    model.check_vocabulary(documents.vocabulary)
    w_e = model.embeddings()
    one_hot = F.one_hot(documents.visible, model.vocabulary).to(w_e.dtype)
    z = torch.einsum("nlw,dw->nld", one_hot, w_e)
    values = model.value_matrix().reshape(model.layers, model.heads, model.dim, model.dim)
    for layer in range(model.layers):
        total, weights = torch.zeros_like(z), []
        for head in range(model.heads):
            a = torch.softmax(_scores(model, documents, z, layer, head), dim=1)
            v = torch.einsum("ed,nid->nie", values[layer, head], z)
            if model.b_V is not None:
                v = v + model.b_V.reshape(model.layers, model.heads, -1)[layer, head]
            total = total + torch.einsum("nij,nie->nje", a, v)
            weights.append(a)
        z = total if layer == model.layers - 1 else z + total
        yield z, torch.stack(weights, dim=1)


def _scores(
    model: TopicTransformer, documents: Documents, z: Tensor, layer: int, head: int
) -> Tensor:
    """Return (W^K Z)ᵀ (W^Q Z) / √d_a, minus infinity at keys that are padding."""
    sides = []
    for weight, bias in ((model.W_K, model.b_K), (model.W_Q, model.b_Q)):
        if weight is None:
            sides.append(z.new_zeros(*z.shape[:2], 1))
            continue
        w = weight.reshape(model.layers, model.heads, model.attention_dim, model.dim)[layer, head]
        side = torch.einsum("ad,nid->nia", w, z)
        if bias is not None:
            side = side + bias.reshape(model.layers, model.heads, -1)[layer, head]
        sides.append(side)
    scores = torch.einsum("nia,nja->nij", *sides) / model.attention_dim**0.5
    return (
        scores
        if documents.mask is None
        else scores.masked_fill(~documents.mask[:, :, None], -torch.inf)
    )
