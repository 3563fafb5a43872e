"""Counting tokens: what it can tell, and what not."""

from __future__ import annotations

import numpy as np
import torch

from attnscope.probes.bag_of_tokens import bag_accuracy
from attnscope.tasks.byte_text import ByteRows
from attnscope.tasks.sequence_rows import TextRows
from number_sequences import Numbers


def test_a_bag_counts_and_knows_no_order() -> None:
    data = Numbers(900)
    train, test = torch.arange(600), torch.arange(600, 900)
    assert bag_accuracy(data, data, train, test, 6) > 0.85
    # The label of this one is in the order alone: is the first token below the second?
    data.labels = (data.ids[:, 0] < data.ids[:, 1]).long()
    data.ids = torch.cat([data.ids, 5 - data.ids], dim=1)
    assert abs(bag_accuracy(data, data, train, test, 6) - 0.5) < 0.15


def test_a_bag_leaves_padding_out() -> None:
    source = np.random.default_rng(0)
    labels = source.integers(2, size=300)
    ids = np.zeros((300, 6), dtype=np.int16)
    ids[:, 0], ids[:, 1] = 1 + labels, 3
    short = source.random(300) < 0.5
    ids[~short, 2:] = 4
    rows = ByteRows(
        torch.from_numpy(ids), torch.from_numpy(labels), torch.from_numpy(2 + 4 * ~short)
    )
    every = torch.arange(300)
    assert bag_accuracy(TextRows(rows), TextRows(rows), every[:200], every[200:], 5) == 1.0
