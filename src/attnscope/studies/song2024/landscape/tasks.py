"""What landscapes are made of: the sequences, the model, and the loss of both stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor, nn

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import (
    MEASURES,
    FixedLoss,
    TrainingLoss,
    evaluate,
    resting,
)
from attnscope.models.kernels import Gaussian, Kernel
from attnscope.studies.song2024._training import classifier
from attnscope.studies.song2024.landscape.claims import (
    GAUSSIAN,
    NORMALISED,
    SOFTMAX,
    STRETCHED,
    TWIN,
    WIDE,
)
from attnscope.tasks.marked_letters import MarkedLetters, MarkedWords
from attnscope.tasks.sequence_rows import Sequences

WIDTH = 32
"""Entries of a token on the cheap task; half of the poster's."""
BANDWIDTH, STRETCH = 2.0, 2.0
"""σ of the wider Gaussian kernel, and c of the one whose queries are longer than its keys."""
KERNELS: dict[str, str | Kernel] = {
    SOFTMAX: "softmax",
    TWIN: "softmax",
    GAUSSIAN: "gaussian",
    NORMALISED: "normalised-gaussian",
    WIDE: Gaussian(bandwidth=BANDWIDTH),
    STRETCHED: Gaussian(stretch=STRETCH),
}
"""The kernel of the second stage, by case."""
TRAIN, TEST = range(2)
"""Seeds of the words to learn from, and of held-out ones."""


class Task(Protocol):
    """Sequences, and the transformer that learns them."""

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return what is learned from, and what is not."""

    def model(self, kernel: str, seed: int) -> KernelClassifier:
        """Return the classifier at its start."""

    def vary(self) -> Callable[[Tensor], Tensor] | None:
        """Return what changes sequences at every step of the first stage, if anything."""


@dataclass(frozen=True)
class Letters:
    """Two letters of a word are marked: are they the same? Half as wide a transformer learns it."""

    words: MarkedLetters
    train: int
    held_out: int

    def sequences(self) -> tuple[MarkedWords, MarkedWords]:
        """Return the words to learn from, and others."""
        return _drawn(self.words, self.train, TRAIN), _drawn(self.words, self.held_out, TEST)

    def model(self, kernel: str, seed: int) -> KernelClassifier:
        """Return the classifier at its start."""
        return KernelClassifier(
            self.words.vocabulary,
            self.words.tokens,
            2,
            width=WIDTH,
            hidden=2 * WIDTH,
            head_width=WIDTH // 2,
            mlp_hidden=2 * WIDTH,
            kernel=kernel,
            dropout=0.0,
            seed=seed,
        )

    def vary(self) -> None:
        """Return nothing: words stay as they are."""


class TwoStageLoss:
    """Mini-batches of the training set first; then all of the landscape's sequences at once.

    The second stage descends on the very loss that the landscape is of, without dropout, so that it
    can come to rest at a minimum of it.
    """

    def __init__(self, first: TrainingLoss, second: FixedLoss) -> None:
        self.first, self.second, self.changed = first, second, False

    def change(self) -> None:
        """Go on with the second stage."""
        self.changed = True

    def __call__(self, model: nn.Module, rows: Tensor | None = None) -> Tensor:
        """Return the loss of a step."""
        if not self.changed:
            return self.first(model, rows)
        model.eval()
        return self.second(classifier(model))


def loss_and_gradient(model: KernelClassifier, loss: FixedLoss) -> Tensor:
    """Return the loss, and the norm of its gradient by all parameters that learn."""
    learning = [p for p in model.parameters() if p.requires_grad]
    with resting(model), torch.enable_grad():
        value = loss(model)
        parts = torch.autograd.grad(value, learning)
    norm = torch.stack([part.square().sum() for part in parts]).sum().sqrt()
    return torch.stack([value.detach(), norm])


def accuracy(model: KernelClassifier, sequences: Sequences, rows: Tensor) -> float:
    """Return the share of sequences that are classified as labelled."""
    return float(evaluate(model, sequences, rows)[MEASURES.index("accuracy")])


@lru_cache(maxsize=4)
def _drawn(words: MarkedLetters, count: int, seed: int) -> MarkedWords:
    return words.sample(count, seed)
