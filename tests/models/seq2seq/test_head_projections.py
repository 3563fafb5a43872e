"""Projections for each head against a loop over heads, steps and positions."""

from __future__ import annotations

import pytest
import torch

from attnscope.models.seq2seq.head_projections import HeadProjections

pytestmark = pytest.mark.usefixtures("float64")
ROWS, K, T, L, E, H = 2, 3, 4, 5, 6, 7


@pytest.mark.parametrize("mean", [False, True])
def test_the_context_is_the_formula(mean: bool) -> None:
    torch.manual_seed(0)
    layer = HeadProjections(K, E, H, mean=mean)
    weights = torch.softmax(torch.randn(ROWS, K, T, L), dim=3)
    h = torch.randn(ROWS, L, E)
    found = layer(weights, h)
    for row in range(ROWS):
        for t in range(T):
            expected = torch.zeros(H)
            for k in range(K):
                terms = zip(weights[row, k, t], h[row], strict=True)
                context = torch.stack([a * state for a, state in terms]).sum(dim=0)
                expected += layer.weight[k].T @ context + layer.bias[k]
            torch.testing.assert_close(found[row, t], expected / K if mean else expected)


@pytest.mark.parametrize("mean", [False, True])
def test_one_position_is_weight_one_there(mean: bool) -> None:
    torch.manual_seed(0)
    layer = HeadProjections(K, E, H, mean=mean)
    h = torch.randn(ROWS, L, E)
    # As many decoder steps as positions: step l looks at l.
    weights = torch.eye(L).expand(ROWS, K, L, L)
    torch.testing.assert_close(layer.at_one_position(h), layer(weights, h))


def test_the_start_is_that_of_a_linear_layer() -> None:
    layer = HeadProjections(K, 100, 50, mean=True)
    for values in (layer.weight.detach(), layer.bias.detach()):
        assert float(values.abs().max()) <= 0.1
        assert float(values.abs().max()) > 0.09
