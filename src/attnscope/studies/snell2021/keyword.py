"""Under uniform attention the keyword's log odds wander off to the last position (Fig 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Logarithmic, Record
from attnscope.errors import AttnscopeError
from attnscope.models.sequence_classifier import ClassifierObjective, SequenceClassifier
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.snell2021 import _keyword_claims, _keyword_figures, _keyword_tables
from attnscope.studies.snell2021._keyword_cases import CASES
from attnscope.studies.snell2021._keyword_readings import LAST, READINGS, observables, share_from
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.keyword import Keyword, LabelledSequences

HELD_OUT = 1_000_003
"""Seed of the sequences that are read; runs have small seeds."""


@dataclass(frozen=True)
class KeywordDrift(Study):
    """Log odds γ_l at the keyword, after it, at the end and on average, while a classifier learns.

    The paper says neither whether its LSTM reads both ways, nor how long it is trained. Both kinds
    are run, under uniform and under learned attention.
    """

    seeds: int = 5
    """Number of runs of each case."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps; Adam's learning rate is the field `rate`."""
    epochs: int = 2000
    """Steps."""
    points: int = 81
    """Record points: step 0, and steps in constant ratio as far as there are so many."""
    rate: float = 1e-3
    """Adam's learning rate."""
    length: int = 40
    """L, words in a sequence."""
    types: int = 40
    """Number of words, the keyword included."""
    embedding: int = 300
    """Length of embeddings."""
    hidden: int = 256
    """Length of the LSTM's state in one direction."""
    batch: int = 32
    """Sequences in a step, never seen again."""
    held_out: int = 1000
    """Sequences that are read, half of them positive."""

    citation: ClassVar[str] = CITATION
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 500,
        "points": 51,
        "embedding": 64,
        "hidden": 64,
        "held_out": 400,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and Adam's learning rate is 'rate'."
            )
        for name, least in (("embedding", 1), ("hidden", 1), ("batch", 1), ("length", 4)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        # Every position before the last must hold the keyword of some sequence.
        if self.held_out < 10 * self.length:
            raise AttnscopeError(
                f"held_out = {self.held_out}: expected ten sequences or more for each of the "
                f"{self.length} positions of the keyword, {10 * self.length}."
            )
        self.task()

    def task(self) -> Keyword:
        """Return the task, the same for all cases."""
        return Keyword(self.length, self.types)

    def read_sequences(self) -> LabelledSequences:
        """Return the sequences that are read: those whose keyword is the last word are left out."""
        drawn = self.task().sample(self.held_out, HELD_OUT)
        return drawn.rows(torch.nonzero(drawn.position < self.length - 1)[:, 0])

    def cases(self) -> tuple[str, ...]:
        """Return the kinds of LSTM and attention."""
        return tuple(CASES)

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of Adam on fresh sequences"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam on fresh mini-batches."""
        return Descent(
            lr=self.rate,
            optimizer="adam",
            batch_size=self.batch,
            samples=self.batch * (self.epochs + 1),
            seed=seed,
            tick=1.0,
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed see the same sequences."""
        task, kind = self.task(), CASES[case]
        torch.manual_seed(seed)
        model = SequenceClassifier(
            task.vocabulary,
            embedding=self.embedding,
            hidden=self.hidden,
            attention_hidden=self.hidden,
            bidirectional=kind.both_ways,
            attention=kind.attention,
        )
        record = Record(observables(self.read_sequences()), Logarithmic(self.points, 1.0))
        return Problem(model, ClassifierObjective(task.stream(seed)), [record])

    def truth(self) -> xr.Dataset:
        """Return where the keyword of the sequences that are read stands."""
        position = self.read_sequences().position.numpy()
        meaning = "position of the keyword, from 0; -1 where there is none"
        return xr.Dataset({"position": ("sequence", position, {"meaning": meaning})})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict the mean log odds of an LSTM that forgets nothing: two plateaus.

        Before the keyword a state is that of a negative sequence, from the keyword on it is that of
        the last position: γ̄ = r γ_L + (1 - r) γ̄_neg, with r the mean share of positions from l* on.
        """
        share = share_from(tree["data/position"].to_numpy(), self.length)
        read = tree["observables/reading"].to_numpy()
        last = read[..., READINGS["gamma"]][..., LAST]
        plateaus = share * last + (1 - share) * read[..., READINGS["negative"]]
        meaning = "r γ_L + (1 - r) γ̄_neg, r the share of positions from the keyword on"
        return xr.Dataset(
            {"gamma_mean": (("run", "step"), plateaus, {"meaning": meaning})},
            coords={"time": ("step", tree["observables/time"].to_numpy())},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return hypothesis 2, observation 3, and when they hold."""
        return _keyword_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 7 for every case, and the log odds around the keyword."""
        return _keyword_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the four quantities early, just after learning, and at the end."""
        return _keyword_tables.tables(self, tree)
