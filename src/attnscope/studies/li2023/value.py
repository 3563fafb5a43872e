"""W^V of Stage 1 goes to Theorem 2 by flow and by SGD, and where it goes elsewhere (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Flow, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.topic_objective import PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _value_claims, _value_figures
from attnscope.studies.li2023._block_means import BLOCKS, block_means
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023._value_cases import SGD, Case, cases
from attnscope.studies.li2023._value_solution import ValueSolution, shortness
from attnscope.tasks import TopicDocuments
from attnscope.tasks.topic_documents import TopicStream
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.theory import li2023


@dataclass(frozen=True)
class Value(TopicDocumentsStudy):
    """One-hot words, uniform attention, squared loss, b = 0: only W^V learns.

    On all documents in the limit of infinite length, by flow, with several λ, from noise and from
    zero; on a sample of documents; and by SGD on fresh ones. The learning rate is SGD's.
    """

    seeds: int = 3
    """Number of runs of each case, with seeds 0, 1, ..."""
    lr: float = 1.0
    """Learning rate of SGD; time = learning rate × epochs."""
    epochs: int = 30_000
    """Steps of SGD; the flows end at the same time."""
    points: int = 121
    """Record points, in constant ratio."""
    tau: int = 3
    """τ, topics of a document."""
    other_tau: int = 6
    """Another τ, to see that Theorem 2 does not depend on it."""
    penalties: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    """λ of the runs from noise; the least is also that of sampled and of fresh documents."""
    small: float = 1e-5
    """λ of the run from zero; from noise it would take 1/(2λ) to forget the start."""
    start: float = 1e-2
    """Standard deviation of the entries of W^V where they start from noise."""
    documents: int = 2000
    """Size of the fixed sample."""
    shortest: int = 100
    """Words of the shortest documents."""
    longest: int = 150
    """Words of the longest documents; all lengths between are equally likely."""
    batch: int = 40
    """Fresh documents in a step of SGD."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "lr": 10.0,
        "epochs": 3000,
        "points": 61,
        "documents": 500,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words < 2:
            raise AttnscopeError(
                f"words = {self.words}: expected 2 or more, as a block needs two words of a topic."
            )
        if len(self.penalties) < 2 or not min(self.penalties) > self.small > 0:
            raise AttnscopeError(
                f"penalties = {self.penalties} and small = {self.small}: expected two or more λ, "
                "and a smaller one above 0."
            )
        if list(self.penalties) != sorted(set(self.penalties), reverse=True):
            raise AttnscopeError(
                f"penalties = {self.penalties}: expected the largest λ first, each once."
            )
        if self.tau == self.other_tau:
            raise AttnscopeError(f"other_tau = {self.other_tau}: expected another τ than tau.")
        for tau in (self.tau, self.other_tau):
            li2023.value_blocks(self.population(tau))  # says what is wrong with the numbers
        self.sampled_task()

    def population(self, tau: int) -> TopicPopulation:
        """Return all documents of infinite length with ``tau`` topics."""
        return TopicPopulation(self.topics, self.words, tau, self.p_m, self.p_c, self.p_r)

    def sampled_task(self) -> TopicDocuments:
        """Return the documents of finite length."""
        return self.task(tau=self.tau, length=(self.shortest, self.longest))

    def cases(self) -> tuple[str, ...]:
        """Return the names of all runs."""
        return tuple(cases(self))

    def case(self, name: str) -> Case:
        """Return what a run is."""
        return cases(self)[name]

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of SGD, or gradient flow for as long"

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return SGD for fresh documents; the flow, or full-batch descent, for the others."""
        if case == SGD:
            return Descent(
                self.lr, batch_size=self.batch, samples=self.batch * self.epochs, seed=seed
            )
        if self.engine == "flow" and not self.correct:
            return Flow()  # the record points lie on the grid of SGD already
        return super().make_engine(case, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        what = self.case(case)
        model = TopicTransformer(
            self.topics * self.words + 1,
            attention="uniform",
            value_noise=what.start,
            generator=torch.Generator().manual_seed(seed),
        )
        loss: PopulationObjective | TopicObjective
        if what.data == "population":
            loss = PopulationObjective(self.population(what.tau), what.kind, penalty=what.penalty)
        else:
            task = self.sampled_task()
            drawn = (
                TopicStream(task, seed)
                if what.data == "stream"
                else task.sample(self.documents, seed)
            )
            loss = TopicObjective(drawn, what.kind, penalty=what.penalty)
        return Problem(model, loss, self._records(what))

    def _records(self, what: Case) -> list[Record]:
        population = self.population(what.tau)
        topic = population.topic_of
        ridge = li2023.ridge_value_blocks(population, what.penalty).matrix(population)

        def distance(model: nn.Module) -> Tensor:
            return torch.tensor(relative_distance(matrix(model), ridge))

        curves = (
            Observable(
                "blocks",
                lambda m: torch.from_numpy(block_means(matrix(m), topic)),
                ("block",),
                "",
                f"of W^V: {', '.join(BLOCKS)}; means, but the largest of the mask row",
            ),
            Observable(
                "distance", distance, (), "", "‖W^V - W_λ‖/‖W_λ‖, W_λ the exact solution at λ"
            ),
        )
        whole = Observable(
            "W_V", lambda m: torch.from_numpy(matrix(m)), ("row", "column"), "", "W^V"
        )
        ratio = np.geomspace(self.lr, self.time, self.points - 1) / self.lr
        times = tuple(np.unique(np.round(ratio)) * self.lr)
        return [
            Record(curves, Given(times)),
            Record((whole,), Given((times[-1],)), dim="snapshot"),
        ]

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict block means and distance at all times from the start, without training.

        In closed form: exactly for flows on the population; on average for SGD; and for a fixed
        sample as if it were a large one. There is none for cross-entropy.
        """
        observed = tree["observables"].to_dataset()
        times = observed["time"].to_numpy()
        blocks = np.full(observed["blocks"].shape, np.nan)
        distance = np.full(observed["distance"].shape, np.nan)
        for run, (name, seed) in enumerate(self.runs()):
            what = self.case(name)
            if what.kind == "cross-entropy":
                continue
            solution = self.solution(name)
            population = solution.population
            start = matrix(self.build(name, seed).model)
            ridge = li2023.ridge_value_blocks(population, what.penalty).matrix(population)
            for step, time in enumerate(times):
                there = solution.at(time, start)
                blocks[run, step] = block_means(there, population.topic_of)
                distance[run, step] = relative_distance(there, ridge)
        return xr.Dataset(
            {
                "blocks": (
                    observed["blocks"].dims,
                    blocks,
                    {"meaning": "the linear flow of W^V, solved"},
                ),
                "distance": (
                    observed["distance"].dims,
                    distance,
                    {"meaning": "the linear flow of W^V, solved"},
                ),
            },
            coords={"time": ("step", times)},
        )

    def solution(self, name: str) -> ValueSolution:
        """Return the closed form of a run with squared loss."""
        what = self.case(name)
        short = 0.0 if what.data == "population" else shortness(self.sampled_task())
        return ValueSolution(self.population(what.tau), what.penalty, short)

    def claims(self) -> tuple[Claim, ...]:
        """Return what Theorem 2 says of these runs, and what lies beyond it."""
        return _value_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw W^V as a matrix, its way to the solution, and the limit λ → 0."""
        return _value_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the blocks of W^V at the end, run by run."""
        return _value_figures.tables(self, tree)


def matrix(model: nn.Module) -> np.ndarray:
    """Return W^V in double precision, shape ``(word, word)``."""
    assert isinstance(model, TopicTransformer)
    return model.value_matrix().detach().double().numpy().copy()


def relative_distance(there: np.ndarray, target: np.ndarray) -> float:
    """Return ‖W - W*‖/‖W*‖ in the Frobenius norm."""
    return float(np.linalg.norm(there - target) / np.linalg.norm(target))
