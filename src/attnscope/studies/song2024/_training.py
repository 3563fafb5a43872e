"""What ``song2024.text`` and ``song2024.pathfinder`` share: two kernels, one classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import xarray as xr

from attnscope.engines import Descent, OneCycle
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.old import Claim, Study
from attnscope.studies.song2024 import _training_claims, _training_figures, _training_tables
from attnscope.studies.song2024._song import CITATION
from attnscope.studies.song2024._training_data import RandomLabels, Sequences
from attnscope.studies.song2024._training_names import RANDOM, Published
from attnscope.studies.song2024._training_readings import TrainingLoss, records

EPS, CLIP = 1e-6, 1.0
"""Adam's ε, and where entries of the gradient are cut (Skyformer's code)."""


@dataclass(frozen=True)
class KernelTraining(Study):
    """A two-layer transformer with softmax or Gaussian attention, trained by Adam.

    All that the poster gives is D = 64, 128 hidden entries, two heads and two layers; the rest is
    that of Skyformer (Chen et al. 2021), whose model this is: learning rate in one cycle, gradients
    cut by value, dropout 0.1. Runs of a seed begin at the same parameters and see the same batches.
    """

    seeds: int = 3
    """Number of runs of each case, with seeds 0, 1, ..."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps. The learning rate is ``rate``."""
    epochs: int = 50_000
    """Steps."""
    points: int = 101
    """Record points, evenly spaced."""
    rate: float = 1e-4
    """Largest learning rate of the cycle."""
    warmup: int = 80
    """Steps until it is reached."""
    batch: int = 32
    """Sequences in a step."""
    dropout: float = 0.1
    """Share that dropout leaves out."""
    held_out: int = 2000
    """Unseen sequences that are looked at on the way."""
    last: int = 25_000
    """Unseen sequences that are looked at in the end."""
    probe: int = 256
    """Training sequences on which loss and gradients are read."""

    citation = CITATION
    published: ClassVar[Published]
    """What Skyformer's table says of the task."""
    counting: ClassVar[str]
    """Why the transformer may do no better than counting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and the learning rate is `rate`."
            )
        for name in ("batch", "held_out", "last", "probe"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if not 0 <= self.dropout < 1:
            raise AttnscopeError(f"dropout = {self.dropout}: expected a share from 0 to below 1.")
        if self.epochs % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.epochs} steps: expected points a whole number "
                "of steps apart."
            )
        OneCycle(self.warmup).at(0, self.epochs)

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return what is learned from, and what is not."""
        raise NotImplementedError

    def shape(self) -> tuple[int, int]:
        """Return the number of tokens there are, and the most in a sequence."""
        raise NotImplementedError

    def unseen(self) -> int:
        """Return how many unseen sequences are looked at in the end."""
        return min(self.last, len(self.sequences()[1]))

    def seen_on_the_way(self) -> int:
        """Return how many unseen sequences are looked at on the way."""
        return min(self.held_out, len(self.sequences()[1]))

    def scale_words(self) -> str:
        """Say how long sequences and runs are."""
        raise NotImplementedError

    def baselines(self, tree: xr.DataTree) -> list[tuple[str, float]]:
        """Return more baselines and their accuracies."""
        return []

    def cases(self) -> tuple[str, ...]:
        """Return both kernels, and softmax on labels that mean nothing."""
        return ("softmax", "gaussian", RANDOM)

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of Adam on batches of {self.batch}"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam on mini-batches, as Skyformer's code has it."""
        train, _ = self.sequences()
        if self.batch > len(train):
            raise AttnscopeError(
                f"batch = {self.batch}: expected at most the {len(train):,} training sequences."
            )
        return Descent(
            lr=self.rate,
            optimizer="adam",
            batch_size=self.batch,
            samples=len(train),
            seed=seed,
            tick=1.0,
            eps=EPS,
            clip=CLIP,
            schedule=OneCycle(self.warmup),
        )

    def model(self, kernel: str, seed: int) -> KernelClassifier:
        """Return the classifier at its start; the kernel does not change its parameters."""
        vocabulary, length = self.shape()
        return KernelClassifier(
            vocabulary, length, 2, kernel=kernel, dropout=self.dropout, seed=seed
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        train, test = self.sequences()
        if case == RANDOM:
            train, test = RandomLabels(train, 2 * seed), RandomLabels(test, 2 * seed + 1)
        model = self.model("softmax" if case == RANDOM else case, seed)
        reading = records(
            train,
            test,
            held_out=self.held_out,
            last=self.last,
            probe=self.probe,
            points=self.points,
        )
        # Dropout draws from PyTorch's global source; the run begins here.
        torch.manual_seed(seed)
        return Problem(model, TrainingLoss(train), reading)

    def claims(self) -> tuple[Claim, ...]:
        """Return what the poster and Skyformer's table say of these runs."""
        return _training_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw accuracy and loss over steps, and what attention and its gradients do."""
        return _training_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the end of the runs beside the published numbers."""
        return _training_tables.tables(self, tree)
