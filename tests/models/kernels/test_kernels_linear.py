"""Linear attention against its definition, without any square matrix."""

import math

import torch
import torch.nn.functional as F
from torch.autograd.graph import saved_tensors_hooks

from attnscope.models.kernels import Linear


def test_weights_are_products_of_features_over_their_sum():
    torch.manual_seed(0)
    q, k = torch.randn(2, 6, 4, dtype=torch.float64)
    products = (F.elu(q) + 1) @ (F.elu(k) + 1).T
    expected = products / products.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(Linear().weights(q, k), expected)


def test_very_negative_entries_still_have_features():
    q = torch.full((2, 3), -40.0)
    out = Linear()(q, torch.tensor([[-40.0] * 3, [-41.0] * 3]), torch.eye(2))
    shares = torch.tensor([math.e, 1.0]) / (math.e + 1)
    torch.testing.assert_close(out, shares.expand(2, 2))


def test_no_square_matrix_is_kept():
    kept: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    q, k, v = (torch.randn(100, 4, requires_grad=True) for _ in range(3))
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        Linear()(q, k, v)
    assert kept
    assert max(kept) <= 400
