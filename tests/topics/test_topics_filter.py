"""The ambiguity filter."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.topics.filter import topic_words, usable_thresholds
from attnscope.topics.model import TopicModel

# Words a to j; topic 0 prefers a b c, topic 1 prefers c d e, topic 2 prefers f and then a.
TABLE = np.array(
    [
        [30, 25, 20, 5, 5, 3, 3, 3, 3, 3],
        [3, 3, 30, 25, 20, 4, 4, 4, 4, 3],
        [25, 4, 4, 4, 4, 40, 5, 5, 5, 4],
    ]
)


def model(table: np.ndarray = TABLE) -> TopicModel:
    matrix = (table / table.sum(axis=1, keepdims=True)).astype(np.float32)
    return TopicModel(tuple("abcdefghij"), matrix, np.zeros(len(table)), {})


def test_ambiguous_words_are_dropped() -> None:
    found = topic_words(model(), 0.3)
    # Three words a topic: a b c, c d e, f a g.
    assert found.words == ("b", "d", "e", "f", "g")
    one = {word: frozenset([topic]) for word, topic in zip("bdefg", (0, 1, 1, 2, 2), strict=True)}
    assert found.topics == one
    assert (found.threshold, found.overlap) == (0.3, False)
    assert found.pairs() == 2
    assert found.same("d", "e")
    assert not found.same("b", "d")


def test_with_overlap_a_word_has_several_topics() -> None:
    found = topic_words(model(), 0.3, overlap=True)
    assert found.words == tuple("abcdefg")
    assert found.topics["a"] == {0, 2}
    assert found.topics["c"] == {0, 1}
    assert found.same("a", "f")
    assert not found.same("a", "d")
    assert found.pairs() == 9  # three a topic, none of them in two


def test_pairs_that_share_two_topics_count_once() -> None:
    assert topic_words(model(TABLE[[0, 0]]), 0.3, overlap=True).pairs() == 3


def test_no_pair_left_says_which_thresholds_leave_some() -> None:
    # Two words of their own, then two of the other's, then the same words in the same order.
    wide = np.tile(np.arange(2000.0)[::-1] + 1, (2, 1))
    wide[0, :2], wide[1, 2:4] = 5000, 5000
    words = tuple(f"w{number}" for number in range(2000))
    fitted = TopicModel(words, wide, np.zeros(2), {})
    assert usable_thresholds(fitted) == (0.001,)
    sentence = r"0\.0005 leaves no pair .* words is 1 a topic.* leaves some, such as 0\.001\."
    with pytest.raises(AttnscopeError, match=sentence):
        topic_words(fitted, 0.0005)


def test_topics_that_do_not_differ() -> None:
    with pytest.raises(AttnscopeError, match="No threshold leaves one: expected topics that diff"):
        topic_words(model(TABLE[[0, 0]]), 0.3)


@pytest.mark.parametrize("threshold", [0, -0.1, 1.5, float("nan")])
def test_a_threshold_that_is_no_share(threshold: float) -> None:
    with pytest.raises(AttnscopeError, match="is no share of the vocabulary: expected"):
        topic_words(model(), threshold)
