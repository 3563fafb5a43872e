"""A trainable query keeps the relationship, the closer the larger its initial norm (Fig 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.errors import AttnscopeError
from attnscope.models import BagAttention, KeyQuery, classifier
from attnscope.models.classifiers import Kind
from attnscope.probes import average, mean_interval, rank_correlation, relative_deviation
from attnscope.report.figure import Dots, Figure, Line, Panel
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.lu2021._topic_words import TopicWordsStudy
from attnscope.trajectory import select
from attnscope.theory import lu2021

MODELS: tuple[Kind, ...] = ("FC", "TC", "TL")
FIXED = ", fixed query"
SHOWN = 5.0
"""Where the axes of Fig 10 end."""


@dataclass(frozen=True)
class Query(TopicWordsStudy):
    """Explicit keys and a query drawn from N(0, σ²), trained with everything else.

    With a fixed query the variance would not matter; those cases are the control.
    """

    epochs: int = 5000
    query_dim: int = 15
    """d', length of keys and query."""
    query_variances: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    """σ² of the entries of the initial query."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 1, "query_variances": (0.1, 2.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        bad = [v for v in self.query_variances if not v > 0]
        if bad or len(self.query_variances) < 2:
            raise AttnscopeError(
                f"query_variances = {self.query_variances}: expected two or more numbers above 0."
            )

    def cases(self) -> tuple[str, ...]:
        """Return model and variance, and the extreme variances with a fixed query."""
        trained = [f"{kind}, σ² = {v:g}" for kind in MODELS for v in self.query_variances]
        ends = (min(self.query_variances), max(self.query_variances))
        return (*trained, *(f"FC, σ² = {v:g}{FIXED}" for v in ends))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model, one variance and one seed.

        One seed gives all variances the same direction of the query. Keys start at zero. Scores
        move at the rate lr ‖q‖², so a larger query also means a longer training.
        """
        kind = next(kind for kind in MODELS if case.startswith(kind))
        variance = float(case.removesuffix(FIXED).split("= ")[1])
        source = torch.Generator().manual_seed(seed)
        vocabulary = self.task().vocabulary
        scores = KeyQuery(
            vocabulary,
            self.query_dim,
            variance=variance,
            train_query=not case.endswith(FIXED),
            generator=source,
        )
        model = BagAttention(
            vocabulary,
            self.dim,
            classifier(kind, self.dim, self.topics, generator=source),
            scores=scores,
            std=self.variance**0.5,
            generator=torch.Generator().manual_seed(seed + 1_000_003),
        )
        return self.problem(model, self.task().sample(seed))

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict norms by Corollary 1."""
        score = tree["observables/score"]
        return xr.Dataset(
            {"norm": (score.dims, lu2021.norm_from_score(score.to_numpy(), self.m))},
            coords={"time": ("step", tree["observables/time"].to_numpy())},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what appendix B says."""
        return (
            *(self._monotone(kind) for kind in MODELS),
            *(self._approaches(kind, SHOWN) for kind in MODELS),
            *(self._approaches(kind, np.inf) for kind in MODELS),
        )

    def _monotone(self, kind: str) -> Claim:
        cases = [f"{kind}, σ² = {v:g}" for v in self.query_variances]

        def least(tree: xr.DataTree, shuffled: bool) -> np.ndarray:
            values = []
            for case in cases:
                score = select(tree, "score", case).to_numpy()
                norm = select(tree, "norm", case).to_numpy()
                if shuffled:
                    norm = np.random.default_rng(0).permuted(norm, axis=1)
                values.append(rank_correlation(score, norm, axis=1).min(axis=1))
            return np.asarray(np.min(values, axis=0))

        return Claim(
            key=f"positive-{kind}",
            sentence=f"Attn-{kind} with a trainable query: score and norm grow together, however "
            "the query is initialised.",
            source="appendix B, Fig 10",
            paper="positive relationship always preserved",
            statistic=lambda tree: least(tree, False),
            criterion=above(0.99),
            control_sentence="the same norms in a random order of time",
            control=lambda tree: least(tree, True),
            measure="smallest rank correlation over training, of any word and variance",
        )

    def _approaches(self, kind: str, reach: float) -> Claim:
        low, high = min(self.query_variances), max(self.query_variances)
        shown = reach < np.inf

        def shrinks(tree: xr.DataTree, name: str, suffix: str) -> np.ndarray:
            far, near = (f"{name}, σ² = {v:g}{suffix}" for v in (low, high))
            return distance(tree, near, reach) / distance(tree, far, reach)

        return Claim(
            key=f"approaches-{kind}" + ("" if shown else "-to-the-end"),
            sentence=f"Attn-{kind}: the larger the initial query, the closer the curve is to "
            + (f"eq (10), up to a score of {reach:g}." if shown else "eq (10), to the end."),
            source="appendix B, Fig 10" + ("" if shown else ", which ends at a score of 5"),
            paper="approaches the theoretical curve",
            statistic=lambda tree: shrinks(tree, kind, ""),
            criterion=below(0.5),
            control_sentence="Attn-FC with a fixed query, for which the variance only sets the "
            "clock",
            control=lambda tree: shrinks(tree, "FC", FIXED),
            measure=f"mean relative deviation at σ² = {high:g} over that at σ² = {low:g}",
            reason="training keeps ‖q‖² - Σ‖κ_w‖² constant, so while n topic words reach the score "
            "s the query grows by about n s²/‖q‖²: also a large query does not stay what it was.",
        )

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 10, and the deviation against the variance."""
        panels = []
        for kind in MODELS:
            for variance in self.query_variances:
                case = f"{kind}, σ² = {variance:g}"
                score = select(tree, "score", case).isel(word=0).to_numpy()
                norm = select(tree, "norm", case).isel(word=0).to_numpy()
                grid = np.linspace(0, max(0.1, float(np.nanmax(score))) * 1.05, 100)
                lines = [
                    Line(score[i], norm[i], f"seed {i}", i, thin=True) for i in range(len(score))
                ]
                curve = lu2021.norm_from_score(grid, self.m)
                panels.append(
                    Panel(
                        f"Attn-{case}",
                        "score of a topic word",
                        "norm of its embedding",
                        (*lines, Line(grid, curve, "Corollary 1", theory=True)),
                    )
                )
        dots = []
        for i, kind in enumerate(MODELS):
            values = np.stack(
                [distance(tree, f"{kind}, σ² = {v:g}", SHOWN) for v in self.query_variances], axis=1
            )
            mean, low, high = mean_interval(values)
            x = np.asarray(self.query_variances)
            dots.append(Dots(x, mean, low, high, f"Attn-{kind}", i))
        return [
            Figure(
                "fig10-query",
                "With a trainable query",
                f"Embedding norm against score of one topic word, {self.seeds} seeds, rows by "
                "classifier, columns by the variance σ² of the initial query (Lu 2021, Fig 10).",
                tuple(panels),
                columns=len(self.query_variances),
            ),
            Figure(
                "deviation",
                "The larger the query, the closer to the closed form",
                "Mean relative deviation from eq (10) while the norm is above 0.3 and the score "
                f"up to {SHOWN:g}, all topic words; mean over {self.seeds} seeds with 95 % "
                "intervals.",
                (
                    Panel(
                        "distance to the closed form",
                        "variance σ² of the initial query",
                        "mean relative deviation",
                        tuple(dots),
                        xscale="log",
                        yscale="log",
                    ),
                ),
                columns=1,
            ),
        ]

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the deviation, case by case."""
        rows = tuple(
            (
                case,
                float(distance(tree, case, SHOWN).mean()),
                float(distance(tree, case).mean()),
                float(select(tree, "score", case).isel(step=-1).mean()),
                float(select(tree, "loss", case).isel(step=-1).mean()),
            )
            for case in self.cases()
        )
        columns = (
            "case",
            "mean relative deviation up to score 5",
            "mean relative deviation",
            "mean topic score",
            "loss (nats)",
        )
        return [Table("deviation", f"Distance to eq (10), {self.seeds} seeds", columns, rows)]


def distance(tree: xr.DataTree, case: str, reach: float = np.inf) -> np.ndarray:
    """Return the mean relative deviation from eq (10), per seed.

    Means are over topic words and record points with a norm above 0.3 and a score up to ``reach``.
    """
    norm = select(tree, "norm", case).to_numpy()
    predicted = select(tree, "norm", case, "theory").to_numpy()
    deviation = relative_deviation(norm, predicted, 0.3)
    deviation[select(tree, "score", case).to_numpy() > reach] = np.nan
    return average(deviation, axis=(1, 2))
