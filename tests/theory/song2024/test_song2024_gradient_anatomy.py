"""Norms of gradients against autograd, and Jacobians against matrices written out."""

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import gradient_norms, jacobian_norm, saturated_share


@pytest.mark.parametrize("kernel", ["softmax", "gaussian", "linear"])
def test_norms_are_autograds_also_where_nothing_learns(kernel):
    x, y = RandomRegression(2, 3, 4).sample(0)
    model = kernel_regression(4, 2, 3, kernel=kernel, trained=("W_Q",))
    loss = SquaredError(x, y, unit=3.0)
    with torch.no_grad():
        found = gradient_norms(model, loss)
    assert not model.W_V.requires_grad
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    names = ("W_Q", "W_K", "W_V", "W_O")
    parts = torch.autograd.grad(loss(model), [model.get_parameter(name) for name in names])
    torch.testing.assert_close(found, torch.stack([part.norm() for part in parts]))


def test_jacobian_norms_are_those_of_the_matrices():
    exponents = torch.randn(3, 2, 5, 5, dtype=torch.float64)
    for kernel, function in (("softmax", lambda c: c.softmax(-1)), ("gaussian", torch.exp)):
        weights = function(exponents)
        row = exponents[1, 0, 2]
        matrix = torch.autograd.functional.jacobian(function, row)
        torch.testing.assert_close(jacobian_norm(weights, kernel)[1, 0, 2], matrix.norm())


def test_a_row_on_one_token_has_no_gradient_for_softmax_and_all_of_it_for_gaussian():
    rows = torch.tensor([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert jacobian_norm(rows, "softmax").tolist() == pytest.approx([0.0, (2 / 9) ** 0.5])
    assert jacobian_norm(rows, "gaussian").tolist() == pytest.approx([1.0, (1 / 3) ** 0.5])
    assert saturated_share(rows, "softmax").item() == 0.5
    assert saturated_share(1e-3 * rows, "gaussian").item() == 1


def test_a_kernel_without_exponents_gets_a_sentence():
    with pytest.raises(AttnscopeError, match="kernel = 'linear'"):
        jacobian_norm(torch.ones(2, 2), "linear")
