"""The loss and its hand-written gradient against autograd, and the scales of the start."""

import itertools

import pytest
import torch

from attnscope.engines.parameters import flattened
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import MATRICES, KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression

SETS = [trained for count in (1, 2, 3, 4) for trained in itertools.combinations(MATRICES, count)]


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("trained", SETS, ids="".join)
def test_the_gradient_written_out_is_autograds(kernel, trained):
    x, y = RandomRegression(3, 4, 5).sample(0)
    model = kernel_regression(5, 2, 3, kernel=kernel, trained=trained, query_scale=2.0, seed=1)
    loss = SquaredError(x, y, unit=7.0)
    with flattened(model) as flat:
        out = torch.empty_like(flat.vector)
        value = loss.value_and_gradient(model, out)
        expected = loss(model)
        gradients = torch.autograd.grad(expected, flat.tensors)
        assert value == pytest.approx(expected.item(), rel=1e-13)
        flat_gradient = torch.cat([part.flatten() for part in gradients])
        torch.testing.assert_close(out, flat_gradient, rtol=1e-11, atol=1e-13)


def test_other_layers_go_through_autograd():
    x, y = RandomRegression(3, 4, 5).sample(0)
    out = torch.empty(1000, dtype=torch.float64)
    linear = kernel_regression(5, 2, 3, kernel="linear")
    assert SquaredError(x, y).value_and_gradient(linear, out) is None
    wide = KernelAttention(5, 2, 3, 2).double()
    two = SquaredError(x, y[..., None].expand(-1, -1, 2))
    assert two.value_and_gradient(wide, out) is None
    assert two(wide).item() > 0


def test_the_loss_is_half_the_sum_of_squares():
    x, y = RandomRegression(3, 4, 5).sample(0)
    model = kernel_regression(5, 2, 3, value_scale=0.0)
    assert SquaredError(x, y)(model).item() == pytest.approx(0.5 * float((y**2).sum()))
    assert SquaredError(x, y).relative(model).item() == 1
    assert SquaredError(x, y, unit=4.0)(model).item() == pytest.approx(float((y**2).sum()) / 8)


def test_scales_multiply_the_same_directions():
    small = kernel_regression(400, 2, 50, seed=3)
    large = kernel_regression(
        400, 2, 50, kernel="gaussian", query_scale=2, value_scale=5, output_scale=7, seed=3
    )
    for name, factor in {"W_Q": 2, "W_K": 2, "W_V": 5, "W_O": 7}.items():
        one, other = small.get_parameter(name), large.get_parameter(name)
        torch.testing.assert_close(other, factor * one)
        fan_in = 100 if name == "W_O" else 400
        assert float(one.detach().std()) * fan_in**0.5 == pytest.approx(1, rel=0.15)
        assert other.dtype == torch.float64
    different = kernel_regression(400, 2, 50, seed=4)
    assert not torch.equal(different.W_Q, small.W_Q)


def test_bad_input_gets_sentences():
    with pytest.raises(AttnscopeError, match=r"value_scale = -1"):
        kernel_regression(4, 2, 2, value_scale=-1)
    with pytest.raises(AttnscopeError, match=r"\(N, n, D\)"):
        SquaredError(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(AttnscopeError, match=r"unit = 0"):
        SquaredError(torch.ones(2, 3, 4), torch.ones(2, 3), unit=0)
