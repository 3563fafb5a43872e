"""A trainable query keeps the relationship, the closer the larger its initial norm (Fig 10)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Positive
from attnscope.claims import Claim, above, below
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import KeyQuery
from attnscope.probes import mean_interval
from attnscope.report import Dots, Figure, Panel, Table, ends
from attnscope.studies.lu2021._topic_words import (
    MODELS,
    TopicWordsStudy,
    least_correlation,
    norm_over_score,
)
from attnscope.theory import lu2021
from attnscope.trajectory import Readings

FIXED = ", fixed query"
SHOWN = 5.0
"""Where the axes of Fig 10 end."""


@dataclass(frozen=True)
class Query(TopicWordsStudy):
    """Explicit keys and a query drawn from N(0, σ²), trained with everything else.

    With a fixed query the variance would not matter; those cases are the control.
    """

    query_dim: Count = 15
    """d', length of keys and query."""
    query_variances: tuple[Positive, ...] = (0.1, 0.5, 1.0, 2.0)
    """σ² of the entries of the initial query."""

    quick = {"seeds": 1, "query_variances": (0.1, 2.0)}

    def check(self) -> None:
        """Check that there are variances to compare, and room for the topics."""
        super().check()
        if len(self.query_variances) < 2:
            raise AttnscopeError(
                f"query_variances = {self.query_variances}: expected two or more numbers above 0."
            )

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest variance."""
        return min(self.query_variances), max(self.query_variances)

    @property
    def cases(self) -> tuple[str, ...]:
        """Model and variance, and the extreme variances with a fixed query."""
        trained = (named(kind, variance) for kind in MODELS for variance in self.query_variances)
        return (*trained, *(named("FC", variance, FIXED) for variance in self.extremes))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model, one variance and one seed.

        One seed gives all variances the same direction of the query. Keys start at zero. Scores
        move at the rate lr ‖q‖², so a larger query also means a longer training.
        """
        kind = next(kind for kind in MODELS if case.startswith(kind))
        scores = partial(
            KeyQuery,
            self.task.vocabulary,
            self.query_dim,
            variance=float(case.removesuffix(FIXED).split("= ")[1]),
            train_query=not case.endswith(FIXED),
        )
        model = self.model(kind, seed, scores=lambda source: scores(generator=source))
        return self.problem(model, self.task.sample(seed))

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict norms by Corollary 1."""
        return {"norm": (run.score.dims, lu2021.norm_from_score(run.score, self.task.m))}

    def claims(self) -> list[Claim]:
        """Return what appendix B says."""
        low, high = self.extremes

        def least(run: Readings, given: tuple[str, bool]) -> np.ndarray:
            kind, shuffled = given
            cases = [run.of(named(kind, variance)) for variance in self.query_variances]
            return np.min([least_correlation(case, shuffled) for case in cases], axis=0)

        def shrinks(run: Readings, given: tuple[str, str, float]) -> xr.DataArray:
            kind, suffix, reach = given
            far, near = (distance(run.of(named(kind, v, suffix)), reach) for v in (low, high))
            return near / far

        positive = [
            Claim(
                f"positive-{kind}",
                f"Attn-{kind} with a trainable query: score and norm grow together, however the "
                "query is initialised.",
                least,
                (kind, False),
                above(0.99),
                ((kind, True), "the same norms in a random order of time"),
                "appendix B, Fig 10",
                "positive relationship always preserved",
                "smallest rank correlation over training, of any word and variance",
            )
            for kind in MODELS
        ]
        approaches = [
            Claim(
                f"approaches-{kind}{key}",
                f"Attn-{kind}: the larger the initial query, the closer the curve is to "
                f"eq (10), {until}.",
                shrinks,
                (kind, "", reach),
                below(0.5),
                (
                    ("FC", FIXED, reach),
                    "Attn-FC with a fixed query, for which the variance only sets the clock",
                ),
                f"appendix B, Fig 10{end}",
                "approaches the theoretical curve",
                f"mean relative deviation at σ² = {high:g} over that at σ² = {low:g}",
                reason="training keeps ‖q‖² - Σ‖κ_w‖² constant, so while n topic words reach the "
                "score s the query grows by about n s²/‖q‖²: also a large query does not stay what "
                "it was.",
            )
            for reach, key, until, end in (
                (SHOWN, "", f"up to a score of {SHOWN:g}", ""),
                (np.inf, "-to-the-end", "to the end", f", which ends at a score of {SHOWN:g}"),
            )
            for kind in MODELS
        ]
        return positive + approaches

    def figures(self, run: Readings) -> list[Figure]:
        """Draw Fig 10, and the deviation against the variance."""
        variances, panels, dots = self.query_variances, [], []
        for i, kind in enumerate(MODELS):
            own = [named(kind, variance) for variance in variances]
            for case in own:
                marks = norm_over_score(run.of(case), self.task.m, "Corollary 1")
                xlabel, ylabel = "score of a topic word", "norm of its embedding"
                panels.append(Panel(f"Attn-{case}", xlabel, ylabel, marks))
            interval = mean_interval(distance(run, SHOWN).sel(case=own).to_numpy(), axis=1)
            dots.append(Dots(np.asarray(variances), *interval, f"Attn-{kind}", i))
        deviation = Panel(
            "distance to the closed form",
            "variance σ² of the initial query",
            "mean relative deviation",
            tuple(dots),
            xscale="log",
            yscale="log",
        )
        return [
            Figure(
                "fig10-query",
                "With a trainable query",
                f"Embedding norm against score of one topic word, {self.seeds} seeds, rows by "
                "classifier, columns by the variance σ² of the initial query (Lu 2021, Fig 10).",
                tuple(panels),
                columns=len(variances),
            ),
            Figure(
                "deviation",
                "The larger the query, the closer to the closed form",
                "Mean relative deviation from eq (10) while the norm is above 0.3 and the score "
                f"up to {SHOWN:g}, all topic words; mean over {self.seeds} seeds with 95 % "
                "intervals.",
                (deviation,),
                columns=1,
            ),
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the deviation, case by case."""
        columns = {
            "mean relative deviation up to score 5": distance(run, SHOWN),
            "mean relative deviation": distance(run),
            "mean topic score": run.score,
            "loss (nats)": run.loss,
        }
        title = f"Distance to eq (10), {self.seeds} seeds"
        return [ends(run, key="deviation", title=title, more=columns)]


def named(kind: str, variance: float, suffix: str = "") -> str:
    """Return the case of a model and a variance of the initial query."""
    return f"{kind}, σ² = {variance:g}{suffix}"


def distance(run: Readings, reach: float = np.inf) -> xr.DataArray:
    """Return the mean relative deviation from eq (10), per seed.

    Means are over topic words and record points with a norm above 0.3 and a score up to ``reach``.
    """
    deviation = abs(run.norm - run.theory.norm) / run.norm
    return deviation.where((run.norm > 0.3) & (run.score <= reach)).mean(("step", "word"))
