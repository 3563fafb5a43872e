"""Mean attention by kind of pair: against loops, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.probes.topics.topic_attention import (
    attention_ratios,
    main_topic_factor,
    topic_attention,
)

TOPIC = np.array([-1, 0, 0, 1, 1, 2])


def documents(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return weights (document, layer, head, key, query), ids, topics and lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.array([7, 4, 6])
    held = np.arange(7) < lengths[:, None]
    ids = np.where(held, rng.integers(6, size=(3, 7)), 0)
    weights = rng.random((3, 2, 2, 7, 7)) * held[:, None, None, :, None]
    return weights / weights.sum(axis=-2, keepdims=True), ids, TOPIC[ids], lengths


def test_equals_a_loop_over_pairs() -> None:
    weights, ids, topics, lengths = documents()
    found = topic_attention(weights, ids, topics, lengths)
    for layer in range(2):
        for head in range(2):
            kinds: list[list[float]] = [[], [], []]
            for n in range(3):
                for i in range(7):
                    for j in range(7):
                        if topics[n, i] < 0 or topics[n, j] < 0:
                            continue
                        same = 1 if topics[n, i] == topics[n, j] else 2
                        kind = 0 if ids[n, i] == ids[n, j] else same
                        kinds[kind].append(weights[n, layer, head, i, j] * lengths[n] / 100)
            np.testing.assert_allclose(
                found.kinds[layer, head], [np.mean(values) for values in kinds], rtol=1e-12
            )
            assert found.pairs == tuple(map(len, kinds))


def test_uniform_attention_is_one_hundredth_at_every_length() -> None:
    _, ids, topics, lengths = documents()
    uniform = np.broadcast_to(1 / lengths[:, None, None], (3, 7, 7))
    found = topic_attention(uniform, ids, topics, lengths)
    np.testing.assert_allclose(found.kinds, 0.01, rtol=1e-12)
    assert found.ratio == pytest.approx(1, rel=1e-12)


def test_without_lengths_documents_fill_the_array() -> None:
    weights, ids, topics, _ = documents()
    given = topic_attention(weights, ids, topics, np.full(3, 7))
    np.testing.assert_array_equal(topic_attention(weights, ids, topics).kinds, given.kinds)


def test_weights_of_positions_without_a_topic_do_not_matter() -> None:
    weights, ids, topics, lengths = documents()
    out = topics < 0
    assert out.any()
    changed = np.where(out[:, None, None, :, None] | out[:, None, None, None, :], 9.0, weights)
    before = topic_attention(weights, ids, topics, lengths)
    after = topic_attention(changed, ids, topics, lengths)
    np.testing.assert_array_equal(after.kinds, before.kinds)


def test_keys_come_before_queries() -> None:
    # The query at 0 looks at the key at 1, of its topic; the query at 1 looks at itself.
    weights = np.array([[[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    found = topic_attention(weights, np.array([[1, 2, 3]]), np.array([[0, 0, -1]]))
    assert found.same_topic == pytest.approx((1.0 + 0.0) / 2 * 3 / 100)
    assert found.same_word == pytest.approx((0.0 + 1.0) / 2 * 3 / 100)


def test_a_kind_without_pairs_is_not_a_number() -> None:
    found = topic_attention(np.full((1, 2, 2), 0.5), np.array([[1, 1]]), np.array([[0, 0]]))
    assert found.pairs == (4, 0, 0)
    assert found.same_word == pytest.approx(0.01)
    assert np.isnan(found.same_topic)
    assert np.isnan(found.different_topic)


@pytest.mark.parametrize(
    ("weights", "ids", "topics", "lengths", "words"),
    [
        ((2, 3, 3), (2, 3), (2, 4), None, r"topics of shape \(2, 4\)"),
        ((2, 3, 4), (2, 3), (2, 3), None, r"expected \(2, ..., 3, 3\), keys before queries"),
        ((3, 3), (3, 3), (3, 3), None, r"weights of shape \(3, 3\)"),
        ((2, 3, 3), (2, 3), (2, 3), (3,), "one for each of 2 documents"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    weights: tuple[int, ...],
    ids: tuple[int, ...],
    topics: tuple[int, ...],
    lengths: tuple[int, ...] | None,
    words: str,
) -> None:
    with pytest.raises(AttnscopeError, match=words):
        topic_attention(
            np.zeros(weights),
            np.zeros(ids, dtype=int),
            np.zeros(topics, dtype=int),
            None if lengths is None else np.ones(lengths),
        )


@pytest.mark.parametrize("mask_ratio", [0.5, 1.0, 2.0])
def test_ratios_are_those_of_the_scores(mask_ratio: float) -> None:
    topic = np.array([-1, *np.repeat(np.arange(5), 3)])
    scores = np.where(topic[:, None] == topic, np.log(4.0), 0.0)
    scores[0] = np.log(mask_ratio)
    measured = attention_ratios(torch.from_numpy(scores), topic)
    np.testing.assert_allclose(measured.mean(1), [4.0] * 3 + [mask_ratio], rtol=1e-12)


def test_the_word_itself_has_a_ratio_of_its_own() -> None:
    topic = np.array([-1, *np.repeat(np.arange(5), 3)])
    scores = torch.from_numpy(np.where(np.eye(16) > 0, np.log(7.0), 0.0))
    expected = np.array([1.0, 7.0, 3.0, 1.0])
    np.testing.assert_allclose(attention_ratios(scores, topic), np.tile(expected, (15, 1)).T)


def test_the_main_topic_is_told_from_words_and_documents() -> None:
    """Weights document × word, and a factor where a word has the document's main topic."""
    rng = np.random.default_rng(1)
    ids, lengths = rng.integers(1, 6, size=(30, 9)), np.full(30, 9)
    ids[:, 0] = 0
    topics = TOPIC[ids]
    main = np.array([np.bincount(row[row >= 0]).argmax() for row in topics])
    weight = rng.random((30, 1)) * rng.random(6)[ids]
    factors = np.array([[1.0, 0.5], [2.0, 3.0]])
    own = (topics == main[:, None])[:, None, None, :]
    keys = weight[:, None, None, :] * np.where(own, factors[:, :, None], 1.0)
    weights = np.broadcast_to(keys[..., None], (30, 2, 2, 9, 9))
    found = main_topic_factor(ids, topics, lengths)(weights)
    np.testing.assert_allclose(found, factors, rtol=1e-8)
