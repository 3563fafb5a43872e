"""The runs of ``li2023.optimum``: W^V is held at a closed form, and attention is trained."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.engines import Descent, Final, Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicTransformer
from attnscope.models.topic_objective import PopulationObjective
from attnscope.probes.topics.topic_attention import attention_ratios
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023.optimum.claims import claims
from attnscope.studies.li2023.optimum.figures import figures, tables
from attnscope.studies.li2023.optimum.landscapes import landscapes
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting
from attnscope.trajectory import Readings


@dataclass(frozen=True)
class Optimum(TopicDocumentsStudy):
    """Stage 2 with W^V held at Theorem 2's blocks: the exact loss over attention, and training.

    Landscapes are of the exact finite loss at the size of the paper's Figs 7 and 8. Training is on
    the whole population at a size that can be trained. Two more cases hold W^V at Theorem 5's
    diagonal, and at blocks that are not the topics. The flow's tolerance is coarse, as all runs end
    in a minimum.
    """

    training: Flow | Descent = Flow(lr=1000.0, epochs=2000, rtol=1e-4, atol=1e-4)
    points: Several = 41
    taus: tuple[int, ...] = (2, 3, 4, 5, 6)
    """Numbers τ of topics in a document that are trained on, rising."""
    noise: Positive = 0.1
    """Standard deviation of the entries of W^K and W^Q at the start."""
    landscape_topics: Count = 100
    """T of the landscapes."""
    landscape_words: Count = 300
    """v of the landscapes."""
    landscape_taus: tuple[int, ...] = (20, 40, 60, 80)
    """τ of the landscapes, rising."""

    quick: ClassVar = {"seeds": 2, "topics": 8, "words": 6, "taus": (2, 3, 4), "lr": 500.0}
    labels: ClassVar = {
        "ratio": ("alpha", "beta", "gamma", "mask"),
        "value": ("blocks", "diagonal"),
        "mask": ("paper", "attended"),
        "pair": ("alpha", "beta"),
    }
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check that numbers of topics rise, and are fewer than there are."""
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

    @property
    def topic_cases(self) -> dict[str, int]:
        """The cases with Theorem 2's W^V, and their τ."""
        return {f"τ = {tau}": tau for tau in self.taus}

    @property
    def cases(self) -> tuple[str, ...]:
        """One case for every τ, then the other two W^V."""
        return (*self.topic_cases, self.diagonal_case, self.shuffled_case)

    def setting(self, case: str) -> TopicSetting:
        """Return the setting that a case is trained in."""
        tau = self.topic_cases.get(case, self.compared)
        return TopicSetting(self.topics, self.words, tau, self.p_m, self.p_c, self.p_r)

    def landscape_setting(self, tau: int, times: int = 1) -> TopicSetting:
        """Return the landscape's setting at one τ, with so many times its topics."""
        topics = times * self.landscape_topics
        return TopicSetting(topics, self.landscape_words, tau, self.p_m, self.p_c, self.p_r)

    def build(self, case: str, seed: int) -> Problem:
        """Hold W^V at its closed form and let W^K and W^Q learn from small noise."""
        population = TopicPopulation(**vars(self.setting(case)))
        generator = torch.Generator().manual_seed(seed)
        model = TopicTransformer(population.vocabulary, noise=self.noise, generator=generator)
        assert model.W_V is not None
        with torch.no_grad():
            model.W_V.copy_(torch.from_numpy(self.value_matrix(case, seed)))
        model.W_V.requires_grad_(False)
        loss = PopulationObjective(population, "squared", masked_queries=False)

        def ratios(model: nn.Module) -> Tensor:
            scores = model.score_matrix() / model.attention_dim**0.5  # type: ignore[operator]
            return attention_ratios(scores, population.topic_of)

        def spread(model: nn.Module) -> Tensor:
            gamma = ratios(model)[2]
            return gamma.std() / gamma.mean()

        curve = (
            Observable(
                "ratios",
                lambda model: ratios(model).mean(1),
                ("ratio",),
                meaning="α, β, γ, μ: means over words",
            ),
            Observable(
                "spread", spread, meaning="standard deviation of γ over words, over its mean"
            ),
            Observable("loss", lambda m: loss(m), meaning="squared loss where a word is seen"),  # type: ignore[arg-type]
        )
        matrix = Observable(
            "attention",
            lambda model: model.attention_by_word(),  # type: ignore[operator]
            ("key", "query"),
            meaning="softmax of the scores over keys, as in a document that holds every word once",
        )
        records = [Record(curve, Linear(self.points)), Record((matrix,), Final(), "end")]
        return Problem(model, loss, records)

    def value_matrix(self, case: str, seed: int) -> np.ndarray:
        """Return the W^V of a case, shape ``(word, word)`` with [MASK] first."""
        setting = self.setting(case)
        if case == self.diagonal_case:
            return li2023.diagonal_value_blocks(setting).matrix(setting)
        matrix = li2023.value_blocks(setting).matrix(setting)
        if case != self.shuffled_case:
            return matrix
        words = np.random.default_rng([seed, 0x5F]).permutation(len(matrix) - 1)
        order = np.concatenate([[0], 1 + words])
        return np.asarray(matrix[np.ix_(order, order)])

    def theory(self, run: Readings) -> xr.Dataset:
        """Predict γ and μ at the end of each run, and tabulate landscapes and their minima.

        Predictions for the shuffled W^V are those for the unshuffled one: it is a control.
        """
        settings = [self.setting(case) for case in self.cases]
        gamma, mask = np.array([li2023.best_ratios(setting) for setting in settings]).T
        paper, attended = (
            [li2023.best_gamma(setting, mask) for setting in settings]
            for mask in ("paper", "attended")
        )
        return landscapes(self).assign(
            gamma_best=("case", gamma, {"meaning": "minimiser of the exact loss, μ free"}),
            mask_best=("case", mask, {"meaning": "μ that goes with it"}),
            gamma_paper=("case", paper, {"meaning": "minimiser if [MASK] gets nothing"}),
            gamma_attended=("case", attended, {"meaning": "minimiser at μ = 1"}),
        )
