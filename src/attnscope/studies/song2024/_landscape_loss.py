"""The loss of a classifier on fixed sequences, in the two parts that landscapes are faster with."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.studies.song2024._training_data import Batch


class FixedLoss:
    """Mean cross-entropy of one batch, in nats.

    Up to the pooled tokens everything is analytic in the parameters; the head's ReLU is not.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def __call__(self, model: KernelClassifier) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(model(self.batch.ids, self.batch.mask), self.batch.labels)

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
        return F.cross_entropy(logits, self.batch.labels)
