"""What the studies of copied sequences share: fields, optimizer, model, readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import xarray as xr

from attnscope.engines import Descent, Linear, Record
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.studies.base import Problem, Study
from attnscope.studies.snell2021._copying_readings import observables
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END
from attnscope.theory.snell2021.knowledge import Knowledge, predict_knowledge

HELD_OUT = 1_000_003
"""Seed of the sequences that are read; runs have small seeds."""
UNIFORM = ", uniform attention"
"""How the names of cases end in which attention is held at uniform."""


@dataclass(frozen=True)
class CopyingStudy(Study):
    """Sequences are copied by an LSTM with attention, trained by Adam on fresh batches."""

    seeds: int = 20
    """Number of runs of each case."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps; Adam's learning rate is the field `rate`."""
    epochs: int = 400
    """Steps."""
    points: int = 41
    """Record points, evenly spaced."""
    rate: float = 1e-3
    """Adam's learning rate."""
    length: int = 40
    """L, words in a sequence."""
    types: int = 60
    """Words that sequences are drawn from where not all of them are in each."""
    width: int = 256
    """Length of embeddings and of LSTM states."""
    batch: int = 128
    """Sequences in a step, never seen again."""
    held_out: int = 50
    """Sequences that are read at each record point."""
    verdict: int = 200
    """Step at which it is judged who has learned."""

    citation: ClassVar[str] = CITATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and Adam's learning rate is 'rate'."
            )
        for name in ("width", "batch", "held_out"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if self.length < 2 or self.types <= self.length:
            raise AttnscopeError(
                f"length = {self.length} and types = {self.types}: expected two words or more in a "
                "sequence, and more to draw from."
            )
        if self.epochs % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.epochs} steps: expected points a whole number "
                "of steps apart."
            )
        every = self.epochs // (self.points - 1)
        if not 0 < self.verdict <= self.epochs or self.verdict % every:
            raise AttnscopeError(
                f"verdict = {self.verdict}: expected a step that is recorded, a multiple of "
                f"{every} up to {self.epochs}."
            )

    def task(self, case: str, seed: int) -> Copying:
        """Return the task of a case."""
        raise NotImplementedError

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
        """Make a run; cases of one seed and vocabulary start from the same numbers."""
        task = self.task(case, seed)
        torch.manual_seed(seed)
        model = Seq2Seq(
            task.vocabulary,
            embedding=self.width,
            hidden=self.width,
            output="tanh",
            projection=True,
            attention="uniform" if case.endswith(UNIFORM) else "learned",
        )
        pairs = task.sample(self.held_out, HELD_OUT)
        record = Record(observables(pairs, task.gold), Linear(self.points))
        return Problem(model, Seq2SeqObjective(task.stream(seed)), [record])

    def truth(self) -> xr.Dataset:
        """Return where each output word of each run was copied from."""
        gold = np.stack([self.task(case, seed).gold.numpy() for case, seed in self.runs()])
        meaning = "source position of each target position, END included"
        return xr.Dataset({"gold": (("run", "target"), gold, {"meaning": meaning})})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Say from the count table alone, before training, how well words tell their places."""
        told = np.array([self.told(case, seed) for case, seed in self.runs()])
        meaning = "α^IBM at the gold position (eq 19) over its mean at words of the sequence"
        return xr.Dataset({"told": ("run", told, {"meaning": meaning})})

    def told(self, case: str, seed: int = 0) -> float:
        """Return α^IBM at the gold position over its mean at words: 1 if C tells no places.

        END is left out of the mean. In a mixture it goes with the words of all sets, and so less
        with each word than the words of its set do, which says nothing of places among them.
        """
        gold = self.task(case, seed).gold[:-1].numpy()
        every = np.stack(self.known(case, seed).alpha)[:, :-1, :-1]
        return float((every[:, np.arange(len(gold)), gold] / every.mean(axis=2)).mean())

    def known(self, case: str, seed: int = 0) -> Knowledge:
        """Return what the exact count table of a case says about its held-out sequences."""
        task = self.task(case, seed)
        pairs = task.sample(self.held_out, HELD_OUT)
        # END is always where it is; what counts is whether words can be told apart.
        gold = torch.where(pairs.target[0] == END, -1, task.gold)
        return predict_knowledge(task.counts(), list(pairs.source), list(pairs.target), gold)
