"""The best attention looks at the largest β, though it need not for three words or more (A.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.probes.agreement import mean_agreement
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.snell2021 import _optimal_claims, _optimal_figures, _optimal_tables
from attnscope.studies.snell2021._optimal_readings import (
    EQUATION_30,
    LEARNED,
    QUANTITIES,
    UNIFORM,
    drawn,
    near_equation_30,
    reader,
)
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.theory import snell2021

HELD_OUT = 1_000_003
"""Seed of the sequences that are read; runs have small seeds."""


@dataclass(frozen=True)
class BestAttention(Study):
    """Optimal attention of a model with added output (eq 32), along its training.

    For every target word of some unseen sequences the attention that minimises its loss is found,
    certified to 1e-8, and compared with β and with the model's own attention. Beside it stand the
    paper's counterexample and problems with random logits, by the number of outputs. The paper's
    number, A(α_opt, β) = 0.53, is for a model of Multi30k; here sequences are copied.
    """

    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps; Adam's learning rate is the field `rate`."""
    epochs: int = 300
    """Steps."""
    points: int = 31
    """Record points, evenly spaced."""
    rate: float = 1e-3
    """Adam's learning rate."""
    length: int = 40
    """L, words in a sequence."""
    types: int = 60
    """Words that a sequence is drawn from."""
    width: int = 256
    """Length of embeddings and of LSTM states."""
    batch: int = 128
    """Sequences in a step, never seen again."""
    held_out: int = 10
    """Sequences whose words are read at each record point."""
    outputs: tuple[int, ...] = (2, 3, 5, 10, 30, 100)
    """|O| of the problems with random logits, the first of them 2."""
    spreads: tuple[float, ...] = (1.0, 3.0, 10.0)
    """Standard deviations of random logits."""
    positions: int = 20
    """Positions of a problem with random logits."""
    problems: int = 400
    """Problems with random logits, for each number of outputs, spread and seed."""

    citation = CITATION
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "length": 20,
        "types": 30,
        "width": 64,
        "batch": 64,
        "points": 16,
        "outputs": (2, 3, 10, 30),
        "problems": 200,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and Adam's learning rate is 'rate'."
            )
        for name in ("width", "batch", "held_out", "positions", "problems"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if self.epochs % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.epochs} steps: expected points a whole number "
                "of steps apart."
            )
        ascending = list(self.outputs) == sorted(set(self.outputs))
        if len(self.outputs) < 2 or self.outputs[0] != 2 or not ascending:
            raise AttnscopeError(
                f"outputs = {self.outputs}: expected 2 and then larger numbers, ascending."
            )
        if not self.spreads or not all(0 < spread <= 50 for spread in self.spreads):
            raise AttnscopeError(f"spreads = {self.spreads}: expected numbers above 0, up to 50.")

    def task(self) -> Copying:
        """Return the task."""
        return Copying(self.length, self.types)

    def cases(self) -> tuple[str, ...]:
        """Return learned attention, and attention that is held at uniform."""
        return (LEARNED, UNIFORM)

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
        """Make a run; both cases of a seed start from the same numbers and see the same pairs."""
        task = self.task()
        torch.manual_seed(seed)
        model = Seq2Seq(
            task.vocabulary,
            embedding=self.width,
            hidden=self.width,
            output="added",
            attention="uniform" if case == UNIFORM else "learned",
        )
        read = reader(task.sample(self.held_out, HELD_OUT), task.gold)
        meaning = "; ".join(QUANTITIES.values())
        record = Record(
            (Observable("optimal", read, ("quantity",), "", meaning),), Linear(self.points)
        )
        return Problem(model, Seq2SeqObjective(task.stream(seed)), [record])

    def truth(self) -> xr.Dataset:
        """Return the gold positions."""
        meaning = {"meaning": "source position of each target position, END included"}
        return xr.Dataset({"gold": ("target", self.task().gold.numpy(), meaning)})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Solve the counterexample, and problems with random logits, seed by seed."""
        best = snell2021.optimal_attention(EQUATION_30, 0)
        shape = (self.seeds, len(self.spreads), len(self.outputs))
        neglected, agreed = np.zeros(shape), np.zeros(shape)
        for at in np.ndindex(shape):
            seed, spread, outputs = at[0], self.spreads[at[1]], self.outputs[at[2]]
            found = drawn(self.problems, self.positions, outputs, spread, seed)
            neglected[at] = found.neglects.mean()
            agreed[at] = mean_agreement(found.alpha, found.beta).value
        near = [near_equation_30(self.problems, 0.1, seed) for seed in range(self.seeds)]
        dims = ("draw", "spread", "outputs")
        return xr.Dataset(
            {
                "counterexample": ("place", best.alpha, {"meaning": "α_opt of eq 30"}),
                "counterexample_beta": ("place", best.beta, {"meaning": "β of eq 30"}),
                "counterexample_p": ((), best.probability, {"meaning": "p at α_opt"}),
                "near": ("draw", np.array([n.neglects.mean() for n in near])),
                "neglected": (dims, neglected, {"meaning": QUANTITIES["neglected"]}),
                "agreed": (dims, agreed, {"meaning": QUANTITIES["optimal_beta"]}),
            }
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return the statements about optimal attention."""
        return _optimal_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw agreement along training, what attention is worth, and random problems."""
        return _optimal_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the counterexample, the end of training, and random problems."""
        return _optimal_tables.tables(self, tree)
