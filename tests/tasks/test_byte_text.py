"""Texts as bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.errors import AttnscopeError
from attnscope.tasks.byte_text import VOCABULARY, byte_text


def text(**splits: list[str]) -> LabelledText:
    made = {name: Split(rows, np.arange(len(rows)) % 2) for name, rows in splits.items()}
    return LabelledText("mine", ("bad", "good"), made)


def test_bytes_are_shifted_by_one_and_padded_with_zero() -> None:
    data = byte_text(text(train=["ab", "é"], test=["abcdef", "\x00"]), 4)
    assert data.train.ids.tolist() == [[98, 99, 0, 0], [196, 170, 0, 0]]
    assert data.test.ids.tolist() == [[98, 99, 100, 101], [1, 0, 0, 0]]
    assert data.test.lengths.tolist() == [6, 1]
    assert data.test.mask.tolist() == [[True] * 4, [True, False, False, False]]
    assert data.train.labels.tolist() == [0, 1]
    assert int(max(data.train.ids.max(), data.test.ids.max())) < VOCABULARY


def test_every_byte_has_a_token() -> None:
    row = "".join(map(chr, range(128))) + "ÿ"
    data = byte_text(text(train=[row, "x"], test=["y"]), 200)
    back = bytes((data.train.ids[0][data.train.mask[0]] - 1).tolist())
    assert back == row.encode()


def test_rows_select_texts() -> None:
    data = byte_text(text(train=["a", "bb", "ccc"], test=["d"]), 3).train
    chosen = data[torch.tensor([2, 0])]
    assert len(chosen) == 2
    assert chosen.lengths.tolist() == [3, 1]
    assert torch.equal(chosen.ids, data.ids[[2, 0]])


def test_bad_input_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="length = 0: expected 1 byte or more"):
        byte_text(text(train=["a", "b"], test=["c"]), 0)
    with pytest.raises(AttnscopeError, match="'mine' has no split test"):
        byte_text(text(train=["a", "b"]), 4)
