"""The layer against a loop over heads and sequences, and against nn.MultiheadAttention."""

import math

import pytest
import torch
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernels import KERNELS, kernel


def layer(*args, **more) -> KernelAttention:
    source = torch.Generator().manual_seed(0)
    return KernelAttention(*args, generator=source, **more).double()


def tokens(*shape: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(1)
    return torch.randn(shape, dtype=torch.float64, generator=source)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_output_is_the_sum_over_heads(name, bias):
    model, x = layer(6, 2, 4, 3, kernel=name, bias=bias), tokens(3, 5, 6)
    expected = torch.zeros(3, 5, 3, dtype=torch.float64)
    for i in range(3):
        for h in range(2):
            q, k, v = (
                x[i] @ model.get_parameter(f"W_{which}")[h]
                + (model.get_parameter(f"b_{which}")[h] if bias else 0)
                for which in "QKV"
            )
            weights = kernel(name).weights(q, k)
            torch.testing.assert_close(model.weights(x)[i, h], weights)
            expected[i] += weights @ v @ model.W_O[h]
    if model.b_O is not None:
        expected = expected + model.b_O
    torch.testing.assert_close(model(x), expected)
    model.eager = True
    torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize("name", KERNELS)
def test_one_output_is_the_features_times_the_heads_vectors(name):
    model, x = layer(6, 2, 4, 1, kernel=name), tokens(3, 5, 6)
    w = torch.einsum("hDd,hdo->hD", model.W_V, model.W_O).flatten()
    assert model(x).shape == (3, 5)
    assert model.features(x).shape == (15, 12)
    torch.testing.assert_close(model.features(x) @ w, model(x).flatten())


def test_the_softmax_layer_is_pytorchs():
    model, x = layer(8, 2, bias=True), tokens(3, 5, 8)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        stacked = [model.get_parameter(f"W_{w}").permute(0, 2, 1).reshape(8, 8) for w in "QKV"]
        theirs.in_proj_weight.copy_(torch.cat(stacked))
        theirs.in_proj_bias.copy_(
            torch.cat([model.get_parameter(f"b_{w}").flatten() for w in "QKV"])
        )
        theirs.out_proj.weight.copy_(model.W_O.flatten(0, 1).T)
        theirs.out_proj.bias.copy_(model.b_O)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[0, 3:] = False
    ours = model(x, mask)
    out, weights = theirs(x, x, x, key_padding_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(ours, out)
    torch.testing.assert_close(model.weights(x, mask), weights)


def test_the_kernel_can_be_exchanged_and_the_weights_stay():
    model, x = layer(6, 2, 4), tokens(2, 5, 6)
    before, state = model(x), {k: v.clone() for k, v in model.state_dict().items()}
    model.kernel = "gaussian"
    assert model.kernel == "gaussian"
    assert not torch.allclose(model(x), before)
    assert all(torch.equal(state[k], v) for k, v in model.state_dict().items())
    model.kernel = "softmax"
    assert torch.equal(model(x), before)
    with pytest.raises(AttnscopeError, match="Did you mean 'linear'"):
        model.kernel = "linaer"


@pytest.mark.parametrize("trained", [("W_Q",), ("W_K", "W_V"), ("W_Q", "W_K", "W_V", "W_O")])
def test_only_what_is_trained_has_a_gradient(trained):
    model = layer(6, 2, 4, trained=trained, bias=True)
    learns = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learns == set(trained) | {f"b_{name[-1]}" for name in trained}


def test_a_hessian_goes_through_the_layer():
    x = tokens(2, 3, 4)
    for name in KERNELS:
        model = layer(4, 2, 2, 1, kernel=name)
        (slope,) = torch.autograd.grad(model(x).pow(2).sum(), model.W_Q, create_graph=True)
        along = torch.ones_like(slope)
        (fast,) = torch.autograd.grad((slope * along).sum(), model.W_Q)
        model.eager = True
        (slope,) = torch.autograd.grad(model(x).pow(2).sum(), model.W_Q, create_graph=True)
        (eager,) = torch.autograd.grad((slope * along).sum(), model.W_Q)
        torch.testing.assert_close(fast, eager)


def test_dropout_is_for_training_only():
    model, x = layer(6, 2, dropout=0.5, kernel="gaussian"), tokens(2, 5, 6)
    torch.manual_seed(0)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), model(x))


def test_initial_values_fill_the_range_of_a_linear_layer():
    model = KernelAttention(64, 2, 32, generator=torch.Generator().manual_seed(0))
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        largest = model.get_parameter(name).abs().max().item()
        assert 0.99 / math.sqrt(64) < largest <= 1 / math.sqrt(64)


def test_bad_sizes_get_sentences():
    for arguments, said in (
        ((0, 2, 4), "width = 0"),
        ((6, 0, 4), "heads = 0"),
        ((6, 2, 0), "head_width = 0"),
        ((6, 2, 4, 0), "outputs = 0"),
        ((6, 4), "heads = 4 with width = 6.*divides"),
    ):
        with pytest.raises(AttnscopeError, match=said):
            KernelAttention(*arguments)
    with pytest.raises(AttnscopeError, match=r"Did you mean 'W_Q'"):
        KernelAttention(6, 2, trained=("WQ",))
    with pytest.raises(AttnscopeError, match=r"dropout = 1.5"):
        KernelAttention(6, 2, dropout=1.5)
    model = KernelAttention(6, 2)
    with pytest.raises(AttnscopeError, match=r"\(2, 5, 7\): expected \(batch, tokens, 6\)"):
        model(torch.ones(2, 5, 7))
    with pytest.raises(AttnscopeError, match=r"mask.*expected booleans of shape \(2, 5\)"):
        model(torch.ones(2, 5, 6), torch.ones(2, 4, dtype=torch.bool))
