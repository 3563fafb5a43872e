"""The unigram point: no push on v there, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.minimal_induction import ExpectedLoss, MinimalInduction
from attnscope.tasks.markov_chains import Chains, MarkovChains
from attnscope.theory.edelman2024 import (
    UnigramExpansion,
    lag_push,
    linear_course,
    predict_transition,
    unigram_point,
)

CHAINS = MarkovChains(2, 16).sample(40, 0)


def test_v_gets_no_gradient_at_the_unigram_rule_and_looks_back_next_to_it() -> None:
    model = MinimalInduction(2, 16, unigram=0.1, rate=9.0)
    torch.nn.init.normal_(model.slow_v)
    assert np.abs(lag_push(model, CHAINS)).max() < 1e-15
    with torch.no_grad():
        model.slow_v.zero_()
        model.W += 0.02 * torch.eye(2)
    push = lag_push(model, CHAINS)
    assert push.argmax() == 1
    assert push[[0, 2]].max() < 0
    # The push is on v, whatever the rate.
    slow = MinimalInduction(2, 16, unigram=0.1, rate=1.0)
    with torch.no_grad():
        slow.W += 0.02 * torch.eye(2)
    np.testing.assert_allclose(push, lag_push(slow, CHAINS), rtol=1e-12)


def test_the_unigram_point_is_the_least_loss_on_its_line() -> None:
    c = unigram_point(CHAINS)
    losses = [
        ExpectedLoss(CHAINS)(MinimalInduction(2, 16, unigram=u)).item()
        for u in (0.9 * c, c, 1.1 * c)
    ]
    assert losses[1] < min(losses[0], losses[2])


def test_the_expansion_has_value_gradient_and_curvature_of_the_loss() -> None:
    expansion, loss = UnigramExpansion(CHAINS), ExpectedLoss(CHAINS)
    model = MinimalInduction(2, 16, unigram=expansion.at, rate=1.0)
    apart = []
    for size in (1e-2, 1e-3):
        with torch.no_grad():
            model.W.copy_(torch.full((2, 2), expansion.at) + size * torch.eye(2))
        apart.append(abs(expansion(model).item() - loss(model).item()))
    assert apart[1] < apart[0] / 500  # third order


def test_the_linear_course_starts_where_it_should_with_the_right_slope() -> None:
    rate, start = 25.0, 0.03
    course = linear_course(CHAINS, rate, start)
    w, v = course(0.0)
    np.testing.assert_allclose(w, start, atol=1e-14)
    np.testing.assert_allclose(v, 0.0, atol=1e-14)
    # From the unigram point itself, W moves down the true gradient.
    c = unigram_point(CHAINS)
    at = linear_course(CHAINS, rate, c)
    model = MinimalInduction(2, 16, unigram=c)
    slope = torch.autograd.grad(ExpectedLoss(CHAINS)(model), model.W)[0].numpy()
    np.testing.assert_allclose((at(1e-5)[0] - at(0.0)[0]) / 1e-5, -slope, rtol=1e-3, atol=1e-9)


def test_faster_v_means_an_earlier_transition_and_no_dependence_means_none() -> None:
    slow, fast = (predict_transition(CHAINS, rate) for rate in (100.0, 400.0))
    assert fast.time < slow.time < slow.linear < 1.6 * slow.time
    alike = CHAINS.matrices.mean(dim=1, keepdim=True).expand(-1, 2, -1)
    with pytest.raises(AttnscopeError, match="no push towards the previous state"):
        predict_transition(Chains(CHAINS.tokens, torch.full_like(alike, 0.5)), 100.0)
