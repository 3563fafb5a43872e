"""Trained embeddings have topics as blocks, exactly by flow, roughly otherwise (Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import nn

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Flow, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.topic_objective import PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _embedding_claims, _embedding_figures
from attnscope.studies.li2023._block_means import BLOCKS, block_means, contrast
from attnscope.studies.li2023._embedding_cases import FLOW, PRINTED, TRAININGS
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.tasks.topic_documents import TopicStream
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.theory import li2023


@dataclass(frozen=True)
class Embedding(TopicDocumentsStudy):
    """W^K = W^Q = 0, W^V = I: only the embeddings learn, tied to the decoder.

    By flow on all documents in the limit of infinite length, with squared loss and the bias of
    Theorem 1; and as in the paper's experiments, by SGD and Adam on fresh documents, with trained
    biases, squared loss and cross-entropy. Time counts steps of descent; for the flow it is time.
    """

    seeds: int = 3
    """Number of runs of each case, with seeds 0, 1, ..."""
    lr: float = 1.0
    """Time of a step: the axis counts steps. See ``step_size``."""
    epochs: int = 5000
    """Steps of SGD and Adam, and the time of the flow."""
    points: int = 51
    """Record points, evenly spaced."""
    step_size: float = 0.01
    """Learning rate of SGD and Adam."""
    tau: int = 3
    """τ, topics of a document of infinite length."""
    alpha: float = 0.1
    """Parameter of the Dirichlet distribution of topics in the experiments."""
    shortest: int = 100
    """Words of the shortest documents in the experiments."""
    longest: int = 150
    """Words of the longest documents; all lengths between are equally likely."""
    batch: int = 40
    """Fresh documents in a step."""
    start: float = 2e-2
    """Standard deviation of the entries of W^E at the start."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 2, "epochs": 1500, "points": 31}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words < 2:
            raise AttnscopeError(
                f"words = {self.words}: expected 2 or more, as a block needs two words of a topic."
            )
        for name in ("start", "step_size"):
            if not 0 < getattr(self, name) < np.inf:
                raise AttnscopeError(
                    f"{name} = {getattr(self, name)}: expected a finite number above 0."
                )
        li2023.topic_gap(self.population())  # says what is wrong with the numbers
        self.stream(0)

    def population(self) -> TopicPopulation:
        """Return all documents of infinite length with τ topics."""
        return TopicPopulation(self.topics, self.words, self.tau, self.p_m, self.p_c, self.p_r)

    def stream(self, seed: int) -> TopicStream:
        """Return the documents of the experiments."""
        task = self.task(alpha=self.alpha, length=(self.shortest, self.longest))
        return TopicStream(task, seed)

    def cases(self) -> tuple[str, ...]:
        """Return the two flows and the four experiments."""
        return (FLOW, PRINTED, *TRAININGS)

    def course(self) -> str:
        """Say how long runs are."""
        return (
            f"{self.epochs:,} steps of SGD or Adam on fresh documents, or gradient flow for as long"
        )

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return SGD or Adam for an experiment; the flow, or full-batch descent, otherwise."""
        if case in TRAININGS:
            return Descent(
                self.step_size,
                optimizer=TRAININGS[case].optimizer,
                batch_size=self.batch,
                samples=self.batch * self.epochs,
                seed=seed,
                tick=self.lr,
            )
        return super().make_engine(case, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        population, experiment = self.population(), case in TRAININGS
        bias = torch.from_numpy(li2023.embedding_bias(population))
        model = TopicTransformer(
            population.vocabulary,
            embedding="trained",
            attention="uniform",
            value="identity",
            embedding_noise=self.start,
            biases=experiment,
            output_bias=None if experiment else bias,
            generator=torch.Generator().manual_seed(seed),
        )
        if case == PRINTED:
            root = np.sqrt(li2023.printed_example(population))
            with torch.no_grad():
                # The noise of the seed is added, or all seeds would be one run.
                model.get_parameter("W_E").mul_(1e-2).add_(torch.from_numpy(root).float())
        loss: PopulationObjective | TopicObjective
        if experiment:
            loss = TopicObjective(self.stream(seed), TRAININGS[case].kind)
        else:
            loss = PopulationObjective(population)
        return Problem(model, loss, self._records(population))

    def _records(self, population: TopicPopulation) -> list[Record]:
        topic = population.topic_of
        curves = (
            Observable(
                "blocks",
                lambda m: torch.from_numpy(block_means(gram(m), topic)),
                ("block",),
                "",
                f"of E: {', '.join(BLOCKS)}; means, but the largest of the mask row",
            ),
            Observable(
                "contrast",
                lambda m: torch.from_numpy(contrast(gram(m), topic)),
                (),
                "",
                "same minus different topic, over the spread of the latter, without the diagonal",
            ),
            Observable(
                "violation",
                lambda m: torch.tensor(li2023.embedding_family_residual(gram(m), population).max()),
                (),
                "",
                "largest violation of Theorem 1's conditions, in units of an entry of E",
            ),
        )
        whole = Observable(
            "E", lambda m: torch.from_numpy(gram(m)), ("row", "column"), "", "(W^E)ᵀ W^E"
        )
        return [
            Record(curves, Linear(self.points)),
            Record((whole,), Given((self.time,)), dim="snapshot"),
        ]

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict the gap of every optimum, whatever else it is: c₃/v (Theorem 1)."""
        times = tree["observables/time"].to_numpy()
        gap = np.full(len(times), li2023.topic_gap(self.population()))
        return xr.Dataset(
            {"gap": ("step", gap, {"meaning": "same minus different topic, c₃/v"})},
            coords={"time": ("step", times)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what Theorem 1 and the experiments on embeddings say."""
        return _embedding_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw E as a matrix with topics as blocks, and how the blocks come about."""
        return _embedding_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the blocks of E at the end, and the examples of Theorem 1."""
        return _embedding_figures.tables(self, tree)


def gram(model: nn.Module) -> np.ndarray:
    """Return E = (W^E)ᵀ W^E in double precision, shape ``(word, word)``."""
    assert isinstance(model, TopicTransformer)
    w = model.embeddings().detach().double()
    return np.asarray((w.T @ w).numpy())
