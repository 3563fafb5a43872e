"""Shuffled topics keep their sizes, and co-occurrence is that of a count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.pretrained.plan import SHUFFLES, count_cooccurrence, make_plan
from attnscope.probes.topics.topic_pairs import pair_numbers
from attnscope.topics.filter import TopicVocabulary

CHOSEN = TopicVocabulary(
    ("fleet", "moon", "orbit", "ship"),
    {
        "fleet": frozenset({0}),
        "moon": frozenset({1}),
        "orbit": frozenset({1}),
        "ship": frozenset({0}),
    },
    0.001,
    False,
)


def test_topics_stand_where_they_should() -> None:
    plan = make_plan([CHOSEN])
    (labels,) = plan.labels
    assert plan.words == CHOSEN.words
    assert labels.name == "0.001, no overlap"
    assert labels.topics.tolist() == [[True, False], [False, True], [False, True], [True, False]]
    assert labels.pairs() == CHOSEN.pairs() == 2


def test_shuffling_keeps_the_sizes_of_topics_and_words_without_one() -> None:
    more = TopicVocabulary(("sun",), {"sun": frozenset({0})}, 0.002, True)
    labels = make_plan([CHOSEN, more]).labels[0]
    shuffled = labels.topics[labels.shuffles]
    assert shuffled.shape == (SHUFFLES, 5, 2)
    assert (shuffled.sum(axis=1) == 2).all()
    assert not shuffled[:, 4].any()
    assert len(np.unique(shuffled.reshape(SHUFFLES, -1), axis=0)) > 1


def test_pairs_that_are_together_the_most_without_a_topic_in_common() -> None:
    texts = ["ship moon fleet", "ship moon", "ship fleet", "orbit fleet moon", "moon ship orbit"]
    labels = count_cooccurrence(make_plan([CHOSEN]), iter(texts)).labels[0]
    # Moon and ship are together three times, fleet and moon twice, all others less.
    wanted = pair_numbers(np.array([1, 0]), np.array([3, 1]))
    assert labels.cooccurring.tolist() == sorted(wanted.tolist())


def test_nothing_to_compare_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="no word has a topic"):
        make_plan([TopicVocabulary((), {}, 0.001, False)])
