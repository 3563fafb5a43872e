"""Gaussian weights against the definition, and where rounding would break them."""

import math

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from attnscope.errors import AttnscopeError
from attnscope.models.kernels import Gaussian, NormalisedGaussian


def definition(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    distance = (q[..., :, None, :] - k[..., None, :, :]).pow(2).sum(dim=-1)
    return torch.exp(-distance / (2 * math.sqrt(q.shape[-1])))


def test_weights_are_the_definition():
    torch.manual_seed(0)
    q, k = torch.randn(2, 2, 3, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(Gaussian().weights(q, k), definition(q, k), rtol=1e-13, atol=1e-15)


def test_one_weight_by_hand():
    q, k = torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[0.0, 1, 1, 1]])
    assert Gaussian().weights(q, k).item() == pytest.approx(math.exp(-4 / 4))


def test_normalised_weights_are_the_definition_over_its_sum():
    torch.manual_seed(0)
    q, k = torch.randn(2, 2, 3, 6, 4, dtype=torch.float64)
    expected = definition(q, k) / definition(q, k).sum(dim=-1, keepdim=True)
    torch.testing.assert_close(NormalisedGaussian().weights(q, k), expected)


@pytest.mark.parametrize("size", [1e3, 1e10, 1e18, 1e20, 1e37])
def test_no_weight_exceeds_one_and_none_is_lost_to_overflow(size):
    torch.manual_seed(0)
    q = (size * torch.randn(64, 8)).requires_grad_()
    k = (size * torch.randn(64, 8)).requires_grad_()
    v = torch.randn(64, 8, requires_grad=True)
    weights = Gaussian().weights(q, k)
    assert bool(((weights >= 0) & (weights <= 1)).all())
    for part in torch.autograd.grad(Gaussian()(q, k, v).sum(), (q, k, v)):
        assert bool(part.isfinite().all())


def test_rounding_of_equal_queries_and_keys_stays_below_one_with_the_right_derivatives():
    torch.manual_seed(0)
    q = 1e4 * torch.randn(16, 4)
    unclamped = q @ q.T - 0.5 * (q * q).sum(1)[:, None] - 0.5 * (q * q).sum(1)
    assert bool((unclamped.diagonal() > 0).any()), "rounding is to be felt here"
    assert bool((Gaussian().weights(q, q) <= 1).all())
    # Far from all others but k = q the Hessian is -Σv/√d times the identity: the clamp must not
    # cut it to 0.
    values = torch.ones(16, 4)

    def out(queries):
        return Gaussian()(queries, q, values).sum()

    hessian = torch.autograd.functional.hessian(out, q).view(64, 64)
    weight = Gaussian().weights(q, q).diagonal()
    expected = -(weight * 4 / math.sqrt(4)).repeat_interleave(4)
    torch.testing.assert_close(hessian.diagonal(), expected)


def test_a_number_that_is_none_stays_visible():
    q = torch.zeros(2, 3)
    q[0, 0] = math.nan
    assert bool(Gaussian().weights(q, torch.zeros(2, 3))[0].isnan().all())


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_one_square_matrix_a_head_is_kept(dropout):
    kept: list[tuple[int, ...]] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tuple(tensor.shape))
        return tensor

    q, k, v = (torch.randn(2, 50, 4, requires_grad=True) for _ in range(3))
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        Gaussian()(q, k, v, dropout=dropout)
    assert kept.count((2, 50, 50)) == 1
    assert all(math.prod(shape) <= 2 * 50 * 4 for shape in kept if shape != (2, 50, 50))


@pytest.mark.parametrize(("bandwidth", "stretch"), [(2.0, 1.0), (1.0, 3.0), (0.5, 1.7)])
def test_bandwidth_and_stretch_scale_queries_and_keys(bandwidth, stretch):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 5, 4, dtype=torch.float64)
    made = Gaussian(bandwidth=bandwidth, stretch=stretch)
    expected = definition(q * stretch / bandwidth, k / stretch / bandwidth)
    torch.testing.assert_close(made.weights(q, k), expected, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(made(q, k, v), expected @ v, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_bandwidth_that_is_none_gets_a_sentence(bad):
    with pytest.raises(AttnscopeError, match=f"bandwidth = {bad}: expected a finite number"):
        Gaussian(bandwidth=bad)
    with pytest.raises(AttnscopeError, match=f"stretch = {bad}"):
        Gaussian(stretch=bad)
