"""A softmax layer becomes a normalised Gaussian one, within the bound that is promised."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernels.switch import switch_bound, switch_to_gaussian


@given(st.integers(0, 1000), st.floats(0.5, 30.0), st.floats(0.1, 5.0), st.booleans())
def test_no_row_changes_by_more_than_the_bound(
    float64: None, seed: int, scale: float, size: float, bias: bool
) -> None:
    source = torch.Generator().manual_seed(seed)
    layer = KernelAttention(6, 2, 3, bias=bias, generator=source)
    x = size * torch.randn(2, 5, 6, generator=source)
    before, bound = layer.weights(x).detach(), switch_bound(layer, x, scale)
    switch_to_gaussian(layer, scale)
    assert layer.kernel == "normalised-gaussian"
    change = (layer.weights(x).detach() - before).abs().sum(dim=-1).max()
    assert float(change) <= bound + 1e-12


def test_a_classifier_says_the_same_afterwards(float64: None) -> None:
    model = KernelClassifier(20, 8, 2, width=16, head_width=8, dropout=0.0)
    ids = torch.randint(0, 20, (3, 8), generator=torch.Generator().manual_seed(0))
    before = model(ids)
    plain = KernelClassifier(20, 8, 2, width=16, head_width=8, dropout=0.0)
    plain.set_kernel("normalised-gaussian")
    switch_to_gaussian(model, 100.0)
    assert model.kernel == "normalised-gaussian"
    torch.testing.assert_close(model(ids), before, rtol=0, atol=1e-4)
    assert (plain(ids) - before).abs().max() > 10 * (model(ids) - before).abs().max()


def test_bad_input_gets_a_sentence() -> None:
    layer = KernelAttention(4, 1, kernel="gaussian")
    with pytest.raises(AttnscopeError, match="a layer with gaussian attention: expected softmax"):
        switch_to_gaussian(layer)
    with pytest.raises(AttnscopeError, match="scale = 0"):
        switch_to_gaussian(KernelAttention(4, 1), 0)
    with pytest.raises(AttnscopeError, match="a model of Linear has no kernel to exchange"):
        switch_to_gaussian(nn.Linear(2, 2))  # type: ignore[arg-type]
