"""What the training studies of Song 2024 read, against plain computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attnscope.studies.song2024._bag_of_tokens import bag_accuracy
from attnscope.studies.song2024._training_data import (
    Batch,
    RandomLabels,
    TextRows,
    fixed_rows,
)
from torch import Tensor

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.studies.song2024 import _training_readings as readings
from attnscope.tasks.byte_text import ByteRows


class Numbers:
    """Sequences of five tokens of six; the label says whether token 1 is commoner than token 2."""

    def __init__(self, count: int) -> None:
        self.ids = torch.randint(6, (count, 5), generator=torch.Generator().manual_seed(0))
        self.labels = ((self.ids == 1).sum(1) > (self.ids == 2).sum(1)).long()

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Tensor) -> Batch:
        return Batch(self.ids[rows], None, self.labels[rows])


def model(kernel: str = "softmax") -> KernelClassifier:
    return KernelClassifier(6, 5, 2, width=8, hidden=8, head_width=4, kernel=kernel, seed=1)


def test_evaluation_is_the_mean_over_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net, rows = Numbers(23), model().train(), torch.arange(20)
    whole = readings.evaluate(net, data, rows)
    assert net.training
    net.eval()
    logits = net(data.ids[:20])
    assert whole[readings.LOSS] == pytest.approx(
        float(F.cross_entropy(logits, data.labels[:20]).detach()), abs=1e-6
    )
    right = (logits.argmax(1) == data.labels[:20]).float().mean()
    assert whole[readings.ACCURACY] == pytest.approx(float(right))
    monkeypatch.setattr(readings, "HELD", 3 * 25)
    torch.testing.assert_close(readings.evaluate(net, data, rows), whole)


def test_gradient_norms_are_those_of_autograd(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net, rows = Numbers(10), model("gaussian").train(), torch.arange(10)
    monkeypatch.setattr(readings, "HELD", 4 * 25)
    with torch.no_grad():
        norms = readings.gradient_norms(net, data, rows)
    assert all(p.grad is None for p in net.parameters())
    net.eval()
    F.cross_entropy(net(data.ids), data.labels).backward()
    for layer, attention in enumerate(net.attention):
        for index, name in enumerate(readings.MATRICES):
            grad = attention.get_parameter(name).grad
            assert grad is not None
            assert float(norms[layer, index]) == pytest.approx(float(grad.norm()), rel=1e-4)


def test_statistics_of_equal_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model()
    for attention in net.attention:
        torch.nn.init.zeros_(attention.get_parameter("W_Q"))
        torch.nn.init.zeros_(attention.get_parameter("b_Q"))
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    batch = Batch(torch.ones((2, 5), dtype=torch.int64), mask, torch.tensor([0, 1]))
    equal = readings.attention_statistics(net, batch)
    # Five queries with shares 1/5, two with 1/2.
    largest = (5 / 5 + 2 / 2) / 7
    for row in equal.tolist():
        assert row == pytest.approx([1.0, largest, 1.0], abs=1e-5)


def test_statistics_of_a_single_key(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model("gaussian")
    weights = torch.zeros(2, 2, 5, 5)
    weights[..., 3] = 0.25
    monkeypatch.setattr(KernelClassifier, "attention_weights", lambda *_: [weights])
    batch = Batch(torch.ones((2, 5), dtype=torch.int64), None, torch.tensor([0, 1]))
    (row,) = readings.attention_statistics(net, batch).tolist()
    assert row == pytest.approx([0.0, 1.0, 0.25])


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
