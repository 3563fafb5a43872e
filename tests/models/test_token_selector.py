"""The selector's output and gradient against the plain sum, and where only it keeps its digits."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attnscope.models.token_selector import FactoredSelector, TokenSelector, selector_loss
from attnscope.tasks.token_choice import TokenChoice

DATA = TokenChoice(3, 4, 5).sample(0)


def test_output_and_gradient_are_those_of_the_plain_sum() -> None:
    start = np.random.default_rng(0).normal(size=25)
    model = TokenSelector(DATA.features, DATA.scores, start)
    weights = torch.softmax(torch.as_tensor(DATA.features) @ model.theta, dim=1)
    plain = nn.functional.softplus(-(weights * torch.as_tensor(DATA.scores)).sum(dim=1)).mean()
    torch.testing.assert_close(selector_loss(model), plain)
    (ours,) = torch.autograd.grad(selector_loss(model), [model.theta])
    (slow,) = torch.autograd.grad(plain, [model.theta])
    torch.testing.assert_close(ours, slow)


def test_attention_of_1e_minus_30_keeps_its_gradient() -> None:
    features, scores = np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.2]])
    model = TokenSelector(features, scores, np.array([69.0]))
    (slope,) = torch.autograd.grad(selector_loss(model, "linear"), [model.theta])
    np.testing.assert_allclose(slope.item(), -0.8 * np.exp(-69.0), rtol=1e-12)


def test_a_product_of_matrices_is_the_same_head() -> None:
    keys, queries = np.random.default_rng(1).normal(size=(2, 5, 5))
    product = FactoredSelector(DATA.features, DATA.scores, keys, queries)
    whole = TokenSelector(DATA.features, DATA.scores, (keys @ queries.T).ravel())
    torch.testing.assert_close(product.attention(), whole.attention())
    assert {name for name, _ in product.named_parameters()} == {"keys", "queries"}
