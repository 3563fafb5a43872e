"""What all kernels promise: one value on both paths, derivatives, masks, sentences."""

import math

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.kernels import KERNELS, attend_eagerly, kernel

MASK = torch.tensor([[True, True, False, True, False], [False] * 5])[:, None]


def drawn(*shape: int, count: int = 3, seed: int = 0) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    made = [torch.randn(shape, dtype=torch.float64, generator=source) for _ in range(count)]
    return [tensor.requires_grad_() for tensor in made]


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_fast_path_equals_the_eager_one_with_two_derivatives(name, mask):
    made, (q, k, v) = kernel(name), drawn(2, 1, 5, 2)
    torch.testing.assert_close(
        made(q, k, v, mask), attend_eagerly(made, q, k, v, mask), rtol=1e-13, atol=1e-13
    )

    def small(*parts):
        return made(*parts, mask)

    assert torch.autograd.gradcheck(small, (q, k, v))
    assert torch.autograd.gradgradcheck(small, (q, k, v))


@pytest.mark.parametrize("name", KERNELS)
def test_torch_func_goes_through_the_eager_path(name):
    made, (q, k, v) = kernel(name), drawn(3, 2)

    def eager(queries):
        return attend_eagerly(made, queries, k.detach(), v.detach()).pow(2).sum()

    def fast(queries):
        return made(queries, k.detach(), v.detach()).pow(2).sum()

    by_func = torch.func.jacrev(torch.func.jacrev(eager))(q.detach())
    by_hand = torch.autograd.functional.hessian(fast, q.detach())
    torch.testing.assert_close(by_func, by_hand, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_masked_keys_weigh_exactly_nothing(name):
    made, (q, k, v) = kernel(name), drawn(2, 2, 5, 3)
    weights = made.weights(q, k, MASK)
    assert (weights[0][..., [2, 4]] == 0).all()
    assert (weights[0][..., [0, 1, 3]] > 0).all()
    assert (weights[1] == 0).all()
    assert (made(q, k, v, MASK)[1] == 0).all()
    # What stands at a masked key is of no influence.
    other = k.detach().clone()
    other[0, :, [2, 4]] = 7.0
    torch.testing.assert_close(made(q, other, v, MASK)[0], made(q, k, v, MASK)[0])
    short = made.weights(q[:1], k[:1, :, [0, 1, 3]])
    torch.testing.assert_close(weights[:1][..., [0, 1, 3]], short)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_sum_to_one_where_the_kernel_says_so(name):
    made, (q, k) = kernel(name), drawn(2, 5, 3, count=2)
    sums = made.weights(q, k).sum(dim=-1)
    assert torch.allclose(sums, torch.ones_like(sums), rtol=1e-12) == made.normalised


@pytest.mark.parametrize("name", KERNELS)
def test_dropout_leaves_out_a_share_and_keeps_the_mean(name):
    made, (q, k, _) = kernel(name), drawn(40, 3)
    # With values = I the output is the matrix of weights itself.
    identity = torch.eye(40, dtype=torch.float64)
    torch.manual_seed(0)
    out = made(q, k, identity, dropout=0.25)
    ratio = out / made.weights(q, k)
    zero, kept = ratio == 0, torch.isclose(ratio, torch.tensor(4 / 3, dtype=torch.float64))
    assert bool((zero | kept).all())
    assert 0.2 < zero.double().mean() < 0.3


@pytest.mark.parametrize("name", KERNELS)
def test_dropout_has_the_right_gradient(name):
    made, (q, k, v) = kernel(name), drawn(4, 3)

    def repeated(*parts):
        torch.manual_seed(3)
        return made(*parts, dropout=0.5)

    assert torch.autograd.gradcheck(repeated, (q, k, v))
    assert torch.autograd.gradgradcheck(repeated, (q, k, v))


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(AttnscopeError, match=r"'gausian'.*Did you mean 'gaussian'"):
        kernel("gausian")


@pytest.mark.parametrize("name", KERNELS)
def test_shapes_that_do_not_fit_get_sentences(name):
    made, ones = kernel(name), torch.ones
    with pytest.raises(AttnscopeError, match=r"\(2, 0\).*one d, 1 or more"):
        made.weights(ones(2, 0), ones(2, 0))
    with pytest.raises(AttnscopeError, match=r"\(2, 3\) and keys of shape \(2, 4\)"):
        made(ones(2, 3), ones(2, 4), ones(2, 3))
    with pytest.raises(AttnscopeError, match="a value for each key"):
        made(ones(2, 3), ones(2, 3), ones(5, 3))
    with pytest.raises(AttnscopeError, match="expected booleans"):
        made(ones(2, 3), ones(2, 3), ones(2, 3), ones(2))
    with pytest.raises(AttnscopeError, match=r"dropout = 1.0"):
        made(ones(2, 3), ones(2, 3), ones(2, 3), None, 1.0)


@pytest.mark.parametrize("name", ["gaussian", "softmax", "normalised-gaussian"])
def test_a_second_backward_pass_on_a_kept_graph_gives_the_same(name):
    made, (q, k, v) = kernel(name), drawn(4, 3)
    value = made(q, k, v).sum()
    first = torch.autograd.grad(value, (q, k, v), retain_graph=True)
    second = torch.autograd.grad(value, (q, k, v))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
        assert math.isfinite(float(one.sum()))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("name", KERNELS)
def test_no_number_is_looked_at_on_another_device(name, dropout):
    """Of tensors without numbers the shapes are known, and nothing else may be asked."""
    q, k, v = (torch.empty(2, 1, 5, 3, device="meta", requires_grad=True) for _ in range(3))
    mask = torch.empty(2, 1, 5, dtype=torch.bool, device="meta")
    out = kernel(name)(q, k, v, mask, dropout)
    assert out.shape == (2, 1, 5, 3)
    assert out.device.type == "meta"
    assert [part.shape for part in torch.autograd.grad(out.sum(), (q, k, v))] == [q.shape] * 3
