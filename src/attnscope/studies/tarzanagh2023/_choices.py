"""What the studies of chosen tokens share: runs over decades, and how a choice is judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Attempts, Flow, Logarithmic, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.token_selector import TokenSelector, selector_loss
from attnscope.tasks.token_choice import Choices, TokenChoice
from attnscope.theory import tarzanagh2023
from attnscope.trajectory import Readings

CITATION = (
    "Ataee Tarzanagh, Li, Zhang, Oymak. Max-Margin Token Selection in Attention Mechanism. "
    "NeurIPS 2023. Ataee Tarzanagh, Li, Thrampoulidis, Oymak. Transformers as Support Vector "
    "Machines. 2023."
)
FIRST = 1e-2
"""The first record point after 0."""
HARD = 0.99
"""Attention of every input's first token above this is saturated."""


@dataclass(frozen=True)
class ChoiceStudy(Study):
    """A head with a fixed value vector learns which token of each input to look at."""

    training: Flow = Flow(until=1e10, rtol=1e-4, atol=1e-4)
    per_decade: Count = 4
    """Record points in a decade of time."""
    most_steps: Several = 600
    """A run that needs more steps approaches a finite place and does not saturate."""
    task: TokenChoice = TokenChoice()

    citation = CITATION

    def check(self) -> None:
        """Check that there is a decade of time to record."""
        if self.training.lr is not None or self.end < 10 * FIRST:
            raise AttnscopeError(
                f"training = {self.training}: expected a flow without a learning rate, until a "
                f"time of {10 * FIRST:g} or more."
            )

    def choices(self, case: str, seed: int) -> Choices:
        """Return the data of a run."""
        return self.task.sample(seed)

    def model(self, case: str, seed: int) -> TokenSelector:
        """Return the model of a run; from zero unless a case says otherwise."""
        data = self.choices(case, seed)
        return TokenSelector(data.features, data.scores, np.zeros(data.features.shape[-1]))

    def loss_of(self, case: str) -> tarzanagh2023.Loss:
        """Return the loss of a case."""
        return "logistic"

    def shape(self) -> tuple[int, int, int]:
        """Return inputs, tokens and entries of the largest run; others are padded with NaN."""
        shapes = [self.choices(case, 0).features.shape for case in self.cases]
        inputs, tokens, entries = np.max(shapes, axis=0)
        return int(inputs), int(tokens), int(entries)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case."""
        inputs, tokens, entries = self.shape()
        loss = self.loss_of(case)

        def padded(values: Tensor, *shape: int) -> Tensor:
            whole = torch.full(shape, torch.nan, dtype=torch.float64)
            whole[tuple(slice(n) for n in values.shape)] = values
            return whole

        curves = (
            Observable("loss", lambda m: selector_loss(m, loss), (), "", f"{loss} loss"),
            Observable(
                "weight",
                lambda m: padded(selector(m).parameters_of_logits(), entries),
                ("entry",),
                meaning="θ: p, or W row by row",
            ),
            Observable(
                "attention",
                lambda m: padded(selector(m).attention(), inputs, tokens),
                ("input", "token"),
            ),
        )
        decades = np.log10(self.end / FIRST)
        schedule = Logarithmic(round(self.per_decade * decades) + 2, FIRST)
        stop = (Attempts(self.most_steps, "attention did not saturate"),)
        return Problem(
            self.model(case, seed),
            lambda m: selector_loss(m, loss),
            [Record(curves, schedule)],
            stop,
        )

    def weights(self, run: Readings, case: str, seed: int, at: float | None = None) -> np.ndarray:
        """Return θ at the last record point, or at the last one up to a time."""
        found = run.of(case).weight.sel(seed=seed)
        known = found["time"].to_numpy() <= (np.inf if at is None else at * (1 + 1e-9))
        values = found.to_numpy()[known, : self.choices(case, seed).features.shape[-1]]
        return np.asarray(values[np.isfinite(values).all(axis=1)][-1])

    def table_of(self, run: Readings, *names: str) -> dict[str, xr.DataArray]:
        """Return empty arrays along case and seed."""
        like = run.loss.isel(step=0, drop=True)
        return {name: xr.full_like(like, np.nan, dtype=float) for name in names}

    def random(self, run: Readings, case: str) -> np.ndarray:
        """Return whether tokens chosen at random are locally optimal, for each seed."""
        out = []
        for seed in run.loss["seed"].to_numpy():
            data = self.choices(case, int(seed))
            source = np.random.default_rng(int(seed) + 1_000_003)
            chosen = source.integers(0, data.scores.shape[1], len(data.scores))
            svm = tarzanagh2023.attention_svm(data.features, chosen)
            out.append(float(tarzanagh2023.is_locally_optimal(data.scores, chosen, svm)))
        return np.array(out)


@dataclass(frozen=True, eq=False)
class Judged:
    """A choice of tokens and what theory says of it."""

    data: Choices
    chosen: np.ndarray
    svm: tarzanagh2023.AttentionSvm

    @property
    def locally(self) -> bool:
        """Whether it is locally optimal."""
        return tarzanagh2023.is_locally_optimal(self.data.scores, self.chosen, self.svm)

    @property
    def globally(self) -> bool:
        """Whether every input's best token is chosen."""
        return bool((self.chosen == tarzanagh2023.optimal_tokens(self.data.scores)).all())

    def swapped(self) -> np.ndarray:
        """Return the direction of the SVM with one token swapped; NaN if there is none."""
        if self.data.scores.shape[1] < 2:
            return np.full_like(self.svm.direction, np.nan)
        other = tarzanagh2023.swapped(self.data.scores, self.chosen)
        return tarzanagh2023.attention_svm(self.data.features, other).direction


def judged(data: Choices, weights: np.ndarray) -> Judged:
    """Judge the choice that θ makes."""
    chosen = tarzanagh2023.chosen_tokens(data.features, weights)
    return Judged(data, chosen, tarzanagh2023.attention_svm(data.features, chosen))


def correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of vectors along the last axis; NaN where one is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
        return np.asarray((one * other).sum(axis=-1) / size)


def selector(module: nn.Module) -> TokenSelector:
    """Return the module as what it is."""
    assert isinstance(module, TokenSelector)
    return module
