"""σReparam: the spectral norm is the gain, gradients are those of the formula."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models import fold_sigma_reparam, sigma_reparam


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(5, 7).double()


def test_it_changes_nothing_at_first_and_the_gain_is_the_norm() -> None:
    plain, layer = linear(), sigma_reparam(linear())
    x = torch.randn(3, 5, dtype=torch.float64)
    torch.testing.assert_close(layer(x), plain(x))
    one = sigma_reparam(linear(), gain="one")
    assert float(torch.linalg.matrix_norm(one.weight.detach(), 2)) == pytest.approx(1)


def test_gradients_go_through_the_norm() -> None:
    layer = sigma_reparam(linear())
    layer(torch.ones(1, 5, dtype=torch.float64)).square().sum().backward()
    original = layer.parametrizations.weight.original
    w = original.detach().clone().requires_grad_()
    gain = layer.parametrizations.weight[0].gain.detach()
    weight = gain / torch.linalg.matrix_norm(w, 2) * w
    bias = layer.bias.detach()
    (weight.sum(dim=1) + bias).square().sum().backward()
    torch.testing.assert_close(original.grad, w.grad)


def test_power_iteration_follows_training_and_rests_otherwise() -> None:
    layer = sigma_reparam(linear())
    made = layer.parametrizations.weight[0]
    with torch.no_grad():
        layer.parametrizations.weight.original.normal_()
        before = made.u.clone()
        _ = layer.weight
    assert torch.equal(before, made.u)
    for _ in range(300):
        _ = layer.weight
    norm = float(torch.linalg.matrix_norm(layer.weight.detach(), 2))
    assert norm == pytest.approx(made.gain.item(), rel=1e-6)
    folded = fold_sigma_reparam(layer.eval())
    assert type(folded) is nn.Linear
    assert float(torch.linalg.matrix_norm(folded.weight.detach(), 2)) == pytest.approx(norm)


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="LayerNorm has no module to reparametrize"):
        sigma_reparam(nn.LayerNorm(3))
    zero = nn.Linear(2, 2)
    nn.init.zeros_(zero.weight)
    with pytest.raises(AttnscopeError, match="spectral norm 0"):
        sigma_reparam(zero)
    with pytest.raises(AttnscopeError, match=r"shape \(3,\)"):
        sigma_reparam(nn.LayerNorm(3), where=lambda name, module: True)
    with pytest.raises(AttnscopeError, match="already"):
        sigma_reparam(sigma_reparam(linear()), where=lambda name, module: name == "")
