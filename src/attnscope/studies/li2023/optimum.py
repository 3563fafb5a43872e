"""The best attention to the own topic: its landscape, its growth, and training (Theorems 3, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.models.topic_objective import PopulationObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import (
    _optimum_claims,
    _optimum_figures,
    _optimum_landscapes,
    _optimum_tables,
)
from attnscope.studies.li2023._optimum_records import records
from attnscope.studies.li2023._optimum_theory import best_ratios
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting


@dataclass(frozen=True)
class Optimum(TopicDocumentsStudy):
    """Stage 2 with W^V held at Theorem 2's blocks: the exact loss over attention, and training.

    Landscapes are of the exact finite loss at the size of the paper's Figs 7 and 8. Training is on
    the whole population at a size that can be trained. Two more cases hold W^V at Theorem 5's
    diagonal, and at blocks that are not the topics.
    """

    lr: float = 1000.0
    epochs: int = 2000
    points: int = 41
    taus: tuple[int, ...] = (2, 3, 4, 5, 6)
    """Numbers τ of topics in a document that are trained on, rising."""
    noise: float = 0.1
    """Standard deviation of the entries of W^K and W^Q at the start."""
    landscape_topics: int = 100
    """T of the landscapes."""
    landscape_words: int = 300
    """v of the landscapes."""
    landscape_taus: tuple[int, ...] = (20, 40, 60, 80)
    """τ of the landscapes, rising."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "topics": 8,
        "words": 6,
        "taus": (2, 3, 4),
        "lr": 500.0,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, topics in (("taus", self.topics), ("landscape_taus", self.landscape_topics)):
            taus = getattr(self, name)
            rising = all(low < high for low, high in pairwise(taus))
            if len(taus) < 2 or not rising or not 1 < taus[0] <= taus[-1] < topics:
                raise AttnscopeError(
                    f"{name} = {taus}: expected two or more rising numbers from 2 to {topics - 1}, "
                    "fewer than there are topics."
                )

    @property
    def compared(self) -> int:
        """The τ at which other W^V are trained too."""
        return self.taus[1]

    @property
    def diagonal_case(self) -> str:
        """Name of the case with Theorem 5's W^V."""
        return f"τ = {self.compared}, diagonal W^V"

    @property
    def shuffled_case(self) -> str:
        """Name of the case whose W^V has blocks that are not the topics."""
        return f"τ = {self.compared}, shuffled W^V"

    def topic_cases(self) -> dict[int, str]:
        """Return the case of each τ with Theorem 2's W^V."""
        return {tau: f"τ = {tau}" for tau in self.taus}

    def cases(self) -> tuple[str, ...]:
        """Return one case for every τ, then the other two W^V."""
        return (*self.topic_cases().values(), self.diagonal_case, self.shuffled_case)

    def setting(self, tau: int) -> TopicSetting:
        """Return the trained setting at one τ."""
        return TopicSetting(self.topics, self.words, tau, self.p_m, self.p_c, self.p_r)

    def landscape_setting(self, tau: int, times: int = 1) -> TopicSetting:
        """Return the landscape's setting at one τ, with so many times its topics."""
        topics = times * self.landscape_topics
        return TopicSetting(topics, self.landscape_words, tau, self.p_m, self.p_c, self.p_r)

    def tau_of(self, case: str) -> int:
        """Return the τ of a case."""
        found = {name: tau for tau, name in self.topic_cases().items()}
        return found.get(case, self.compared)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return the engine; the flow's tolerance is coarse, as all runs end in a minimum."""
        if self.engine == "descent":
            return Descent(lr=self.lr)
        return Flow(rtol=1e-4, atol=1e-4, lr=self.lr, correct=self.correct)

    def build(self, case: str, seed: int) -> Problem:
        """Hold W^V at its closed form and let W^K and W^Q learn from small noise."""
        setting = self.setting(self.tau_of(case))
        population = TopicPopulation(**vars(setting))
        generator = torch.Generator().manual_seed(seed)
        model = TopicTransformer(population.vocabulary, noise=self.noise, generator=generator)
        assert model.W_V is not None
        with torch.no_grad():
            model.W_V.copy_(torch.from_numpy(self.value_matrix(case, seed)))
        model.W_V.requires_grad_(False)
        loss = PopulationObjective(population, "squared", masked_queries=False)
        return Problem(model, loss, records(self, loss, population.topic_of))

    def value_matrix(self, case: str, seed: int) -> np.ndarray:
        """Return the W^V of a case, shape ``(word, word)`` with [MASK] first."""
        setting = self.setting(self.tau_of(case))
        if case == self.diagonal_case:
            return li2023.diagonal_value_blocks(setting).matrix(setting)
        matrix = li2023.value_blocks(setting).matrix(setting)
        if case != self.shuffled_case:
            return matrix
        words = np.random.default_rng([seed, 0x5F]).permutation(len(matrix) - 1)
        order = np.concatenate([[0], 1 + words])
        return np.asarray(matrix[np.ix_(order, order)])

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict γ and μ at the end of each run, and tabulate landscapes and their minima.

        Predictions for the shuffled W^V are those for the unshuffled one: it is a control.
        """
        rows: list[tuple[float, ...]] = []
        for case, _ in self.runs():
            setting = self.setting(self.tau_of(case))
            paper, attended = (li2023.best_gamma(setting, mask) for mask in ("paper", "attended"))
            rows.append((*best_ratios(setting), paper, attended))
        gamma, mask, paper, attended = np.array(rows).T
        return xr.Dataset(
            {
                "gamma_best": ("run", gamma, {"meaning": "minimiser of the exact loss, μ free"}),
                "mask_best": ("run", mask, {"meaning": "μ that goes with it"}),
                "gamma_paper": ("run", paper, {"meaning": "minimiser if [MASK] gets nothing"}),
                "gamma_attended": ("run", attended, {"meaning": "minimiser at μ = 1"}),
            }
        ).merge(_optimum_landscapes.dataset(self))

    def claims(self) -> tuple[Claim, ...]:
        """Return what Theorems 3 and 5 say, of the exact loss and of training."""
        return _optimum_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Figs 7 and 8, the growth of γ, and training."""
        return _optimum_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate minimisers with their bounds, and the end of training."""
        return _optimum_tables.tables(self, tree)
