"""The onset end to end, on a softmax attention small enough to train in a moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    measured_onset,
    predicted_onset,
    propagate,
    score_gradient,
    top_singular,
)

WORDS, D_A, ETA = 6, 8, 0.5


def attention_loss_of(seed: int) -> Callable[[Tensor], Tensor]:
    """Return the squared loss of one-hot attention, by a matrix added to zero logits."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(WORDS, (40, 12), generator=generator)
    value = torch.randn(WORDS, WORDS, generator=generator, dtype=torch.float64)
    target = torch.randn(40, 12, WORDS, generator=generator, dtype=torch.float64)

    def loss(added: Tensor) -> Tensor:
        weights = added[words[:, :, None], words[:, None, :]].softmax(dim=1)
        output = torch.einsum("dij,div->djv", weights, value[words])
        return (output - target).square().sum(dim=-1).mean()

    return loss


def test_gradient_by_the_product_is_that_of_keys_and_queries() -> None:
    loss = attention_loss_of(0)
    gradient = score_gradient(loss, (WORDS, WORDS), d_a=D_A)
    generator = torch.Generator().manual_seed(1)
    draw = {"generator": generator, "dtype": torch.float64}
    keys = (1e-5 * torch.randn(D_A, WORDS, **draw)).requires_grad_()
    queries = (1e-5 * torch.randn(D_A, WORDS, **draw)).requires_grad_()
    loss(keys.T @ queries / D_A**0.5).backward()
    scale = float(gradient.abs().max())
    assert scale > 1e-3
    # What is left is of the third order in keys and queries.
    for found, linear in ((keys.grad, queries @ gradient.T), (queries.grad, keys @ gradient)):
        torch.testing.assert_close(found, linear, rtol=0, atol=1e-13)
    torch.testing.assert_close(
        score_gradient(loss, (WORDS, WORDS)), gradient * D_A**0.5, rtol=1e-12, atol=0
    )


def test_onset_of_training_is_predicted_before_training() -> None:
    loss = attention_loss_of(2)
    gradient = score_gradient(loss, (WORDS, WORDS), d_a=D_A).numpy()
    rng, eps = np.random.default_rng(3), 1e-4
    start = eps * rng.normal(size=(2, D_A, WORDS))
    keys, queries = (torch.tensor(side, requires_grad=True) for side in start)
    optimiser = torch.optim.SGD([keys, queries], lr=ETA)
    norms = []
    for _ in range(1200):
        norms.append(float(torch.linalg.matrix_norm((keys.T @ queries).detach(), 2)))
        if norms[-1] > 0.2:
            break
        optimiser.zero_grad()
        loss(keys.T @ queries / D_A**0.5).backward()
        optimiser.step()
    level, times = 0.1, ETA * np.arange(len(norms))
    measured = measured_onset(times, norms, level).time
    assert measured > 20

    gradients = np.broadcast_to(gradient, (len(times), WORDS, WORDS))
    linear = propagate(*start, times, gradients, lr=ETA)
    assert measured_onset(times, linear.norms, level).time == pytest.approx(measured, rel=0.02)
    # The average over initial values may be late for these, hence the longer time.
    sigma = np.full(2, top_singular(gradients[:1])[0])
    rank_one = predicted_onset([0, 2 * times[-1]], sigma, eps, D_A, lr=ETA, level=level)
    assert rank_one.time == pytest.approx(measured, rel=0.15)


def test_a_loss_without_the_scores_is_refused() -> None:
    weight = torch.ones(2, requires_grad=True)
    for loss in (lambda added: weight.sum(), lambda added: torch.tensor(1.0)):
        with pytest.raises(AttnscopeError, match="does not depend on the score matrix"):
            score_gradient(loss, (2, 2))
