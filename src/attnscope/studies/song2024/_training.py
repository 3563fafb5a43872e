"""What ``song2024.text`` and ``song2024.pathfinder`` share: two kernels, one classifier."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Several
from attnscope.engines import Adam, Final, Linear, Observable, OneCycle, Record, Switch
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import (
    MATRICES,
    MEASURES,
    STATISTICS,
    TrainingLoss,
    attention_statistics,
    evaluate,
    gradient_norms,
)
from attnscope.probes.bag_of_tokens import bag_accuracy
from attnscope.studies.song2024._song import CITATION, KERNELS
from attnscope.studies.song2024._training_claims import NORMALISED, RANDOM, UNIFORM, claims_of
from attnscope.studies.song2024._training_figures import figures_of, tables_of
from attnscope.tasks.sequence_rows import RandomLabels, Sequences, fixed_rows
from attnscope.trajectory import Readings

EPS, CLIP = 1e-6, 1.0
"""Adam's ε, and where entries of the gradient are cut (Skyformer's code)."""
WEIGHED = 16
"""Sequences whose attention weights are read."""
ERRORS = 3.0
"""Standard errors above one half that count as above chance."""


class Published(NamedTuple):
    """Test accuracies in Skyformer's table (mean of three seeds), and words for the task."""

    softmax: float
    gaussian: float
    """With "kernelized attention", as it is called there."""
    task: str
    """What is learned."""
    sequences: str
    """What is classified."""
    bag: str
    """The baseline that only counts tokens."""
    tokens: str
    """What it counts."""
    counting: str
    """Why the transformer may do no better than counting."""


@dataclass(frozen=True)
class KernelTraining(Study):
    """A two-layer transformer with softmax or Gaussian attention, trained by Adam.

    All that the poster gives is D = 64, 128 hidden entries, two heads and two layers; the rest is
    that of Skyformer (Chen et al. 2021), whose model this is: learning rate in one cycle, gradients
    cut by value, dropout 0.1. Runs of a seed begin at the same parameters and see the same batches.
    """

    seeds: Count = 3
    training: Adam = Adam(rate=1e-4, steps=50_000, batch=32, eps=EPS, clip=CLIP, warmup=80)
    points: Several = 101
    """Record points, evenly spaced."""
    dropout: Annotated[float, Bounds(0, 1, open_high=True)] = 0.1
    """Share that dropout leaves out."""
    pooling: Literal["mean", "max"] = "mean"
    """What becomes of the tokens behind the last layer."""
    held_out: Count = 2000
    """Held-out sequences that are evaluated on the way."""
    last: Count = 25_000
    """Held-out sequences that are evaluated in the end."""
    probe: Count = 256
    """Training sequences on which loss and gradients are read."""

    citation = CITATION
    cases = (*KERNELS, NORMALISED, UNIFORM, RANDOM)
    claims, figures, tables = claims_of, figures_of, tables_of
    labels = {"measure": MEASURES, "matrix": MATRICES, "statistic": STATISTICS}
    published: ClassVar[Published]
    counted: ClassVar[int | None] = None
    """Training sequences on which the bag of tokens is fitted; all unless given."""
    carried: ClassVar[float] = 5.0
    """Points that attention must bring in the end to count as what carries the accuracy."""
    desk: ClassVar[dict[str, object]] = {}

    def check(self) -> None:
        """Check that points are whole steps apart, and that the cycle ends within the run."""
        steps, warmup = self.training.steps, self.training.warmup
        if steps % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {steps} steps: expected points a whole number of "
                "steps apart."
            )
        if warmup is not None and self.training.cycle:
            OneCycle(warmup).at(0, steps)

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return what is learned from, and what is not."""
        raise NotImplementedError

    def shape(self) -> tuple[int, int]:
        """Return the vocabulary size, and the most tokens in a sequence."""
        raise NotImplementedError

    def scale_words(self) -> str:
        """Say how long sequences and runs are."""
        raise NotImplementedError

    def baselines(self, run: Readings) -> dict[str, float]:
        """Return the accuracies of what is no transformer."""
        return {self.published.bag: float(run.theory.bag_accuracy)}

    def unseen(self, most: int) -> int:
        """Return how many held-out sequences there are, at most so many."""
        return min(most, len(self.sequences()[1]))

    def chance(self) -> float:
        """Return the accuracy that counts as above chance: 1/2 + 3 standard errors of a coin."""
        return 0.5 + ERRORS * 0.5 / math.sqrt(self.unseen(self.last))

    def model(self, kernel: str, seed: int) -> KernelClassifier:
        """Return the classifier at its start; the kernel does not change its parameters."""
        vocabulary, length = self.shape()
        return KernelClassifier(
            vocabulary,
            length,
            2,
            kernel=kernel,
            dropout=self.dropout,
            pooling=self.pooling,
            stem=self.stem(),
            seed=seed,
        )

    def stem(self) -> Callable[[int], nn.Module] | None:
        """Return how tokens become vectors; embeddings of tokens and places unless given."""
        return None

    def vary(self) -> Callable[[Tensor], Tensor] | None:
        """Return what changes training sequences at every step so that labels stay, if anything."""
        return None

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        train, test = self.sequences()
        if case == RANDOM:
            train, test = RandomLabels(train, 2 * seed), RandomLabels(test, 2 * seed + 1)
        model = self.model("softmax" if case in (RANDOM, UNIFORM) else case, seed)
        if case == UNIFORM:
            model.freeze_uniform()
        records = self.records(train, test)
        return batched(train, model, records, seed, self.training, vary=self.vary())

    def records(self, train: Sequences, test: Sequences) -> list[Record]:
        """Return what is read off the classifier while it trains, and at both ends."""
        seen, unseen = fixed_rows(train, self.probe), fixed_rows(test, self.held_out)
        every = fixed_rows(test, self.last)
        part = train.batch(seen[:WEIGHED])

        def of(read: Callable[..., Tensor], *given: object) -> Callable[[nn.Module], Tensor]:
            return lambda module: read(classifier(module), *given)

        def loss(module: nn.Module) -> Tensor:
            return evaluate(classifier(module), train, seen)[MEASURES.index("loss")]

        held_out = "mean cross-entropy (nats) and accuracy on unseen sequences"
        at_ends = "the same on more sequences, at both ends of the run"
        trained = "mean cross-entropy of a fixed part of the training sequences, without dropout"
        gradients, by_matrix = of(gradient_norms, train, seen), ("layer", "matrix")
        norms = "Frobenius norm of the loss's gradient by W^Q, W^K, W^V, W^O on the same sequences"
        weights, by_statistic = of(attention_statistics, part), ("layer", "statistic")
        row = "of a row of weights, mean: entropy / log(keys), largest share, sum"
        curves = (
            Observable("held_out", of(evaluate, test, unseen), ("measure",), "", held_out),
            Observable("train_loss", loss, (), "nats", trained),
            Observable("gradient_norm", gradients, by_matrix, "", norms),
            Observable("attention", weights, by_statistic, "", row),
        )
        end = Observable("end_held_out", of(evaluate, test, every), ("measure",), "", at_ends)
        return [Record(curves, Linear(self.points)), Record((end,), Final(), dim="end")]

    def theory(self, run: Readings) -> dict[str, object]:
        """Return what counting tokens alone reaches on the same sequences."""
        train, test = self.sequences()
        rows = fixed_rows(train, self.counted), fixed_rows(test, self.last)
        reached = bag_accuracy(train, test, *rows, self.shape()[0])
        meaning = f"test accuracy of least squares on counts of {self.published.tokens}"
        return {"bag_accuracy": ((), reached, {"meaning": meaning})}


def batched(
    train: Sequences,
    model: KernelClassifier,
    records: list[Record],
    seed: int,
    training: Adam,
    *switches: Switch,
    vary: Callable[[Tensor], Tensor] | None = None,
) -> Problem:
    """Return a run of a classifier on mini-batches."""
    if training.batch is not None and training.batch > len(train):
        raise AttnscopeError(
            f"batch = {training.batch}: expected at most the {len(train):,} training sequences."
        )
    # Dropout draws from PyTorch's global source; the run begins here.
    torch.manual_seed(seed)
    rows = len(train)
    loss = TrainingLoss(train, vary)
    return Problem(model, loss, records, rows=rows, seed=seed, switches=switches)


def classifier(model: nn.Module) -> KernelClassifier:
    """Return the module as what it is."""
    assert isinstance(model, KernelClassifier)
    return model
