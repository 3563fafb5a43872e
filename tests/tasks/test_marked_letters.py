"""Words with two marked letters: the label is what it says, and counts tell nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.probes.bag_of_tokens import bag_accuracy
from attnscope.tasks.marked_letters import MarkedLetters


@given(st.integers(2, 9), st.integers(2, 7), st.integers(0, 1000))
def test_two_letters_are_marked_and_the_label_says_if_they_are_equal(
    tokens: int, letters: int, seed: int
) -> None:
    task = MarkedLetters(tokens=tokens, letters=letters)
    words = task.sample(20, seed)
    assert words.ids.shape == (20, tokens)
    assert int(words.ids.max()) < task.vocabulary
    marked = [word[word >= letters] for word in words.ids]
    assert all(len(pair) == 2 for pair in marked)
    equal = torch.stack([pair[0] == pair[1] for pair in marked])
    assert torch.equal(equal, words.labels == 1)
    batch = words.batch(torch.tensor([3, 1]))
    assert torch.equal(batch.ids, words.ids[[3, 1]])
    assert batch.mask is None
    assert torch.equal(task.sample(20, seed).ids, words.ids)


def test_counts_that_are_added_up_tell_nothing() -> None:
    task = MarkedLetters()
    train, test = task.sample(8000, 0), task.sample(4000, 1)
    rows = torch.arange(len(train)), torch.arange(len(test))
    reached = bag_accuracy(train, test, *rows, task.vocabulary)
    assert abs(reached - 0.5) < 4 * 0.5 / np.sqrt(len(test))


def test_labels_are_a_fair_coin_and_places_are_all_alike() -> None:
    words = MarkedLetters(tokens=6, letters=4).sample(6000, 2)
    assert abs(float(words.labels.float().mean()) - 0.5) < 4 * 0.5 / np.sqrt(6000)
    places = (words.ids >= 4).float().mean(0)
    assert (places - 1 / 3).abs().max() < 4 * np.sqrt(2 / 9 / 6000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"tokens": 1}, "tokens = 1: expected 2 or more"), ({"letters": 1}, "letters = 1")],
)
def test_bad_input_gets_a_sentence(changes: dict[str, int], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        MarkedLetters(**changes)
    with pytest.raises(AttnscopeError, match="count = 0: expected 1 word or more"):
        MarkedLetters().sample(0, 0)
