"""When attention comes under SGD, said from labelled text alone, against two models trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Natural, Positive
from attnscope.claims import Claim
from attnscope.engines import Descent, Given, Observable, Record, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.prediction.pace import MOMENTS, Plan, system_curve, system_plan
from attnscope.probes.attention_shape import relative_entropy
from attnscope.report import Figure, Line, Panel, Rule, Table
from attnscope.studies.predict._timing import (
    HIGH,
    LOW,
    SAID,
    TELLERS,
    Trained,
    when_claims,
    when_dataset,
    when_table,
)
from attnscope.studies.predict.labelled.compared import bags_of
from attnscope.studies.predict.labelled.models import LU, MODELS, look, loss_of, made
from attnscope.studies.predict.labelled.sets import PUBLISHED, role, short, texts_of
from attnscope.tasks.length_batches import LengthBatches
from attnscope.trajectory import Readings

POINTS = 36
DRAWN = 6
"""Sets that are drawn, of each model."""


@dataclass(frozen=True)
class When(Study):
    """Say from the texts at which step attention starts and is half way; then train and see.

    The bag of words with attention of Lu 2021 and the LSTM with attention of Snell 2021, by
    stochastic gradient descent. Adam is in predict.labelled.
    """

    training: Steps = Steps(steps=2400, batch=32)
    sets: tuple[str, ...] = PUBLISHED
    """Labelled sets: keys of `attnscope data`, or tables; classes may follow in brackets."""
    seeds: Count = 3
    """Trainings of each model on each set."""
    models: tuple[str, ...] = MODELS
    """What is trained: Snell 2021, an LSTM with attention; Lu 2021, a bag of words with it."""
    lu_rate: Positive = 12.5
    """Learning rate of the bag of words: its gradients are as small as the shares of words."""
    snell_rate: Positive = 1.0
    """Learning rate of the LSTM."""
    embedding: Count = 50
    """Length of embeddings."""
    hidden: Count = 64
    """Length of the LSTM's state in one direction."""
    evaluated: Count = 400
    """Held-out texts that attention is read on, at most."""
    limit: Count = 60
    """Words of a text at most; longer ones are cut."""
    train_most: Natural = 6000
    """Training texts at most; 0 for all."""

    citation = "The two-variable system: docs/predict.md; models: Lu 2021, Snell 2021."
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "sets": ("sst2",),
        "models": (LU,),
        "evaluated": 200,
        "train_most": 3000,
    }
    labels: ClassVar = {"teller": TELLERS, "moment": MOMENTS}

    def check(self) -> None:
        """Refuse sets of one name, and models that are not there."""
        names = [short(name) for name in self.sets]
        twice = [name for name in names if names.count(name) > 1]
        if twice or not names:
            said = f"'{twice[0]}' is there twice" if twice else "there is none"
            raise AttnscopeError(f"sets = {self.sets}: {said}. Expected one or more, each once.")
        if not self.models or any(model not in MODELS for model in self.models):
            raise AttnscopeError(
                f"models = {self.models}: expected one or both of {', '.join(MODELS)}."
            )

    @property
    def trained(self) -> tuple[Trained, ...]:
        """Every case with its set and its training."""
        return tuple(
            Trained(f"{short(name)}, {model}", name, role(name), self.plan(model))
            for model in self.models
            for name in self.sets
        )

    @property
    def cases(self) -> tuple[str, ...]:
        """Set and model of each case: ``sst2, Lu 2021``."""
        return tuple(one.case for one in self.trained)

    def plan(self, model: str) -> Plan:
        """Return how a model is trained."""
        rate = self.lu_rate if model == LU else self.snell_rate
        batch = self.training.batch or 32
        return Plan(model, "SGD", rate, self.training.steps, batch, self.embedding)

    def departures(self) -> str:
        """There is no paper to depart from."""
        return ""

    def introduction(self) -> str:
        """Say what was trained on what."""
        return (
            f"{len(self.runs())} runs: {' and '.join(self.models)} on {len(self.sets)} sets, "
            f"{self.seeds} seeds each, {self.describe()} of SGD."
        )

    def engine(self, case: str, seed: int) -> Descent:
        """Return SGD on batches that are numbered from 0 and served in order."""
        plan = self.trained[self.cases.index(case)].plan
        steps = self.training.steps
        return Descent(
            lr=plan.rate, batch_size=1, samples=steps + 1, seed=seed, tick=1.0, shuffle=False
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; a batch is a function of seed and number."""
        one = self.trained[self.cases.index(case)]
        data, kind = texts_of(one.name, self.evaluated, self.limit, self.train_most), one.plan.model
        model = made(kind, data, seed, embedding=self.embedding, hidden=self.hidden, glove="none")
        size = min(one.plan.batch, len(data.train))
        batches, loss = LengthBatches(data.train.lengths, size, seed), loss_of(kind, data.train)
        seen: list[float] = []

        def concentrated(model: nn.Module) -> Tensor:
            weights, accuracy = look(model, data.dev, self.evaluated, self.limit + 2)
            seen[:] = [accuracy]
            return torch.tensor(concentration_of(weights.numpy().astype(float)))

        curves = (
            Observable("concentration", concentrated, (), "", "mean of 1 - H(α)/ln L, held-out"),
            Observable("accuracy", lambda _: torch.tensor(seen[0]), (), "", "held-out accuracy"),
        )
        torch.manual_seed(seed)
        return Problem(
            model,
            lambda model, number: loss(model, batches.rows(int(number[0]))),
            [Record(curves, Given(self.read_at))],
        )

    @property
    def read_at(self) -> tuple[int, ...]:
        """Steps after which models are read, denser at the start."""
        steps = self.training.steps
        spaced = np.geomspace(max(1.0, steps / 200), steps, POINTS)
        return tuple(sorted({0, *(round(float(step)) for step in spaced)}))

    def theory(self, run: Readings) -> xr.Dataset:
        """Say when attention comes, and hold it against every run."""
        return self.timed(run)

    def timed(self, run: Readings) -> xr.Dataset:
        """Return when attention came, said and seen."""
        return when_dataset(
            self.trained,
            lambda name: bags_of(texts_of(name, self.evaluated, self.limit, self.train_most)),
            lambda case: run.of(case).concentration,
        )

    def claims(self) -> list[Claim]:
        """Half way is where it was said."""
        return when_claims(self.trained)

    def printed(self, run: Readings) -> list[Table]:
        """Print steps said and measured."""
        return [when_table(self.trained, run)]

    def tables(self, run: Readings) -> list[Table]:
        """Steps said and measured."""
        return [when_table(self.trained, run)]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw attention over training, with what was said of it."""
        panels: list[Panel] = []
        for model in self.models:
            own = [one for one in self.trained if one.plan.model == model][:DRAWN]
            panels.extend(self._panel(one, run) for one in own)
        return [
            Figure(
                "when",
                "When attention comes: said, and seen",
                "Mean of 1 - H(α)/ln L over held-out texts, one curve a seed: 0 is uniform "
                "attention, 1 is attention to one word. Dashed, for the bag of words: the "
                "two-variable system. Upright: the step at which it was said to be half way, and "
                "the ends of its 95 % interval.",
                tuple(panels),
                columns=2,
            )
        ]

    def _panel(self, one: Trained, run: Readings) -> Panel:
        curve = run.of(one.case).concentration
        steps = curve["step"].to_numpy().astype(float)
        marks: list[Any] = [
            Line(steps, row, "trained" if not i else "", 0, thin=True)
            for i, row in enumerate(curve.transpose("seed", "step").to_numpy())
        ]
        if one.plan.model == LU:
            data = texts_of(one.name, self.evaluated, self.limit, self.train_most)
            at, said = system_curve(bags_of(data), system_plan(one.plan))
            marks.append(Line(at, said, "two-variable system", theory=True))
        told = run.theory.told.sel(case=one.case).isel(seed=0, moment=1).to_numpy()
        for who, label in ((SAID, "half way, said"), (LOW, ""), (HIGH, "")):
            step = float(told[TELLERS.index(who)])
            if step <= steps[-1]:
                marks.append(Rule(step, label, vertical=True))
        return Panel(one.case, "step", "concentration of attention", tuple(marks))


def concentration_of(weights: np.ndarray) -> float:
    """Return the mean of 1 - H(α)/ln L over texts ``(text, position)``, NaN where no word is."""
    mask = ~np.isnan(weights)
    rows = mask.sum(axis=1) > 0
    filled = np.nan_to_num(weights[rows])[:, None, None]
    return 1 - float(relative_entropy(filled, mask[rows][:, None])[0])
