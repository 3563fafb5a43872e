"""The spec of the study, its runs, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Natural
from attnscope.engines import Adam, Descent, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.prediction.pace import MOMENTS, Plan
from attnscope.report import Table
from attnscope.studies.predict._timing import TELLERS, Trained, when_dataset, when_table
from attnscope.studies.predict.labelled.claims import claims_of
from attnscope.studies.predict.labelled.compared import (
    MEASURES,
    PREDICTORS,
    bags_of,
    compared,
)
from attnscope.studies.predict.labelled.figures import figures_of
from attnscope.studies.predict.labelled.models import LU, MODELS, look, loss_of, made
from attnscope.studies.predict.labelled.sets import PUBLISHED, padded, role, sequences, short
from attnscope.studies.predict.labelled.tables import (
    concentration,
    summary_table,
    tables_of,
)
from attnscope.tasks.length_batches import LengthBatches
from attnscope.tasks.word_sequences import WordSequences
from attnscope.trajectory import Readings

SHARES = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.2, 0.25, 0.3),
    *(0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.67, 0.75, 0.83, 0.92, 1.0),
)
"""Parts of the training after which models are read: close enough to say when attention came."""
HIDDEN, UNKNOWN = 64, "an optimizer at a size that was not measured"


@dataclass(frozen=True)
class Labelled(Study):
    """Predict attention from labelled texts alone, then train two models and see where they look.

    A set is a key of the catalogue or a table of your own; two of its classes are named in
    brackets, as in ag_news[World,Business], and are the two largest unless they are.
    """

    training: Adam = Adam(rate=4e-3, steps=1200, batch=32)
    sets: tuple[str, ...] = PUBLISHED
    """Labelled sets: keys of `attnscope data`, or tables; classes may follow in brackets."""
    seeds: Count = 3
    """Trainings of each model on each set."""
    models: tuple[str, ...] = MODELS
    """What is trained: Snell 2021, an LSTM with attention; Lu 2021, a bag of words with it."""
    embedding: Count = 50
    """Length of embeddings."""
    hidden: Count = HIDDEN
    """Length of the LSTM's state in one direction."""
    evaluated: Count = 400
    """Held-out texts that attention is read on, at most."""
    limit: Count = 60
    """Words of a text at most; longer ones are cut."""
    train_most: Natural = 6000
    """Training texts at most; 0 for all."""
    glove: str = "none"
    """File of GloVe vectors that embeddings start from; none unless given, empty for those below
    the data folder."""

    citation = "Predictor, sets and criteria: docs/predict.md."
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "sets": ("sst2",),
        "steps": 400,
        "hidden": 32,
        "evaluated": 200,
        "train_most": 3000,
    }
    labels: ClassVar = {
        "predictor": PREDICTORS,
        "measure": MEASURES,
        "teller": TELLERS,
        "moment": MOMENTS,
    }
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Refuse sets of one name, and models that are not there."""
        names = [short(name) for name in self.sets]
        twice = [name for name in names if names.count(name) > 1]
        if twice or not names:
            said = f"'{twice[0]}' is there twice" if twice else "there is none"
            raise AttnscopeError(f"sets = {self.sets}: {said}. Expected one or more, each once.")
        unknown = [model for model in self.models if model not in MODELS]
        if unknown or not self.models:
            raise AttnscopeError(
                f"models = {self.models}: expected one or both of {', '.join(MODELS)}."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """Set and model of each case: ``sst2, Snell 2021``."""
        return tuple(f"{short(name)}, {model}" for model in self.models for name in self.sets)

    @property
    def trained(self) -> tuple[Trained, ...]:
        """Every case with its set and its training."""
        rate, batch = self.training.rate, self.training.batch or 32
        steps, dim = self.training.steps, self.embedding
        # Times of the LSTM were measured at one size, from random embeddings.
        asked = (self.hidden, self.glove) == (HIDDEN, "none")
        return tuple(
            Trained(
                f"{short(name)}, {model}",
                name,
                role(name),
                Plan(model, "Adam" if model == LU or asked else UNKNOWN, rate, steps, batch, dim),
            )
            for model in self.models
            for name in self.sets
        )

    def part(self, case: str) -> tuple[WordSequences, str]:
        """Return the texts and the model of a case."""
        at = self.cases.index(case)
        return self.text(self.sets[at % len(self.sets)]), self.models[at // len(self.sets)]

    def text(self, name: str) -> WordSequences:
        """Return a set as words."""
        return sequences(self, name)

    @property
    def width(self) -> int:
        """Positions of a text at most, its ends counted."""
        return self.limit + 2

    def departures(self) -> str:
        """There is no paper to depart from."""
        return ""

    def introduction(self) -> str:
        """Say what was trained on what."""
        return (
            f"{len(self.runs())} runs: {' and '.join(self.models)} on {len(self.sets)} sets, "
            f"{self.seeds} seeds each, {self.describe()}; embeddings start from "
            f"{'random numbers' if self.glove == 'none' else 'GloVe'}."
        )

    def engine(self, case: str, seed: int) -> Descent:
        """Return Adam on batches that are numbered from 0 and served in order."""
        return Descent(
            lr=self.training.rate,
            optimizer="adam",
            batch_size=1,
            samples=self.training.steps + 1,
            seed=seed,
            tick=1.0,
            shuffle=False,
            **self.training.options(),
        )

    @property
    def end(self) -> float:
        """The end of a run, in steps."""
        return float(self.training.steps)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; a batch is a function of seed and number."""
        data, kind = self.part(case)
        model = made(
            kind, data, seed, embedding=self.embedding, hidden=self.hidden, glove=self.glove
        )
        size = min(self.training.batch or len(data.train), len(data.train))
        batches, loss = LengthBatches(data.train.lengths, size, seed), loss_of(kind, data.train)
        torch.manual_seed(seed)
        return Problem(
            model,
            lambda model, number: loss(model, batches.rows(int(number[0]))),
            self._records(data),
        )

    def _records(self, data: WordSequences) -> list[Record]:
        seen: list[float] = []

        def attention(model: nn.Module) -> Tensor:
            weights, accuracy = look(model, data.dev, self.evaluated, self.width)
            seen[:] = [accuracy]
            return weights

        found = (
            Observable("alpha", attention, ("text", "position"), "", "attention, held-out texts"),
            Observable(
                "accuracy", lambda _: torch.tensor(seen[0]), (), "", "accuracy, held-out texts"
            ),
        )
        steps = sorted({round(share * self.training.steps) for share in SHARES})
        return [Record(found, Given(tuple(steps)))]

    def truth(self) -> xr.Dataset:
        """Return the held-out texts, word by word."""
        texts = [self.text(name) for name in self.sets]
        ids = [padded(each.dev.ids, self.evaluated, self.width) for each in texts]
        longest = max(len(each.words) for each in texts)
        words = [[*each.words, *[""] * (longest - len(each.words))] for each in texts]
        labels = [
            np.pad(each.dev.labels, (0, self.evaluated - len(each.dev)), constant_values=-1)
            for each in texts
        ]
        return xr.Dataset(
            {
                "ids": (("set", "text", "position"), np.stack(ids)),
                "label": (("set", "text"), np.stack(labels)),
                "words": (("set", "id"), np.array(words, dtype=object)),
                "train": ("set", [len(each.train) for each in texts]),
            },
            attrs={"sets": [short(name) for name in self.sets]},
        )

    def theory(self, run: Readings) -> xr.Dataset:
        """Predict attention and its times from the training texts; hold them against every run."""
        return compared(self, run).merge(self.timed(run))

    def timed(self, run: Readings) -> xr.Dataset:
        """Return when attention came, said and seen."""
        return when_dataset(
            self.trained,
            lambda name: bags_of(self.text(name)),
            lambda case: concentration(run.of(case).alpha),
        )

    def printed(self, run: Readings) -> list[Table]:
        """Print what was predicted and what was learned, set by set."""
        return [summary_table(self, run), when_table(self.trained, run)]
