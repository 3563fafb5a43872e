"""Weights of a fused call, against what the call returns."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attnscope.watching.call_weights import dot_product_weights


@settings(max_examples=40, deadline=None)
@given(
    queries=st.integers(1, 5),
    keys=st.integers(1, 5),
    mask=st.sampled_from(["none", "causal", "hidden", "added", "row"]),
    scale=st.sampled_from([None, 0.3]),
    groups=st.sampled_from([1, 2]),
    seed=st.integers(0, 1000),
)
def test_weights_times_values_are_what_the_call_returns(
    queries: int, keys: int, mask: str, scale: float | None, groups: int, seed: int
) -> None:
    made = torch.Generator().manual_seed(seed)
    q = torch.randn(2, 4, queries, 8, dtype=torch.float64, generator=made)
    k, v = torch.randn(2, 2, 4 // groups, keys, 8, dtype=torch.float64, generator=made)
    options = {"scale": scale, "enable_gqa": groups > 1, "is_causal": mask == "causal"}
    masks = {
        "hidden": torch.rand(2, 1, queries, keys, generator=made) < 0.6,
        "row": torch.zeros(2, 1, 1, keys, dtype=torch.bool),
        "added": torch.randn(4, queries, keys, dtype=torch.float64, generator=made),
    }
    options["attn_mask"] = masks.get(mask)
    weights = dot_product_weights(q, k, v, **options)  # type: ignore[arg-type]
    mixed = F.scaled_dot_product_attention(q, k, v, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(
        weights @ v.repeat_interleave(groups, dim=1), mixed, rtol=0, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_rows_end_in_zeros(layout: torch.layout) -> None:
    rows = [torch.randn(length, 2, 4, dtype=torch.float64) for length in (3, 5)]
    nested = torch.nested.nested_tensor(rows, layout=layout).transpose(1, 2)
    weights = dot_product_weights(nested, nested, nested)
    assert weights.shape == (2, 2, 5, 5)
    for row, own in zip(weights, rows, strict=True):
        q = own.transpose(0, 1)
        expected = (q @ q.mT / 2).softmax(-1)
        torch.testing.assert_close(row[:, : len(own), : len(own)], expected)
        assert row[:, len(own) :].abs().sum() == 0


def test_half_precision_is_widened() -> None:
    q = torch.randn(1, 2, 3, 4, dtype=torch.bfloat16)
    assert dot_product_weights(q, q, q).dtype == torch.float32
