"""The generator of Lu 2021, section 3, against its own description."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnscope.errors import AttnscopeError
from attnscope.tasks import TopicWords

PAPER = TopicWords()


def test_the_defaults_are_the_papers() -> None:
    assert dataclasses.asdict(PAPER) == {
        "topics": 4,
        "words_per_topic": 2,
        "m": 20,
        "dictionary": 5000,
        "train": 800,
        "test": 200,
    }
    assert PAPER.topic_words == 8
    assert PAPER.vocabulary == 5008


@given(
    topics=st.integers(2, 5),
    words_per_topic=st.integers(1, 3),
    m=st.integers(1, 6),
    dictionary=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_one_topic_word_stands_first_and_tells_the_label(
    topics: int, words_per_topic: int, m: int, dictionary: int, seed: int
) -> None:
    task = TopicWords(topics, words_per_topic, m, dictionary, train=15, test=4)
    data = task.sample(seed)
    for bags, count in ((data.train, 15), (data.test, 4)):
        assert bags.ids.shape == (count, m + 1)
        assert bags.labels.shape == (count,)
        assert bags.mask is None
        assert bags.vocabulary == task.vocabulary == topics * words_per_topic + dictionary
        assert int(bags.ids.min()) >= 0
        assert int(bags.ids.max()) < task.vocabulary
        topic = task.topic_of[bags.ids.numpy()]
        assert (topic[:, 0] == bags.labels.numpy()).all()
        assert (topic[:, 1:] == -1).all()
    assert data.task is task


def test_topic_of_numbers_the_topics_in_order() -> None:
    task = TopicWords(topics=2, words_per_topic=3, m=1, dictionary=2, train=6, test=1)
    assert task.topic_of.tolist() == [0, 0, 0, 1, 1, 1, -1, -1]


def test_a_seed_fixes_the_sample() -> None:
    one, same, other = PAPER.sample(5), PAPER.sample(5), PAPER.sample(6)
    for part in ("train", "test"):
        assert torch.equal(getattr(one, part).ids, getattr(same, part).ids)
        assert torch.equal(getattr(one, part).labels, getattr(same, part).labels)
        assert not torch.equal(getattr(one, part).ids, getattr(other, part).ids)


def test_training_and_test_sentences_differ() -> None:
    data = TopicWords(train=100, test=100).sample(0)
    assert not torch.equal(data.train.ids, data.test.ids)


def test_topics_topic_words_and_other_words_are_uniform() -> None:
    task = TopicWords(topics=3, words_per_topic=2, m=10, dictionary=40, train=4000, test=1)
    ids = task.sample(0).train.ids.numpy()
    first = np.bincount(ids[:, 0], minlength=task.topic_words)
    others = np.bincount(ids[:, 1:].ravel() - task.topic_words, minlength=task.dictionary)
    assert len(first) == 6
    assert len(others) == 40
    assert stats.chisquare(first).pvalue > 0.01
    assert stats.chisquare(others).pvalue > 0.01
    # Drawn with replacement: a word standing twice in a sentence is not avoided, P(no repeat) =
    # Π(1 - k/40) = 0.29.
    distinct = np.mean([len(set(row)) == 10 for row in ids[:, 1:]])
    assert distinct == pytest.approx(np.prod(1 - np.arange(10) / 40), abs=0.03)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topics", 1),
        ("topics", -2),
        ("words_per_topic", 0),
        ("m", 0),
        ("m", -1),
        ("dictionary", 0),
        ("train", 0),
        ("test", 0),
    ],
)
def test_a_number_too_small_is_refused(name: str, value: int) -> None:
    with pytest.raises(AttnscopeError, match=rf"^{name} = {value}: expected \d or more"):
        dataclasses.replace(PAPER, **{name: value})


def test_more_topic_words_than_sentences_are_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"topics = 5 .*10 topic words.*train = 9"):
        TopicWords(topics=5, words_per_topic=2, train=9)
    assert TopicWords(topics=5, words_per_topic=2, train=10).topic_words == 10
