from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.models import FixedLinear
from attnscope.tasks import TopicWords
from attnscope.theory.lu2021 import (
    fixed_linear_loss,
    fixed_linear_norm,
    late_loss,
    reduced_flow,
    score_from_norm,
    topic_attention,
    weight_from_norm,
)


def test_norm_score_weight_and_loss_are_those_of_the_topic_words_flow() -> None:
    # From embeddings zero nothing is approximate; topic words differ in how often they occur.
    data = TopicWords(topics=3, words_per_topic=2, m=7, dictionary=30, train=50, test=1).sample(0)
    task, words = data.task, np.arange(6)
    reader = FixedLinear(8, 3, generator=torch.Generator().manual_seed(0)).double()
    reader.weight = torch.linalg.qr(reader.weight)[0]
    times = np.array([0.0, 5.0, 60.0, 400.0])
    scores, embeddings = np.zeros(task.vocabulary), np.zeros((task.vocabulary, 8))
    flow = reduced_flow(scores, embeddings, reader, data.train, words, times)
    share = data.train.occurrences[:6].numpy() / len(data.train)
    assert len(set(share)) > 1
    norm = fixed_linear_norm(times, task.m, 3, share)
    np.testing.assert_allclose(norm, np.linalg.norm(flow.embeddings, axis=-1), atol=1e-7)
    np.testing.assert_allclose(score_from_norm(norm, task.m), flow.scores, atol=1e-7)

    last = scores.copy()
    last[:6] = flow.scores[-1]
    topic = data.train.ids[:, 0].numpy()
    weight = topic_attention(last, data.train, 0)
    np.testing.assert_allclose(weight, weight_from_norm(norm[-1], task.m)[topic], atol=1e-7)
    logits = weight[:, None] * flow.embeddings[-1][topic] @ reader.weight.numpy()
    loss = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(50), data.train.labels]
    np.testing.assert_allclose(loss, fixed_linear_loss(norm[-1], task.m, 3)[topic], atol=1e-7)


@pytest.mark.parametrize("classes", [2, 5])
def test_loss_tends_to_zero_as_one_over_time(classes: int) -> None:
    times, share = np.array([1e3, 1e5, 1e7, 1e9, 1e11]), np.array([0.125, 0.5])
    norm = fixed_linear_norm(times, 20, classes, share)
    ratio = fixed_linear_loss(norm, 20, classes) / late_loss(times, classes, share)
    # Corrections of order 1/‖v‖² cancel; those of order s/‖v‖⁴ are left, and a delay.
    assert (np.abs(ratio - 1)[2:] < 100 / norm[2:] ** 4).all()
    assert (ratio[0] > 1.05).all()
    assert (np.diff(weight_from_norm(norm, 20), axis=0) > 0).all()
