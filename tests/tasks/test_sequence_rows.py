"""Labelled sequences by rows: texts, random labels, fixed rows."""

from __future__ import annotations

import math

import torch

from attnscope.tasks.byte_text import ByteRows
from attnscope.tasks.sequence_rows import RandomLabels, TextRows, fixed_rows
from number_sequences import Numbers


def test_a_batch_of_texts_is_as_long_as_its_longest() -> None:
    ids = torch.tensor([[3, 4, 0, 0], [5, 0, 0, 0], [6, 7, 8, 9]], dtype=torch.int16)
    rows = TextRows(ByteRows(ids, torch.tensor([0, 1, 0]), torch.tensor([2, 1, 90])))
    batch = rows.batch(torch.tensor([1, 0]))
    assert batch.ids.tolist() == [[5, 0], [3, 4]]
    assert batch.mask is not None
    assert batch.mask.tolist() == [[True, False], [True, True]]
    assert rows.batch(torch.tensor([2])).ids.shape == (1, 4)


def test_random_labels_are_a_fixed_fair_coin() -> None:
    data = Numbers(400)
    coins = RandomLabels(data, 3)
    every = torch.arange(400)
    one = coins.batch(every).labels
    assert torch.equal(one[[7, 5]], coins.batch(torch.tensor([7, 5])).labels)
    assert abs(float(one.float().mean()) - 0.5) < 3 * 0.5 / math.sqrt(400)
    assert abs(float((one == data.labels).float().mean()) - 0.5) < 3 * 0.5 / math.sqrt(400)
    assert not torch.equal(one, RandomLabels(data, 4).batch(every).labels)
    assert torch.equal(coins.batch(every).ids, data.ids)


def test_fixed_rows_are_nested_and_different() -> None:
    data = Numbers(30)
    few, many = fixed_rows(data, 5), fixed_rows(data, 99)
    assert torch.equal(many[:5], few)
    assert sorted(many.tolist()) == list(range(30))
