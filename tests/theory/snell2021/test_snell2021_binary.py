from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.theory.snell2021 import attention_pull, correct_probability


def problems(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(6), size=50), rng.uniform(0.01, 0.99, size=(50, 6))


def test_eq_12_is_the_model_of_eq_8() -> None:
    alpha, beta = problems()
    gamma = torch.tensor(np.log(beta / (1 - beta)))
    p = torch.sigmoid((torch.tensor(alpha) * gamma).sum(dim=1)).numpy()
    assert np.abs(correct_probability(alpha, beta) - p).max() < 1e-14


def test_no_attention_beats_the_largest_beta_or_falls_below_the_least() -> None:
    alpha, beta = problems()
    p = correct_probability(alpha, beta)
    assert (p < beta.max(axis=1)).all()
    assert (p > beta.min(axis=1)).all()
    at_best = np.eye(6)[beta.argmax(axis=1)]
    assert correct_probability(at_best, beta) == pytest.approx(beta.max(axis=1), rel=1e-13)


def test_pull_is_the_gradient_by_the_logits() -> None:
    alpha, beta = problems(1)
    a = torch.tensor(np.log(alpha), requires_grad=True)
    odds = torch.tensor(np.log(beta / (1 - beta)))
    loss = -torch.nn.functional.logsigmoid((torch.softmax(a, dim=1) * odds).sum(dim=1)).sum()
    (gradient,) = torch.autograd.grad(loss, a)
    assert np.abs(attention_pull(alpha, beta) + gradient.numpy()).max() < 1e-14


def test_equal_beta_leaves_attention_without_a_gradient() -> None:
    alpha, _ = problems()
    beta = np.full(alpha.shape, 0.7)
    assert np.abs(attention_pull(alpha, beta)).max() < 1e-15
    assert correct_probability(alpha, beta) == pytest.approx(np.full(50, 0.7), rel=1e-14)


def test_a_certain_word_without_attention_says_nothing() -> None:
    assert correct_probability([1.0, 0.0], [0.6, 1.0]) == pytest.approx(0.6)
    assert correct_probability([0.9, 0.1], [0.6, 1.0]) == 1.0


def test_bad_input_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match=r"\(2,\) and beta of shape \(3,\)"):
        attention_pull([0.5, 0.5], [0.1, 0.2, 0.3])
    with pytest.raises(AttnscopeError, match="sum to 1"):
        attention_pull([0.5, 0.6], [0.1, 0.2])
    with pytest.raises(AttnscopeError, match=r"0\.1 to 1\.2"):
        attention_pull([0.5, 0.5], [0.1, 1.2])
    with pytest.raises(AttnscopeError, match="strictly"):
        attention_pull([0.5, 0.5], [0.1, 1.0])
