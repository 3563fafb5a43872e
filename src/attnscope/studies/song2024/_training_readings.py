"""What is read off a classifier while it trains: losses, gradients by matrix, attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.engines import Final, Linear, Observable, Record
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.studies.song2024._training_data import Batch, Sequences, fixed_rows

HELD = 2**22
"""Attention weights of a head that are held at once."""
LOOKED_AT = 16
"""Sequences whose attention weights are read."""
MATRICES = ("W_Q", "W_K", "W_V", "W_O")
LOSS, ACCURACY = range(2)
ENTROPY, LARGEST, MASS = range(3)


class TrainingLoss:
    """Mean cross-entropy of a mini-batch, with dropout."""

    def __init__(self, sequences: Sequences) -> None:
        self.sequences = sequences

    def __call__(self, model: nn.Module, rows: Tensor) -> Tensor:
        """Return the loss on some rows, in nats."""
        batch = self.sequences.batch(rows)
        model.train()
        return F.cross_entropy(model(batch.ids, batch.mask), batch.labels)


def records(
    train: Sequences, test: Sequences, *, held_out: int, last: int, probe: int, points: int
) -> list[Record]:
    """Return the readings of a run.

    Args:
        train: sequences that are learned from.
        test: sequences that are not.
        held_out: of them, how many are looked at on the way.
        last: of them, how many are looked at in the end.
        probe: training sequences on which loss and gradients are read.
        points: record points.
    """
    seen, unseen, every = (
        fixed_rows(train, probe),
        fixed_rows(test, held_out),
        fixed_rows(test, last),
    )
    curves = (
        Observable(
            "held_out",
            lambda m: evaluate(classifier(m), test, unseen),
            ("measure",),
            "",
            "mean cross-entropy (nats) and accuracy on unseen sequences",
        ),
        Observable(
            "train_loss",
            lambda m: evaluate(classifier(m), train, seen)[LOSS],
            (),
            "nats",
            "mean cross-entropy of a fixed part of the training sequences, without dropout",
        ),
        Observable(
            "gradient_norm",
            lambda m: gradient_norms(classifier(m), train, seen),
            ("layer", "matrix"),
            "",
            "Frobenius norm of the loss's gradient by W^Q, W^K, W^V, W^O on the same sequences",
        ),
        Observable(
            "attention",
            lambda m: attention_statistics(classifier(m), train.batch(seen[:LOOKED_AT])),
            ("layer", "statistic"),
            "",
            "of a row of weights, mean: entropy / log(keys), largest share, sum",
        ),
    )
    end = Observable(
        "end_held_out",
        lambda m: evaluate(classifier(m), test, every),
        ("measure",),
        "",
        "the same on more sequences, at both ends of the run",
    )
    return [Record(curves, Linear(points)), Record((end,), Final(), dim="end")]


def evaluate(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> Tensor:
    """Return mean cross-entropy and accuracy, without dropout."""
    loss, right = 0.0, 0
    with resting(model), torch.no_grad():
        for batch in chunks(model, sequences, rows):
            logits = model(batch.ids, batch.mask)
            loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
            right += int((logits.argmax(dim=1) == batch.labels).sum())
    return torch.tensor([loss / len(rows), right / len(rows)])


def gradient_norms(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> Tensor:
    """Return the norms of the loss's gradient by attention matrix, ``(layer, matrix)``."""
    parameters = [layer.get_parameter(name) for layer in model.attention for name in MATRICES]
    total = [torch.zeros_like(p) for p in parameters]
    with resting(model), torch.enable_grad():
        for batch in chunks(model, sequences, rows):
            logits = model(batch.ids, batch.mask)
            loss = F.cross_entropy(logits, batch.labels, reduction="sum") / len(rows)
            for summed, part in zip(total, torch.autograd.grad(loss, parameters), strict=True):
                summed += part
    return torch.stack([g.norm() for g in total]).view(-1, len(MATRICES))


def attention_statistics(model: KernelClassifier, batch: Batch) -> Tensor:
    """Return entropy, largest share and sum of a row of weights, averaged; ``(layer, statistic)``.

    Shares are weights over their sum, which for softmax are the weights themselves. Entropy is
    divided by the logarithm of the number of keys: 1 for equal shares, 0 for a single key.
    """
    mask = torch.ones_like(batch.ids, dtype=torch.bool) if batch.mask is None else batch.mask
    keys = mask.sum(dim=1).clamp(min=2)
    rows = mask[:, None, :].float()
    out = []
    with resting(model), torch.no_grad():
        for weights in model.attention_weights(batch.ids, batch.mask):
            mass = weights.sum(dim=-1)
            share = weights / mass.clamp(min=torch.finfo(mass.dtype).tiny)[..., None]
            entropy = torch.special.entr(share).sum(dim=-1) / keys.log()[:, None, None]
            parts = (entropy, share.amax(dim=-1), mass)
            count = rows.sum() * weights.shape[1]
            out.append(torch.stack([(part * rows).sum() / count for part in parts]))
    return torch.stack(out)


def chunks(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> Iterator[Batch]:
    """Return rows in parts that fit into memory."""
    for part in rows.split(max(1, HELD // model.length**2)):
        yield sequences.batch(part)


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and back to what it was."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def classifier(model: nn.Module) -> KernelClassifier:
    """Return the module as what it is."""
    assert isinstance(model, KernelClassifier)
    return model
