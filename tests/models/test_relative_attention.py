"""Attention with relative positions, against loops over queries and keys."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.relative_attention import RelativeAttention, RelativeTransformer


def test_logits_are_those_of_the_formula() -> None:
    torch.manual_seed(0)
    head = RelativeAttention(4, 6).double()
    torch.nn.init.normal_(head.distance)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    found = head.logits(x)
    q, k = head.query(x), head.key(x)
    for i in range(5):
        for j in range(5):
            expected = (q[:, i] * (k[:, j] + head.distance[i - j])).sum(-1) / math.sqrt(4)
            if j > i:
                assert (found[:, i, j] == -math.inf).all()
            else:
                torch.testing.assert_close(found[:, i, j], expected)


def test_it_is_causal_and_has_the_papers_size() -> None:
    model = RelativeTransformer(2, 100, generator=torch.Generator().manual_seed(0))
    assert sum(p.numel() for p in model.parameters()) == 5408
    tokens = torch.randint(2, (3, 20))
    other = tokens.clone()
    other[:, 12:] = 1 - other[:, 12:]
    torch.testing.assert_close(model(tokens)[:, :12], model(other)[:, :12])
    weights = model.answer(tokens).attention
    assert len(weights) == 2
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(3, 20))


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="layers = 0"):
        RelativeTransformer(2, 8, layers=0)
