"""What models of sequences refuse, and in which words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models.sequences import check_ids, evaluating, row_lengths


def test_lengths_are_counted_where_something_is_padded() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    lengths = row_lengths((2, 3), mask)
    assert lengths is not None
    assert lengths.tolist() == [3, 1]
    assert row_lengths((2, 3), torch.ones(2, 3, dtype=torch.bool)) is None
    assert row_lengths((2, 3), None) is None


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ([[True, True], [False, False]], "row 1 of the mask has no word"),
        ([[True, True], [False, True]], "padding on the right only"),
        ([[True, True]], r"mask of shape \(1, 2\): expected \(2, 2\)"),
    ],
)
def test_a_mask_that_cannot_be_is_named(mask: list[list[bool]], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        row_lengths((2, 2), torch.tensor(mask))


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (torch.zeros(2, 0, dtype=torch.int64), r"words of shape \(2, 0\): expected"),
        (torch.zeros(3, dtype=torch.int64), r"words of shape \(3,\): expected"),
        (torch.tensor([[0, 5]]), "words with ids from 0 to 5: expected 0 to 4"),
        (torch.tensor([[-1, 4]]), "words with ids from -1 to 4: expected 0 to 4"),
    ],
)
def test_ids_that_are_no_words_are_named(ids: torch.Tensor, sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        check_ids("words", ids, 5)
    check_ids("words", torch.tensor([[0, 4]]), 5)


def test_evaluating_puts_the_mode_back() -> None:
    model = nn.Dropout()
    with evaluating(model):
        assert not model.training
    assert model.training
    model.eval()
    with evaluating(model):
        pass
    assert not model.training
