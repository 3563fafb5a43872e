"""What is read off a kernel classifier, against plain computations."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from attnscope.models import kernel_classifier_probe as probe
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.tasks.sequence_rows import Batch
from number_sequences import Numbers


def model(kernel: str = "softmax") -> KernelClassifier:
    return KernelClassifier(6, 5, 2, width=8, hidden=8, head_width=4, kernel=kernel, seed=1)


def test_evaluation_is_the_mean_over_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net, rows = Numbers(23), model().train(), torch.arange(20)
    whole = probe.evaluate(net, data, rows)
    assert net.training
    net.eval()
    logits = net(data.ids[:20])
    assert whole[probe.MEASURES.index("loss")] == pytest.approx(
        float(F.cross_entropy(logits, data.labels[:20]).detach()), abs=1e-6
    )
    right = (logits.argmax(1) == data.labels[:20]).float().mean()
    assert whole[probe.MEASURES.index("accuracy")] == pytest.approx(float(right))
    monkeypatch.setattr(probe, "HELD", 3 * 25)
    torch.testing.assert_close(probe.evaluate(net, data, rows), whole)


def test_gradient_norms_are_those_of_autograd(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net, rows = Numbers(10), model("gaussian").train(), torch.arange(10)
    monkeypatch.setattr(probe, "HELD", 4 * 25)
    with torch.no_grad():
        norms = probe.gradient_norms(net, data, rows)
    assert all(p.grad is None for p in net.parameters())
    net.eval()
    F.cross_entropy(net(data.ids), data.labels).backward()
    for layer, attention in enumerate(net.attention):
        for index, name in enumerate(probe.MATRICES):
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
    equal = probe.attention_statistics(net, batch)
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
    (row,) = probe.attention_statistics(net, batch).tolist()
    assert row == pytest.approx([0.0, 1.0, 0.25])


def test_the_training_loss_is_that_of_some_rows_or_all() -> None:
    data, net = Numbers(10), model().eval()
    loss, found = probe.TrainingLoss(data), []
    for rows in (torch.arange(10), None):
        torch.manual_seed(0)  # of dropout
        found.append(float(loss(net, rows).detach()))
    assert found[0] == found[1]
    assert net.training


def test_smoothed_labels_have_the_least_loss_that_is_promised() -> None:
    ids = torch.randint(6, (6, 5), generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    net = model().eval()
    loss, smoothing = probe.FixedLoss(Batch(ids, None, labels), 0.03), 0.03
    # The least is where the logits say 97 % of the right label, and nowhere else.
    right = torch.eye(2, dtype=torch.float64)[labels] * math.log(0.97 / 0.03)
    logits = right.requires_grad_()
    value = F.cross_entropy(logits, labels, label_smoothing=2 * smoothing)
    assert value.item() == pytest.approx(probe.least_smoothed(smoothing), rel=1e-12)
    assert torch.autograd.grad(value, logits)[0].abs().max() < 1e-12
    assert probe.least_smoothed(0.0) == 0
    assert loss(net).item() > probe.least_smoothed(smoothing)
    with torch.no_grad():
        torch.testing.assert_close(loss.finish(net, loss.stage(net)), loss(net))
    assert probe.least_smoothed(0.3, 4) == pytest.approx(-0.7 * math.log(0.7) - 0.3 * math.log(0.1))
