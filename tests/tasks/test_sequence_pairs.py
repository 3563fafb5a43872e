"""Pairs of sequences: rows of them, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.tasks.sequence_pairs import END, PAD, START, SequencePairs

SOURCE = torch.tensor([[3, 4, END], [5, END, PAD]])
TARGET = torch.tensor([[4, 3, 3, END], [6, 6, END, PAD]])


def test_words_come_after_the_specials() -> None:
    assert (PAD, START, END) == (0, 1, 2)


def test_rows_take_words_and_masks_along() -> None:
    pairs = SequencePairs(SOURCE, TARGET, SOURCE != PAD, TARGET != PAD)
    assert len(pairs) == 2
    turned = pairs.rows(torch.tensor([1, 0, 1]))
    assert len(turned) == 3
    assert turned.source_mask is not None
    assert turned.target_mask is not None
    assert torch.equal(turned.source[1], SOURCE[0])
    assert torch.equal(turned.target[0], TARGET[1])
    assert turned.source_mask.tolist()[2] == [True, True, False]
    assert turned.target_mask.tolist()[0] == [True, True, True, False]
    assert SequencePairs(SOURCE, TARGET).rows(torch.tensor([0])).source_mask is None


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((SOURCE[0], TARGET), r"source of shape \(3,\) and target of shape \(2, 4\)"),
        ((SOURCE[:1], TARGET), "as many rows"),
        ((SOURCE.float(), TARGET), "source holds torch.float32: expected int64"),
        ((SOURCE, TARGET, SOURCE > 9), "source 0 is empty: expected one word or more"),
        ((SOURCE, TARGET, None, SOURCE > 0), r"target_mask is torch.bool of shape \(2, 3\)"),
        ((SOURCE, TARGET, SOURCE), r"source_mask is torch.int64 of shape \(2, 3\)"),
    ],
)
def test_bad_pairs_are_refused(parts: tuple[Tensor, ...], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        SequencePairs(*parts)
