"""Bags against a dense count made position by position."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.tasks import Bags

VOCABULARY = 7


def made(lengths: list[int], seed: int) -> Bags:
    draw = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    ids = torch.randint(VOCABULARY, shape, generator=draw)
    labels = torch.randint(2, (len(lengths),), generator=draw)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Bags(ids, labels, VOCABULARY, None if bool(mask.all()) else mask)


def dense(bags: Bags) -> Tensor:
    out = torch.zeros(len(bags), VOCABULARY, dtype=torch.float64)
    for row in range(len(bags)):
        for position in range(bags.ids.shape[1]):
            if bags.mask is None or bags.mask[row, position]:
                out[row, bags.ids[row, position]] += 1
    return out


ragged = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(ragged, st.integers(0, 99))
def test_counts_equal_a_dense_count(lengths: list[int], seed: int) -> None:
    bags = made(lengths, seed)
    expected = dense(bags)
    assert torch.equal(bags.counts(torch.float64).to_dense(), expected)
    assert torch.equal(bags.counts_by_word(torch.float64).to_dense(), expected.T)
    assert torch.equal(bags.occurrences, (expected > 0).sum(dim=0))
    assert bags.lengths.tolist() == lengths


@given(ragged, st.integers(0, 99))
def test_words_and_sentences_list_the_occupied_positions(lengths: list[int], seed: int) -> None:
    bags = made(lengths, seed)
    pairs = [
        (row, int(bags.ids[row, position]))
        for row, length in enumerate(lengths)
        for position in range(length)
    ]
    found = list(zip(bags.sentences.tolist(), bags.words.tolist(), strict=True))
    assert found == pairs


@pytest.mark.parametrize("lengths", [[4, 4, 4], [1, 4, 2]])
def test_rows_select_sentences_labels_and_mask(lengths: list[int]) -> None:
    bags = made(lengths, 0)
    rows = torch.tensor([2, 0, 2])
    chosen = bags[rows]
    assert len(bags) == 3
    assert len(chosen) == 3
    assert chosen.vocabulary == VOCABULARY
    assert torch.equal(chosen.labels, bags.labels[rows])
    assert torch.equal(dense(chosen), dense(bags)[rows])
    assert torch.equal(chosen.counts(torch.float64).to_dense(), dense(bags)[rows])


def test_counts_come_in_the_dtype_asked_for() -> None:
    bags = made([3, 2], 1)
    assert bags.counts(torch.float32).dtype == torch.float32
    assert bags.counts(torch.float64).dtype == torch.float64
    assert bags.counts(torch.float32).dtype == torch.float32


def test_padding_may_hold_any_word() -> None:
    mask = torch.tensor([[True, True, False], [True, True, True]])
    one, other = torch.tensor([[0, 1, 5], [2, 3, 4]]), torch.tensor([[0, 1, 2], [2, 3, 4]])
    labels = torch.tensor([0, 1])
    left, right = (Bags(ids, labels, VOCABULARY, mask) for ids in (one, other))
    assert torch.equal(left.occurrences, right.occurrences)
    assert torch.equal(
        left.counts(torch.float64).to_dense(), right.counts(torch.float64).to_dense()
    )


def test_repeated_words_count_twice_but_occur_once() -> None:
    bags = Bags(torch.tensor([[3, 3, 1]]), torch.tensor([0]), 4)
    assert bags.counts(torch.float64).to_dense().tolist() == [[0, 1, 0, 2]]
    assert bags.occurrences.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("word", [-1, 5])
def test_word_numbers_outside_the_vocabulary_are_refused(word: int) -> None:
    with pytest.raises(AttnscopeError, match=r"expected 0 to 4, for a vocabulary of 5"):
        Bags(torch.tensor([[0, word]]), torch.tensor([0]), 5)
