r"""Attention weights from the arguments of a call that computes attention and never shows them.

.. math:: A = \mathrm{softmax}\bigl(s\, Q K^\top + M\bigr)

with the scale :math:`s`, :math:`1/\sqrt{d}` unless given, and the mask :math:`M`, before dropout. A
query that may attend to nothing has a row of zeros. Half precision is widened first.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def dot_product_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return the weights of ``F.scaled_dot_product_attention``, ``(..., head, query, key)``.

    Args:
        query: ``(..., head, query, width)``, as all others of that function; or nested, which
            become rows that end in zeros.
        key: ``(..., head, key, width)``.
        value: not looked at.
        attn_mask: booleans, or numbers to add.
        dropout_p: not looked at.
        is_causal: whether a query sees the keys up to its own number alone.
        scale: of the products.
        enable_gqa: whether a key serves several heads of queries in turn.
    """
    if query.is_nested:
        return _of_rows(query, key, is_causal, scale, enable_gqa)
    logits = _logits(query, key, scale, enable_gqa or query.shape[:-2] != key.shape[:-2])
    allowed = None
    if is_causal:
        allowed = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        allowed = attn_mask if allowed is None else allowed & attn_mask
    elif attn_mask is not None:
        logits = logits + attn_mask
    return _softmax(logits, allowed)


def flex_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    *_: Any,
    **__: Any,
) -> Tensor:
    """Return the weights of ``flex_attention``, from its score and mask functions.

    The functions are of one score and its place; they are called once, with all of them.

    Args:
        query: ``(row, head, query, width)``.
        key: ``(row, head, key, width)``, with as many heads or fewer.
        value: not looked at.
        score_mod: changes scores, given row, head, query and key.
        block_mask: the mask as the operator is handed it; its function is the last entry.
        scale: of the products.
    """
    logits = _logits(query, key, scale, query.shape[1] != key.shape[1])
    rows, heads, queries, keys = logits.shape
    place = torch.meshgrid(
        *(torch.arange(n, device=logits.device) for n in (rows, heads, queries, keys)),
        indexing="ij",
    )
    logits = score_mod(logits, *place).expand(logits.shape)
    allowed = block_mask[-1](*place)
    return _softmax(logits, allowed.expand(logits.shape))


def multihead_call_weights(*args: Any, **kwargs: Any) -> Tensor:
    """Return the weights of ``F.multi_head_attention_forward``, ``(row, head, query, key)``."""
    names = list(inspect.signature(F.multi_head_attention_forward).parameters)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    given |= {
        "need_weights": True,
        "average_attn_weights": False,
        "dropout_p": 0.0,
        "training": False,
    }
    weights = F.multi_head_attention_forward(**given)[1]
    assert weights is not None
    return weights if weights.ndim == 4 else weights[None]


def _logits(query: Tensor, key: Tensor, scale: float | None, grouped: bool) -> Tensor:
    wide = torch.promote_types(query.dtype, torch.float32)
    query, key = query.to(wide), key.to(wide)
    if grouped and query.ndim > 2 and key.shape[-3] not in (1, query.shape[-3]):
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    return query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)


def _softmax(logits: Tensor, allowed: Tensor | None) -> Tensor:
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    nothing = (logits == -math.inf).all(-1, keepdim=True)
    return logits.softmax(-1).masked_fill(nothing, 0.0)


def _of_rows(
    query: Tensor, key: Tensor, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor:
    rows = [
        dot_product_weights(q, k, k, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
        for q, k in zip(query.unbind(), key.unbind(), strict=True)
    ]
    queries, keys = (max(row.shape[axis] for row in rows) for axis in (-2, -1))
    return torch.stack(
        [F.pad(row, (0, keys - row.shape[-1], 0, queries - row.shape[-2])) for row in rows]
    )
