"""B from a layer of this package, of PyTorch and from arrays; how far it can move."""

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import feature_shift, features, layer_state, state_from_arrays

X, _ = RandomRegression(3, 4, 8).sample(0)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian", "linear"])
def test_features_times_the_heads_vectors_are_the_outputs(kernel):
    model = kernel_regression(8, 2, 3, kernel=kernel)
    state = layer_state(model, X)
    w = (model.W_V @ model.W_O).detach().numpy().ravel()
    np.testing.assert_allclose(state.features @ w, model(X).detach().numpy().ravel())
    np.testing.assert_allclose(state.features, model.features(X).detach().numpy())
    assert (state.labels, state.columns) == (12, 16)


def test_pytorchs_layer_is_read_from_its_projections():
    torch.manual_seed(0)
    for bias in (True, False):
        layer = nn.MultiheadAttention(8, 2, bias=bias, dropout=0.3, dtype=torch.float64)
        mask = torch.ones(3, 4, dtype=torch.bool)
        mask[1, 2:] = False
        state = layer_state(layer, X, mask)
        layer.eval()
        theirs = X.transpose(0, 1)
        out, weights = layer(
            theirs, theirs, theirs, key_padding_mask=~mask, average_attn_weights=False
        )
        np.testing.assert_allclose(state.weights, weights.detach().numpy(), atol=1e-14)
        np.testing.assert_allclose(state.outputs, out.transpose(0, 1).detach().numpy(), atol=1e-13)
        mixed = np.concatenate([state.weights[:, h] @ X.numpy() for h in range(2)], axis=2)
        np.testing.assert_allclose(state.features, mixed.reshape(12, 16)[mask.numpy().ravel()])


def test_reading_leaves_the_layer_as_it_was():
    model = KernelAttention(8, 2, dropout=0.5).double()
    layer_state(model, X)
    assert model.training
    assert not model.eager


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_no_move_within_the_radius_shifts_the_features_further_than_the_bound(kernel, bias):
    source = torch.Generator().manual_seed(0)
    tightest = 0.0
    for trial in range(40):
        model = KernelAttention(8, 2, 3, 1, kernel=kernel, bias=bias, generator=source).double()
        state, radius = layer_state(model, X), 10.0 ** (-3 + 3 * trial / 39)
        names = ["W_Q", "W_K"] + (["b_Q", "b_K"] if bias else [])
        parts = [model.get_parameter(name) for name in names]
        moves = [torch.randn(p.shape, dtype=p.dtype, generator=source) for p in parts]
        if trial % 2:
            # The steepest direction of one entry of B is harder on the bound than a random one.
            moves = list(torch.autograd.grad(model.features(X)[0, 0], parts))
        length = torch.stack([move.norm() for move in moves]).norm()
        with torch.no_grad():
            for p, move in zip(parts, moves, strict=True):
                p.add_(move, alpha=radius / float(length))
        shift = np.linalg.norm(layer_state(model, X).features - state.features)
        bound = feature_shift(state, radius)
        assert shift <= bound
        tightest = max(tightest, shift / bound)
    assert tightest > 1e-3, "the bound shall say something"


def test_a_kernel_without_a_bound_has_an_infinite_one():
    model = kernel_regression(8, 2, 3, kernel="linear")
    assert feature_shift(layer_state(model, X), 1e-9) == np.inf


def test_shapes_that_do_not_fit_get_sentences():
    with pytest.raises(AttnscopeError, match=r"expected \(N, heads, n, n\)"):
        features(np.ones((2, 2, 2)), np.ones((2, 2, 2)))
    with pytest.raises(AttnscopeError, match=r"w_o of shape \(3, 4, 1\) with 2 heads"):
        state_from_arrays(np.ones((1, 2, 3, 3)), np.ones((1, 3, 4)), np.ones((3, 4)))
    with pytest.raises(AttnscopeError, match="Linear: expected KernelAttention or nn"):
        layer_state(nn.Linear(2, 2), X)
    with pytest.raises(AttnscopeError, match="add_zero_attn: expected one that attends"):
        layer_state(nn.MultiheadAttention(8, 2, add_zero_attn=True), X)
