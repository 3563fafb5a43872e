"""Sparse pooling against the padded computation, and its gradients against differences."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnscope.models.pooling import (
    MAX_SPREAD,
    bag_average,
    bag_average_padded,
    bag_softmax,
    cross_entropy,
    project,
)
from attnscope.tasks import Bags

pytestmark = pytest.mark.usefixtures("float64")
WORDS, FEATURES = 6, 3


def made(lengths: list[int], seed: int = 0) -> Bags:
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(WORDS, (len(lengths), max(lengths)), generator=draw)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    labels = torch.zeros(len(lengths), dtype=torch.int64)
    return Bags(ids, labels, WORDS, None if bool(mask.all()) else mask)


def drawn(seed: int, size: float = 1.0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    scores = (size * torch.randn(WORDS, generator=draw)).requires_grad_()
    return scores, torch.randn(WORDS, FEATURES, generator=draw).requires_grad_()


def by_hand(scores: Tensor, values: Tensor, bags: Bags) -> Tensor:
    """v̄ = Σ exp(s) v / Σ exp(s), sentence by sentence."""
    rows = []
    for sentence in range(len(bags)):
        words = bags.words[bags.sentences == sentence]
        factors = torch.exp(scores[words])
        rows.append((factors[:, None] * values[words]).sum(0) / factors.sum())
    return torch.stack(rows)


lengths_of_bags = st.lists(st.integers(1, 5), min_size=1, max_size=6)


@given(lengths_of_bags, st.integers(0, 99), st.floats(0.1, 5))
def test_both_averages_equal_the_sum_by_hand(lengths: list[int], seed: int, size: float) -> None:
    bags, (scores, values) = made(lengths, seed), drawn(seed, size)
    expected = by_hand(scores, values, bags)
    pull = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed))
    wanted = torch.autograd.grad((expected * pull).sum(), (scores, values))
    for average in (bag_average, bag_average_padded):
        found = average(scores, values, bags)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
        grads = torch.autograd.grad((found * pull).sum(), (scores, values))
        torch.testing.assert_close(grads, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("lengths", [[3, 3], [1, 3, 2]])
def test_bag_average_has_the_right_gradient(lengths: list[int]) -> None:
    bags, (scores, values) = made(lengths), drawn(1)
    assert torch.autograd.gradcheck(lambda s, v: bag_average(s, v, bags), (scores, values))


@pytest.mark.parametrize("trained", ["scores", "values"])
def test_one_of_two_gradients_may_be_asked_for(trained: str) -> None:
    bags, (scores, values) = made([2, 3]), drawn(1)
    (values if trained == "scores" else scores).requires_grad_(False)
    leaf = scores if trained == "scores" else values
    (found,) = torch.autograd.grad(bag_average(scores, values, bags).square().sum(), leaf)
    (wanted,) = torch.autograd.grad(bag_average_padded(scores, values, bags).square().sum(), leaf)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-13)


def test_the_padded_average_can_be_differentiated_twice() -> None:
    bags, (scores, values) = made([2, 3]), drawn(1)
    assert torch.autograd.gradgradcheck(
        lambda s, v: bag_average_padded(s, v, bags), (scores, values)
    )


@pytest.mark.parametrize("spread", [MAX_SPREAD - 1, MAX_SPREAD + 1, 800.0, 1e5])
@pytest.mark.parametrize("shift", [0.0, -2000.0])
def test_far_apart_scores_stay_finite(spread: float, shift: float) -> None:
    # In the first sentence all scores are low: divided by exp(max s), its sum would be zero.
    bags = Bags(torch.tensor([[0, 1], [0, 5]]), torch.tensor([0, 1]), WORDS)
    scores = torch.tensor([0.0, 0.3, 1.0, 1.0, 1.0, spread]) + shift
    scores.requires_grad_()
    _, values = drawn(0)
    found = bag_average(scores, values, bags)
    expected = bag_average_padded(scores, values, bags)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    weights = torch.softmax(torch.tensor([0.0, 0.3]), dim=0)
    torch.testing.assert_close(found[0], weights @ values[:2])
    grads = torch.autograd.grad(found.square().sum(), (scores, values))
    wanted = torch.autograd.grad(expected.square().sum(), (scores, values))
    torch.testing.assert_close(grads, wanted, rtol=1e-11, atol=1e-13)
    assert all(bool(torch.isfinite(g).all()) for g in grads)
    assert float(grads[0].abs().max()) > 1e-3


def test_single_precision_is_accurate_just_below_the_largest_spread() -> None:
    bags = Bags(torch.tensor([[0, 1], [0, 5]]), torch.tensor([0, 1]), WORDS)
    scores = torch.tensor([0.0, 0.3, 1.0, 1.0, 1.0, MAX_SPREAD - 0.1])
    values = drawn(0)[1].detach()
    found = bag_average(scores.float(), values.float(), bags)
    expected = bag_average_padded(scores, values, bags)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@given(lengths_of_bags, st.integers(0, 99))
def test_weights_are_a_distribution_over_the_words(lengths: list[int], seed: int) -> None:
    bags, (scores, _) = made(lengths, seed), drawn(seed, 3)
    weights = bag_softmax(scores, bags)
    assert weights.shape == bags.ids.shape
    torch.testing.assert_close(weights.sum(1), torch.ones(len(bags)))
    if bags.mask is not None:
        assert bool((weights[~bags.mask] == 0).all())
    indicator = torch.eye(WORDS)
    expected = (weights[..., None] * indicator[bags.ids]).sum(1)
    torch.testing.assert_close(bag_average(scores, indicator, bags), expected)


def test_project_is_a_matrix_product() -> None:
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(5, 4, generator=draw, requires_grad=True)
    weight = torch.randn(4, 3, generator=draw, requires_grad=True)
    torch.testing.assert_close(project(values, weight), values @ weight)
    assert torch.autograd.gradcheck(project, (values, weight))


@pytest.mark.parametrize("classes", [2, 5])
def test_cross_entropy_is_pytorchs(classes: int) -> None:
    draw = torch.Generator().manual_seed(0)
    logits = (10 * torch.randn(7, classes, generator=draw)).requires_grad_()
    labels = torch.randint(classes, (7,), generator=draw)
    found, expected = cross_entropy(logits, labels), F.cross_entropy(logits, labels)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(found, logits), torch.autograd.grad(expected, logits)
    )
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, labels), logits)
