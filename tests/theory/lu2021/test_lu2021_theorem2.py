from __future__ import annotations

import numpy as np
import torch

from attnscope.models.pooling import bag_softmax
from attnscope.tasks import Bags, TopicWordsData
from attnscope.theory.lu2021 import (
    norm_from_score,
    topic_attention,
    weight_from_norm,
    weight_from_score,
)


def test_topic_attention_is_the_models_attention(tiny: TopicWordsData) -> None:
    scores = np.random.default_rng(0).normal(size=(3, tiny.task.vocabulary))
    weights = topic_attention(scores, tiny.train, 0)
    for row, weight in zip(scores, weights, strict=True):
        expected = bag_softmax(torch.from_numpy(row), tiny.train)[:, 0]
        np.testing.assert_allclose(weight, expected, rtol=1e-13)


def test_topic_attention_where_sentences_differ_in_length() -> None:
    bags = Bags(
        torch.tensor([[0, 1, 2], [2, 0, 0]]),
        torch.tensor([0, 1]),
        3,
        torch.tensor([[True, True, True], [True, True, False]]),
    )
    scores = np.log([1.0, 2.0, 4.0])
    np.testing.assert_allclose(topic_attention(scores, bags, [1, 0]), [2 / 7, 4 / 5])


def test_weight_from_score_is_the_attention_among_words_of_score_zero(
    tiny: TopicWordsData,
) -> None:
    scores = np.zeros(tiny.task.vocabulary)
    scores[:3] = 1.7
    expected = topic_attention(scores, tiny.train, 0)
    np.testing.assert_allclose(weight_from_score(1.7, tiny.task.m), expected, rtol=1e-13)
    assert weight_from_score(1000.0, 20) == 1.0


def test_weight_from_norm_goes_through_corollary_1() -> None:
    scores = np.array([0.0, 0.1, 3.0, 8.0])
    expected = np.exp(scores) / (np.exp(scores) + 20)
    np.testing.assert_allclose(weight_from_norm(norm_from_score(scores, 20), 20), expected)
