"""Softmax weights against numbers worked out by hand."""

import math

import torch

from attnscope.models.kernels import Softmax


def test_weights_are_the_softmax_of_scaled_products():
    q = torch.tensor([[2.0, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    k = torch.tensor([[math.log(3), 0, 0, 0], [0, 5, 5, 5]], dtype=torch.float64)
    # q·k/√4 = log 3 and 0 in the first row.
    expected = torch.tensor([[0.75, 0.25], [0.5, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(Softmax().weights(q, k), expected)


def test_without_gradients_nothing_is_kept():
    q, k, v = (torch.randn(3, 4, requires_grad=True) for _ in range(3))
    with torch.no_grad():
        out = Softmax()(q, k, v)
    assert not out.requires_grad
    torch.testing.assert_close(out, Softmax().weights(q, k).detach() @ v.detach())
