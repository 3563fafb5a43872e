"""Which axis is the row, the head, the query and the key."""

from __future__ import annotations

import pytest
import torch

from attnscope.watching.weight_axes import arranged, einsum_order, query_behind_head


@pytest.mark.parametrize(
    ("shape", "heads", "rows", "expected"),
    [
        ((5, 7), 0, 0, (1, 1, 5, 7)),
        ((3, 5, 7), 0, 0, (3, 1, 5, 7)),
        ((12, 5, 7), 4, 0, (3, 4, 5, 7)),
        ((12, 5, 7), 0, 3, (3, 4, 5, 7)),
        ((4, 5, 7), 4, 4, (4, 1, 5, 7)),
        ((3, 4, 5, 7), 4, 0, (3, 4, 5, 7)),
        ((3, 5, 4, 7), 4, 0, (3, 4, 5, 7)),
        ((3, 5, 4, 5), 0, 0, (3, 4, 5, 5)),
        ((4, 3, 5, 7), 4, 3, (3, 4, 5, 7)),
        ((3, 2, 2, 5, 7), 4, 0, (3, 4, 5, 7)),
        ((3, 6, 4, 5, 7), 4, 0, (18, 4, 5, 7)),
    ],
)
def test_rows_and_heads_are_told_apart(
    shape: tuple[int, ...], heads: int, rows: int, expected: tuple[int, ...]
) -> None:
    assert arranged(torch.zeros(shape), heads, rows).shape == expected


def test_twelve_queries_are_not_twelve_heads() -> None:
    weights = torch.rand(2, 12, 3, 12)
    assert torch.equal(query_behind_head(weights), weights.transpose(1, 2))
    assert torch.equal(query_behind_head(weights.transpose(1, 2)), weights.transpose(1, 2))


def test_an_equation_says_which_axis_is_which() -> None:
    weights, values = (2, 5, 3, 7), (2, 7, 3, 4)
    assert einsum_order("bqhk,bkhd->bqhd", 0, [weights, values], 3) == ([0, 2], [1])
    assert einsum_order("...qk,...kd->...qd", 0, [(2, 3, 5, 7), (2, 3, 7, 4)], 3) == ([0, 1], [2])
    assert einsum_order("bte,bted->btd", 0, [(2, 3, 4), (2, 3, 4, 5)], 2) is None
    assert einsum_order("bqhk,bkhd->bqhkd", 0, [weights, values], 3) is None
    assert einsum_order("bqhk,bkhd", 0, [weights, values], 3) is None
