"""Losses of a kernel classifier, and what is read off it: gradients by matrix, attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.tasks.sequence_rows import Batch, Sequences

HELD = 2**22
"""Attention weights of a head that are held at once."""
MEASURES = ("loss", "accuracy")
MATRICES = ("W_Q", "W_K", "W_V", "W_O")
STATISTICS = ("entropy", "largest", "mass")


class TrainingLoss:
    """Mean cross-entropy of a mini-batch, with dropout.

    Args:
        sequences: what rows are of.
        vary: changes sequences so that their labels stay, anew at every step, as mirrors do with
            images. It draws from PyTorch's global source, which checkpoints keep.
        smoothing: ε, the probability of the other labels, see :class:`FixedLoss`.
    """

    def __init__(
        self,
        sequences: Sequences,
        vary: Callable[[Tensor], Tensor] | None = None,
        smoothing: float = 0.0,
    ) -> None:
        self.sequences, self.vary, self.smoothing = sequences, vary, smoothing

    def __call__(self, model: nn.Module, rows: Tensor | None = None) -> Tensor:
        """Return the loss on some rows, or on all of them, in nats."""
        batch = self.sequences.batch(torch.arange(len(self.sequences)) if rows is None else rows)
        ids = batch.ids if self.vary is None else self.vary(batch.ids)
        model.train()
        return _smoothed(model(ids, batch.mask), batch.labels, self.smoothing)


class FixedLoss:
    """Mean cross-entropy of one batch, in nats, in the two parts that landscapes are faster with.

    Up to the pooled tokens everything is analytic in the parameters; the head's ReLU is not.

    With labels that are wrong with probability ε (label smoothing) a model that has learned them
    all is at a minimum, at a finite place and at a loss that is known: :func:`least_smoothed`.

    Args:
        batch: what the loss is of.
        smoothing: ε.
    """

    def __init__(self, batch: Batch, smoothing: float = 0.0) -> None:
        self.batch, self.smoothing = batch, smoothing

    def __call__(self, model: KernelClassifier) -> Tensor:
        """Return the loss."""
        logits = model(self.batch.ids, self.batch.mask)
        return _smoothed(logits, self.batch.labels, self.smoothing)

    def stage(self, model: KernelClassifier) -> Tensor:
        """Return the pooled tokens, shape ``(batch, width)``."""
        pooled: list[Tensor] = []
        hook = model.head_1.register_forward_pre_hook(lambda _, inputs: pooled.append(inputs[0]))
        try:
            model(self.batch.ids, self.batch.mask)
        finally:
            hook.remove()
        return pooled[0]

    def finish(self, model: KernelClassifier, stage: Tensor) -> Tensor:
        """Return the loss from the pooled tokens, without dropout."""
        logits = model.head_2(F.relu(model.head_1(stage)))
        return _smoothed(logits, self.batch.labels, self.smoothing)


def least_smoothed(smoothing: float, classes: int = 2) -> float:
    """Return the least cross-entropy there is if labels are smoothed: their entropy, in nats.

    A label is right with probability 1 - ε, and each other one with ε/(classes - 1).

    Example:
        >>> round(least_smoothed(0.03), 4)
        0.1347
    """
    if smoothing == 0:
        return 0.0
    others = smoothing * math.log(smoothing / (classes - 1))
    return -(1 - smoothing) * math.log1p(-smoothing) - others


def _smoothed(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    # PyTorch spreads its share over all classes, the right one included.
    classes = logits.shape[-1]
    spread = smoothing * classes / (classes - 1) if smoothing else 0.0
    return F.cross_entropy(logits, labels, label_smoothing=spread)


def evaluate(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> Tensor:
    """Return mean cross-entropy and accuracy (:data:`MEASURES`), without dropout."""
    loss, right = 0.0, 0
    with resting(model), torch.no_grad():
        for batch in chunks(model, sequences, rows):
            logits = model(batch.ids, batch.mask)
            loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
            right += int((logits.argmax(dim=1) == batch.labels).sum())
    return torch.tensor([loss / len(rows), right / len(rows)])


def gradient_norms(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> Tensor:
    """Return the norms of the loss's gradient by attention matrix, ``(layer, matrix)``.

    A matrix that does not learn has none: 0.
    """
    parameters = [layer.get_parameter(name) for layer in model.attention for name in MATRICES]
    total = [torch.zeros_like(p) for p in parameters]
    learning = [(p, g) for p, g in zip(parameters, total, strict=True) if p.requires_grad]
    with resting(model), torch.enable_grad():
        for batch in chunks(model, sequences, rows):
            logits = model(batch.ids, batch.mask)
            loss = F.cross_entropy(logits, batch.labels, reduction="sum") / len(rows)
            parts = torch.autograd.grad(loss, [p for p, _ in learning])
            for (_, summed), part in zip(learning, parts, strict=True):
                summed += part
    return torch.stack([g.norm() for g in total]).view(-1, len(MATRICES))


def attention_statistics(model: KernelClassifier, batch: Batch) -> Tensor:
    """Return entropy, largest share and sum of a row of weights, averaged; ``(layer, statistic)``.

    Shares are weights over their sum, which for softmax are the weights themselves. Entropy is
    divided by the logarithm of the number of keys: 1 for equal shares, 0 for a single key.
    """
    out = []
    with resting(model), torch.no_grad():
        for weights in model.attention_weights(batch.ids, batch.mask):
            mask = batch.mask
            if mask is None:
                mask = weights.new_ones(weights.shape[0], weights.shape[-1], dtype=torch.bool)
            keys = mask.sum(dim=1).clamp(min=2)
            rows = mask[:, None, :].float()
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
