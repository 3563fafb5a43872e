from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models import BagAttention, classifier
from attnscope.tasks import Bags, TopicWords, TopicWordsData
from attnscope.theory.lu2021 import (
    identity_residual,
    lemma2,
    lemma2_flow,
    psi_averages,
    reduced_flow,
)

WORDS = np.arange(6)


@pytest.fixture
def data() -> TopicWordsData:
    task = TopicWords(topics=3, words_per_topic=2, m=5, dictionary=40, train=60, test=1)
    return task.sample(4)


def build(reader: Callable, data: TopicWordsData, kind: str, std: float) -> BagAttention:
    generator = torch.Generator().manual_seed(11)
    top = reader(kind, 6, 3, generator)
    model = BagAttention(data.task.vocabulary, 6, top, std=std, generator=generator).double()
    with torch.no_grad():
        model.scores().copy_(torch.randn(data.task.vocabulary, generator=generator) * std)
    return model


@pytest.mark.parametrize(("kind", "time"), [("FC", 60), ("TC", 60), ("tanh", 60), ("TL", 0.5)])
def test_reduced_flow_is_the_flow_of_a_model_with_frozen_words(
    kind: str, time: float, reader: Callable, data: TopicWordsData, topic_rows_flow: Callable
) -> None:
    model = build(reader, data, kind, 0.5)
    before = [p.clone() for p in model.parameters()]
    times = np.linspace(0, time, 7)
    predicted = reduced_flow(
        model.scores(), model.embeddings(), model.classifier, data.train, WORDS, times
    )
    for p, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, old)
    _, scores, embeddings = topic_rows_flow(model, data.train, len(WORDS), time)
    np.testing.assert_allclose(predicted.scores, scores, atol=1e-6)
    np.testing.assert_allclose(predicted.embeddings, embeddings, atol=1e-6)
    assert np.abs(scores[-1] - scores[0]).max() > 0.001 * time


def test_words_may_share_sentences_in_the_reduced_flow(topic_rows_flow: Callable) -> None:
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 9, (30, 5), generator=generator)
    bags = Bags(ids, ids[:, 0] % 3, 9)
    top = classifier("TC", 4, 3, generator=generator)
    model = BagAttention(9, 4, top, std=0.3, generator=generator).double()
    state = (model.scores(), model.embeddings(), model.classifier, bags, np.arange(5))
    predicted = reduced_flow(*state, np.linspace(0, 20, 7))
    with pytest.raises(AttnscopeError, match=r"holds \d of the listed words: expected one at most"):
        lemma2_flow(*state, [20.0])
    _, scores, embeddings = topic_rows_flow(model, bags, 5, 20.0)
    np.testing.assert_allclose(predicted.scores, scores, atol=1e-6)
    np.testing.assert_allclose(predicted.embeddings, embeddings, atol=1e-6)


@pytest.mark.parametrize("kind", ["FC", "TC", "tanh"])
def test_eq_8_is_exact_when_all_surroundings_are_alike(
    kind: str, reader: Callable, data: TopicWordsData
) -> None:
    model = build(reader, data, kind, 0.5)
    with torch.no_grad():
        model.embedding[6:] = model.embedding[6]
        model.scores()[6:] = 0.3
    state = (model.scores(), model.embeddings(), model.classifier, data.train, WORDS)
    times = np.linspace(0, 60, 7)
    exact, printed = reduced_flow(*state, times), lemma2_flow(*state, times)
    np.testing.assert_allclose(printed.scores, exact.scores, atol=1e-7)
    np.testing.assert_allclose(printed.embeddings, exact.embeddings, atol=1e-7)


def test_eq_8_replaces_the_mean_of_a_product_otherwise(
    reader: Callable, data: TopicWordsData
) -> None:
    differences = []
    for std in (0.5, 0.05):
        model = build(reader, data, "FC", std)
        state = (model.scores(), model.embeddings(), model.classifier, data.train, WORDS)
        exact, printed = reduced_flow(*state, [30.0]), lemma2_flow(*state, [30.0])
        differences.append(np.abs(printed.scores - exact.scores).max())
    assert differences[0] > 1e-3
    # The covariance that is dropped is of second order in the surroundings' spread.
    assert differences[1] < differences[0] / 10


def test_theorem_1_is_the_integral_of_lemma_2(reader: Callable, data: TopicWordsData) -> None:
    model = build(reader, data, "TC", 0.5)
    state = (model.scores(), model.embeddings(), model.classifier, data.train, WORDS)
    times = np.linspace(0, 60, 7)
    initial = psi_averages(model.scores(), model.embeddings(), data.train, WORDS)
    printed, exact = lemma2_flow(*state, times), reduced_flow(*state, times)
    assert np.abs(identity_residual(printed.scores, printed.embeddings, initial)).max() < 1e-7
    assert np.abs(identity_residual(exact.scores, exact.embeddings, initial)).max() > 1e-3


def test_a_flow_that_does_not_get_on_is_given_up(
    reader: Callable, data: TopicWordsData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lemma2, "MAX_EVALUATIONS", 40)
    model = build(reader, data, "TL", 0.5)
    with pytest.raises(AttnscopeError, match=r"only come to time .* of 60 after 40 evaluations"):
        reduced_flow(
            model.scores(), model.embeddings(), model.classifier, data.train, WORDS, [60.0]
        )
