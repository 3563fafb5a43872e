"""The two Markov chains of Lu 2021, appendix A, against their rules."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnscope.errors import AttnscopeError
from attnscope.tasks import Sentences, WordPairs


@given(
    pairs=st.integers(1, 3),
    spare=st.integers(0, 4),
    length=st.integers(2, 8),
    seed=st.integers(0, 1000),
)
def test_the_chains_obey_their_rules(pairs: int, spare: int, length: int, seed: int) -> None:
    task = WordPairs(4 * pairs + spare, pairs, length, train=30, test=5)
    data = task.sample(seed)
    assert data.pairs.shape == (2, pairs, 2)
    assert np.unique(data.pairs).size == 4 * pairs
    for sentences, count in ((data.train, 30), (data.test, 5)):
        assert sentences.ids.shape == (count, length)
        assert int(sentences.ids.min()) >= 0
        assert int(sentences.ids.max()) < task.dictionary == sentences.vocabulary
        for row, label in zip(sentences.ids.tolist(), sentences.labels.tolist(), strict=True):
            follows = {first: second for first, second in data.pairs[label].tolist()}
            assert row[0] in follows
            for left, right in itertools.pairwise(row):
                assert right == follows.get(left, right)


def test_a_pair_of_the_other_topic_is_not_forced() -> None:
    data = WordPairs(dictionary=8, pairs_per_topic=2, length=10, train=400, test=1).sample(0)
    ids, labels = data.train.ids.numpy(), data.train.labels.numpy()
    for topic in (0, 1):
        other = data.pairs[1 - topic]
        rows = ids[labels == topic]
        for first, second in other.tolist():
            after = rows[:, 1:][rows[:, :-1] == first]
            assert 0 < np.mean(after == second) < 0.5


def test_free_moves_are_uniform() -> None:
    task = WordPairs(dictionary=12, pairs_per_topic=1, length=10, train=1500, test=1)
    data = task.sample(1)
    ids, labels = data.train.ids.numpy(), data.train.labels.numpy()
    leading = data.pairs[labels, 0, 0][:, None]
    after = ids[:, 1:][ids[:, :-1] != leading]
    assert stats.chisquare(np.bincount(after, minlength=12)).pvalue > 0.01
    assert stats.chisquare(np.bincount(labels)).pvalue > 0.01


def test_a_seed_fixes_the_sample() -> None:
    task = WordPairs(train=50, test=20)
    one, same, other = task.sample(2), task.sample(2), task.sample(3)
    assert np.array_equal(one.pairs, same.pairs)
    assert not np.array_equal(one.pairs, other.pairs)
    for part in ("train", "test"):
        assert torch.equal(getattr(one, part).ids, getattr(same, part).ids)
        assert torch.equal(getattr(one, part).labels, getattr(same, part).labels)
        assert not torch.equal(getattr(one, part).ids, getattr(other, part).ids)


def test_sentences_as_bags_of_pairs() -> None:
    sentences = WordPairs(dictionary=9, length=5, train=12, test=1).sample(0).train
    bags, words = sentences.pairs, sentences.pair_words
    assert bags.vocabulary == len(words)
    assert torch.equal(bags.labels, sentences.labels)
    assert torch.equal(words[bags.ids][..., 0], sentences.ids[:, :-1])
    assert torch.equal(words[bags.ids][..., 1], sentences.ids[:, 1:])
    assert len(torch.unique(words, dim=0)) == len(words)


def test_rows_select_sentences() -> None:
    sentences = WordPairs(train=10, test=1).sample(0).train
    rows = torch.tensor([7, 1])
    chosen = sentences[rows]
    assert isinstance(chosen, Sentences)
    assert len(chosen) == 2
    assert torch.equal(chosen.ids, sentences.ids[rows])
    assert torch.equal(chosen.labels, sentences.labels[rows])
    assert torch.equal(chosen.pair_words[chosen.pairs.ids][..., 0], chosen.ids[:, :-1])


@pytest.mark.parametrize(
    ("name", "value"),
    [("dictionary", 1), ("pairs_per_topic", 0), ("length", 1), ("train", 0), ("test", -3)],
)
def test_a_number_too_small_is_refused(name: str, value: int) -> None:
    with pytest.raises(AttnscopeError, match=rf"^{name} = {value}: expected \d or more"):
        dataclasses.replace(WordPairs(), **{name: value})


def test_a_dictionary_too_small_for_the_pairs_is_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"dictionary = 11: expected 12 or more.* 6 topic"):
        WordPairs(dictionary=11, pairs_per_topic=3)
    assert WordPairs(dictionary=12, pairs_per_topic=3).dictionary == 12
