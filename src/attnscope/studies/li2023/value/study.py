"""The runs of ``li2023.value``, and the closed form of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
import xarray as xr
from torch import nn

from attnscope.bounds import Amount, Count, Positive, Several
from attnscope.engines import Descent, Flow, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.topic_objective import PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.probes.topics.topic_blocks import block_means
from attnscope.studies.li2023._topic_blocks import TopicBlocksStudy
from attnscope.studies.li2023.value.cases import SGD, Case, cases
from attnscope.studies.li2023.value.claims import claims, off
from attnscope.studies.li2023.value.figures import figures, tables
from attnscope.tasks import TopicDocuments, TopicStream
from attnscope.theory import li2023
from attnscope.trajectory import Readings


@dataclass(frozen=True)
class Value(TopicBlocksStudy):
    """One-hot words, uniform attention, squared loss, b = 0: only W^V learns.

    On all documents in the limit of infinite length, by flow, with several λ, from noise and from
    zero; on a sample of documents; and by SGD on fresh ones.
    """

    training: Flow | Descent = Flow(lr=1.0, epochs=30_000)
    """Learning rate and steps of SGD; what trains the others, which end at the same time."""
    points: Several = 121
    """Record points, in constant ratio."""
    other_tau: Count = 6
    """Another τ, to see that Theorem 2 does not depend on it."""
    penalties: tuple[Positive, ...] = (1e-2, 1e-3, 1e-4)
    """λ of the runs from noise; the least is also that of sampled and of fresh documents."""
    small: Positive = 1e-5
    """λ of the run from zero; from noise it would take 1/(2λ) to forget the start."""
    start: Amount = 1e-2
    """Standard deviation of the entries of W^V where they start from noise."""
    documents: Count = 2000
    """Size of the fixed sample."""
    batch: Count = 40
    """Fresh documents in a step of SGD."""

    quick = {"seeds": 2, "lr": 10.0, "epochs": 3000, "points": 61, "documents": 500}
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check that there are two λ and a smaller one, and two τ."""
        super().check()
        falling = all(left > right for left, right in pairwise((*self.penalties, self.small)))
        if len(self.penalties) < 2 or not falling:
            raise AttnscopeError(
                f"penalties = {self.penalties} and small = {self.small}: expected two or more λ, "
                "the largest first and each once, and a smaller one above 0."
            )
        if self.tau == self.other_tau:
            raise AttnscopeError(f"other_tau = {self.other_tau}: expected another τ than tau.")
        li2023.topic_gap(self.population(self.other_tau))
        self.sampled_task()

    def sampled_task(self) -> TopicDocuments:
        """Return the documents of finite length."""
        return self.task(tau=self.tau, length=(self.shortest, self.longest))

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of all runs."""
        return tuple(cases(self))

    def case(self, name: str) -> Case:
        """Return what a run is."""
        return cases(self)[name]

    @property
    def steps(self) -> int:
        """How many steps SGD takes."""
        return round(self.end / self.rate)

    @property
    def rate(self) -> float:
        """Learning rate of SGD; 1 for a flow without one."""
        return self.training.lr or 1.0

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.steps:,} steps of SGD, or gradient flow for as long"

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return SGD for fresh documents; the flow, or full-batch descent, for the others."""
        training, rows = self.training, self.batch * self.steps
        if case == SGD:
            return Descent(self.rate, batch_size=self.batch, samples=rows, seed=seed)
        if isinstance(training, Flow) and not training.correct:
            # The record points lie on the grid of SGD already.
            return replace(training, lr=None, epochs=None, until=self.end)
        return training

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        what, task = self.case(case), self.sampled_task()
        model = TopicTransformer(
            task.vocabulary,
            attention="uniform",
            value_noise=what.start,
            generator=torch.Generator().manual_seed(seed),
        )
        loss: PopulationObjective | TopicObjective
        if what.data == "population":
            loss = PopulationObjective(self.population(what.tau), what.kind, penalty=what.penalty)
        else:
            fresh = what.data == "stream"
            drawn = TopicStream(task, seed) if fresh else task.sample(self.documents, seed)
            loss = TopicObjective(drawn, what.kind, penalty=what.penalty)
        return Problem(model, loss, self.records(case))

    def records(self, case: str) -> list[Record]:
        """Return what is read off W^V at times in constant ratio, and W^V itself at the end."""
        exact = self.exact(case)
        distance = Observable(
            "distance",
            lambda model: torch.tensor(float(off(matrix(model), exact))),
            meaning="‖W^V - W_λ‖/‖W_λ‖, W_λ the exact solution at λ",
        )
        ratio = np.geomspace(self.rate, self.end, self.points - 1) / self.rate
        times = tuple(np.unique(np.round(ratio)) * self.rate)
        blocks, whole = self.readings("W_V", matrix, "W^V", "W^V")
        return [
            Record((blocks, distance), Given(times)),
            Record((whole,), Given((times[-1],)), dim="snapshot"),
        ]

    def exact(self, case: str, factor: float = 1.0) -> np.ndarray:
        """W^V of documents of infinite length at a case's λ, or at a multiple of it."""
        what = self.case(case)
        population = self.population(what.tau)
        return li2023.ridge_value_blocks(population, factor * what.penalty).matrix(population)

    def solution(self, case: str) -> li2023.ValueSolution:
        """Return the closed form of a run with squared loss."""
        what = self.case(case)
        short = 0.0 if what.data == "population" else li2023.shortness(self.sampled_task())
        return li2023.ValueSolution(self.population(what.tau), what.penalty, short)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Predict block means and distance at all times from the start, without training.

        In closed form: exactly for flows on the population; on average for SGD; and for a fixed
        sample as if it were a large one. There is none for cross-entropy.
        """
        known = {
            name: xr.full_like(run.get(name), np.nan, dtype=float).assign_attrs(
                meaning="the linear flow of W^V, solved"
            )
            for name in ("blocks", "distance")
        }
        times, topic = run.blocks["time"].to_numpy(), self.population().topic_of
        for case, seed in self.runs():
            if self.case(case).kind == "cross-entropy":
                continue
            solution, start = self.solution(case), matrix(self.build(case, seed).model)
            path = np.stack([solution.at(time, start) for time in times])
            known["blocks"].loc[case, seed] = block_means(path, topic)
            known["distance"].loc[case, seed] = off(path, self.exact(case))
        return known


def matrix(model: nn.Module) -> np.ndarray:
    """Return W^V in double precision, shape ``(word, word)``."""
    assert isinstance(model, TopicTransformer)
    return model.value_matrix().detach().double().numpy().copy()
