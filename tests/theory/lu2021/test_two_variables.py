"""The two-variable system against the model's own gradients, its closed case, and Adam itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.models.bag_attention import BagAttention
from attnscope.models.classifiers import FixedLinear
from attnscope.tasks.bags import Bags
from attnscope.theory.lu2021 import (
    fixed_linear_norm,
    mean_concentration,
    score_from_norm,
    two_variable_adam,
    two_variable_flow,
)
from attnscope.theory.lu2021.two_variables import _Texts


def texts(seed: int, number: int = 60, words: int = 12) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(seed)
    ids = dice.integers(2, words, (number, 6))
    labels = dice.integers(0, 2, number)
    ids[:, 0] = labels
    return ids, labels


def counted(ids: np.ndarray, words: int) -> sparse.csr_array:
    table = np.zeros((len(ids), words))
    for row, own in zip(table, ids, strict=True):
        np.add.at(row, own, 1.0)
    return sparse.csr_array(table)


@pytest.mark.parametrize("seed", range(3))
def test_it_has_the_gradients_of_the_model_along_the_one_direction_that_moves(seed: int) -> None:
    ids, labels = texts(seed)
    dice = torch.Generator().manual_seed(seed)
    model = BagAttention(12, 5, FixedLinear(5, 2, generator=dice), generator=dice).double()
    # Drawn in single precision; in double its columns are not orthonormal to the last digit.
    model.classifier.weight.copy_(torch.linalg.qr(model.classifier.weight)[0])
    axis = (model.classifier.weight[:, 1] - model.classifier.weight[:, 0]) / 2**0.5
    x, s = np.random.default_rng(seed).normal(size=(2, 12))
    with torch.no_grad():
        model.embedding.copy_(torch.from_numpy(x)[:, None] * axis)
        model.score_source.score.copy_(torch.from_numpy(s))
    bags = Bags(torch.from_numpy(ids), torch.from_numpy(labels), 12)
    rows = torch.nn.functional.cross_entropy(
        model.forward_padded(bags), bags.labels, reduction="none"
    )
    system = _Texts(counted(ids, 12), labels)
    to_x, to_s = system.pull(x, s)
    embedding, score = torch.autograd.grad(
        rows.mean(), (model.embedding, model.score_source.score), retain_graph=True
    )
    assert -(embedding @ axis).numpy() == pytest.approx(to_x, abs=1e-12)
    assert -score.numpy() == pytest.approx(to_s, abs=1e-12)
    assert torch.linalg.norm(embedding - (embedding @ axis)[:, None] * axis) < 1e-12
    own = [
        torch.autograd.grad(row, (model.embedding, model.score_source.score), retain_graph=True)
        for row in rows
    ]
    square_x, square_s = system.squares(x, s)
    assert square_x == pytest.approx(
        np.mean([(e @ axis).numpy() ** 2 for e, _ in own], axis=0), abs=1e-12
    )
    assert square_s == pytest.approx(np.mean([g.numpy() ** 2 for _, g in own], axis=0), abs=1e-12)


def test_one_topic_word_among_others_is_the_closed_solution() -> None:
    """Words around it stand once in each class in turn, so that nothing moves them."""
    m, sets = 3, 40
    around = [range(2 + m * j, 2 + m * (j + 1)) for j in range(sets)]
    ids = np.array([[side, *words] for words in around for side in (0, 1)])
    labels = np.tile([0, 1], sets)
    times = np.array([0.0, 20.0, 60.0, 200.0])
    found = two_variable_flow(counted(ids, 2 + m * sets), labels, times)
    norm = fixed_linear_norm(times, m, 2, [0.5])[:, 0]
    assert found.projections[:, 1] == pytest.approx(norm, rel=0.01)
    assert found.projections[:, 0] == pytest.approx(-norm, rel=0.01)
    assert found.scores[:, 1] == pytest.approx(score_from_norm(norm, m), rel=0.02, abs=1e-9)


def test_adam_on_the_model_does_what_the_system_says() -> None:
    ids, labels = texts(1, 400, 30)
    steps = np.arange(0, 301, 60)
    said = two_variable_adam(counted(ids, 30), labels, steps, rate=5e-3, batch=400, dim=40)
    dice = torch.Generator().manual_seed(0)
    model = BagAttention(30, 40, FixedLinear(40, 2, generator=dice), std=1e-3, generator=dice)
    bags = Bags(torch.from_numpy(ids), torch.from_numpy(labels), 30)
    adam, seen = torch.optim.Adam(model.parameters(), lr=5e-3), []
    for step in range(301):
        if step in steps:
            seen.append(model.scores().detach().numpy().copy())
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model(bags), bags.labels).backward()
        adam.step()
    counts = counted(ids, 30)
    assert mean_concentration(said.scores, counts) == pytest.approx(
        mean_concentration(np.array(seen), counts), rel=0.2, abs=0.01
    )


def test_concentration_is_that_of_weights_laid_out() -> None:
    ids, _ = texts(2)
    score = np.random.default_rng(0).normal(size=(3, 12))
    weights = np.exp(score)[:, ids]
    weights /= weights.sum(axis=-1, keepdims=True)
    entropy = -(weights * np.log(weights)).sum(axis=-1) / np.log(6)
    assert mean_concentration(score, counted(ids, 12)) == pytest.approx((1 - entropy).mean(axis=1))
    assert mean_concentration(np.zeros(12), counted(ids, 12)) == pytest.approx(0.0, abs=1e-12)


def test_bad_input_is_told() -> None:
    ids, labels = texts(0)
    counts = counted(ids, 12)
    with pytest.raises(AttnscopeError, match="60 texts and 59 labels"):
        two_variable_flow(counts, labels[1:], [1.0])
    with pytest.raises(AttnscopeError, match=r"\[0, 2\]: expected the classes 0 and 1"):
        two_variable_flow(counts, 2 * labels, [1.0])
    with pytest.raises(AttnscopeError, match=r"times \[2.0, 1.0\]"):
        two_variable_flow(counts, labels, [2.0, 1.0])
    with pytest.raises(AttnscopeError, match="rate = 0"):
        two_variable_adam(counts, labels, [1.0], rate=0.0, batch=1, dim=2)
    with pytest.raises(AttnscopeError, match="no text of two words"):
        mean_concentration(np.zeros(12), counted(ids[:, :1], 12))
    empty = sparse.csr_array(np.where(np.arange(60)[:, None] == 3, 0.0, counts.toarray()))
    with pytest.raises(AttnscopeError, match="a text without any word"):
        two_variable_flow(empty, labels, [1.0])
