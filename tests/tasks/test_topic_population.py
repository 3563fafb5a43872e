"""Infinite documents of Li 2023: closed forms against every topic set and against long samples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks import TopicDocuments, TopicPopulation

MASKS = {"p_m": 0.3, "p_c": 0.2, "p_r": 0.25}
SMALL = TopicPopulation(topics=5, words=3, tau=2, **MASKS)


def by_hand(population: TopicPopulation) -> tuple[np.ndarray, np.ndarray]:
    """Return y_S and P_S of every topic set, position by position of the definition."""
    size, v = population.vocabulary, population.words
    visible, original = [], []
    for chosen in combinations(range(population.topics), population.tau):
        truth = np.zeros(size)
        for word in range(1, size):
            truth[word] = ((word - 1) // v in chosen) / (v * population.tau)
        anything = np.full(size, 1 / (size - 1))
        anything[0] = 0
        hidden = np.eye(size)[0]
        p_m, p_c, p_r = population.p_m, population.p_c, population.p_r
        shown = p_c * truth + p_r * anything + (1 - p_c - p_r) * hidden
        visible.append((1 - p_m) * truth + p_m * shown)
        original.append(truth)
    return np.array(visible), np.array(original)


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_shares_and_moments_are_those_of_all_topic_sets(tau: int) -> None:
    population = TopicPopulation(topics=5, words=3, tau=tau, **MASKS)
    y, p = by_hand(population)
    sets = population.topic_sets()
    assert population.sets == len(sets) == len(y)
    np.testing.assert_allclose(population.visible(sets), y, atol=1e-16)
    np.testing.assert_allclose(population.original(sets), p, atol=1e-16)
    np.testing.assert_allclose(y.sum(axis=1), 1, atol=1e-14)
    moments = population.moments
    np.testing.assert_allclose(moments.visible, y.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(moments.original, p.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(moments.second, y.T @ y / len(y), atol=1e-15)
    np.testing.assert_allclose(moments.cross, p.T @ y / len(y), atol=1e-15)
    variance = 1 - np.square(p).sum(axis=1).mean()
    assert population.noise == pytest.approx(variance, abs=1e-14)


def test_moments_do_not_list_the_sets() -> None:
    population = TopicPopulation(topics=100, words=2, tau=50)
    assert population.sets > 1e28
    assert population.moments.visible.sum() == pytest.approx(1)
    assert population.moments.second.sum() == pytest.approx(1)
    with pytest.raises(AttnscopeError, match=r"topics = 100 and tau = 50 make 1.*topic sets"):
        population.contexts(torch.float64, by_query=False)


@pytest.mark.parametrize("masked_queries", [True, False])
@pytest.mark.parametrize("p_r", [0.25, 0.0])
def test_contexts_hold_the_joint_probability_of_query_and_original(
    p_r: float, masked_queries: bool
) -> None:
    population = TopicPopulation(topics=4, words=2, tau=2, p_m=0.3, p_c=0.2, p_r=p_r)
    y, p = by_hand(population)
    joint = np.zeros((len(y), 9, 9))
    for number, truth in enumerate(p):
        for word in range(1, 9):
            joint[number, word, word] += truth[word] * 0.2
            joint[number, 0, word] += truth[word] * (0.8 - p_r) * masked_queries
            joint[number, 1:, word] += truth[word] * p_r / 8
    joint /= len(y)
    contexts = population.contexts(torch.float64, masked_queries=masked_queries)
    assert contexts.of_position is None
    rebuilt = np.zeros_like(joint)
    rebuilt[contexts.document, contexts.query] = contexts.target
    np.testing.assert_allclose(rebuilt, joint, atol=1e-16)
    assert len(contexts) == int(joint.any(axis=2).sum())
    np.testing.assert_allclose(contexts.log_counts.exp(), y, atol=1e-15)
    together = population.contexts(torch.float64, by_query=False, masked_queries=masked_queries)
    assert not together.query.any()
    np.testing.assert_allclose(together.target, joint.sum(axis=1), atol=1e-16)


def test_long_documents_come_close() -> None:
    task = TopicDocuments(topics=5, words=3, tau=2, length=100_000, **MASKS)
    documents = task.sample(4, 0)
    assert documents.mixture is not None
    expected = SMALL.visible((documents.mixture > 0).numpy())
    shares = documents.contexts(torch.float64).log_counts.exp() / 100_000
    error = np.abs(shares.numpy() - expected)
    assert (error < 4.5 * np.sqrt(expected / 100_000)).all()


def test_names_and_bad_input() -> None:
    assert SMALL.vocabulary == 16
    assert SMALL.topic_of.tolist() == TopicDocuments(topics=5, words=3).topic_of.tolist()
    with pytest.raises(AttnscopeError, match="tau = 6 distinct topics of topics = 5"):
        TopicPopulation(topics=5, tau=6)
    with pytest.raises(AttnscopeError, match=r"sum to 1.2: expected less than 1"):
        TopicPopulation(p_c=0.6, p_r=0.6)
    with pytest.warns(UserWarning, match="no topic structure"):
        TopicPopulation(topics=3, tau=3)
