"""The spec of ``snell2021.keyword``, its runs, and the theory of two plateaus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Adam, Logarithmic, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.sequence_classifier import ClassifierObjective, SequenceClassifier
from attnscope.studies.snell2021._snell import CITATION, HELD_OUT, fresh_rows
from attnscope.studies.snell2021.keyword.claims import CASES, PLACES, claims_of, reading
from attnscope.studies.snell2021.keyword.figures import figures_of, tables_of
from attnscope.tasks.keyword import Keyword, LabelledSequences
from attnscope.trajectory import Readings

READINGS = ("loss", "accuracy", "negative", *(f"{of} {at}" for of in ("γ", "α") for at in PLACES))
"""What one evaluation of the model gives; ``negative`` is the mean γ of negative sequences."""
REACH = 10
"""Positions before and after the keyword of which log odds are kept."""


@dataclass(frozen=True)
class KeywordStudy(Study):
    """Log odds γ_l at the keyword, after it, at the end and on average, while a classifier learns.

    The paper says neither whether its LSTM reads both ways, nor how long it is trained. Both kinds
    are run, under uniform and under learned attention.
    """

    training: Adam = Adam(rate=1e-3, steps=2000, batch=32)
    points: Several = 81
    """Record points: step 0, and steps in constant ratio as far as there are so many."""
    task: Keyword = Keyword()
    embedding: Count = 300
    """Length of embeddings."""
    hidden: Count = 256
    """Length of the LSTM's state in one direction."""
    held_out: Count = 1000
    """Held-out sequences that are read, half of them positive."""

    citation = CITATION
    cases = CASES
    labels: ClassVar = {"reading": READINGS}
    quick: ClassVar = {
        "seeds": 3,
        "steps": 500,
        "points": 51,
        "embedding": 64,
        "hidden": 64,
        "held_out": 400,
    }
    desk: ClassVar = {"seeds": 3, "steps": 1000, "points": 41}
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Every position before the last must hold the keyword of some sequence."""
        if self.task.length < 4:
            raise AttnscopeError(f"length = {self.task.length}: expected 4 or more.")
        if self.held_out < 10 * self.task.length:
            raise AttnscopeError(
                f"held_out = {self.held_out}: expected ten sequences or more for each of the "
                f"{self.task.length} positions of the keyword, {10 * self.task.length}."
            )

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of Adam on fresh sequences"

    def read_sequences(self) -> LabelledSequences:
        """Return the sequences that are read: those whose keyword is the last word are left out."""
        drawn = self.task.sample(self.held_out, HELD_OUT)
        return drawn.rows(torch.nonzero(drawn.position < self.task.length - 1)[:, 0])

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed see the same sequences."""
        torch.manual_seed(seed)
        model = SequenceClassifier(
            self.task.vocabulary,
            embedding=self.embedding,
            hidden=self.hidden,
            attention_hidden=self.hidden,
            bidirectional=case.startswith("both ways"),
            attention="uniform" if case.endswith("uniform") else "learned",
        )
        loss = ClassifierObjective(self.task.stream(seed))
        record = Record(observables(self.read_sequences()), Logarithmic(self.points, 1.0))
        return Problem(model, loss, [record], rows=fresh_rows(self.training), seed=seed)

    def truth(self) -> dict[str, object]:
        """Return where the keyword of the sequences that are read stands."""
        meaning = "position of the keyword, from 0; -1 where there is none"
        position = self.read_sequences().position.numpy()
        return {"position": ("sequence", position, {"meaning": meaning})}

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the mean log odds of an LSTM that forgets nothing: two plateaus.

        Before the keyword a state is that of a negative sequence, from the keyword on it is that of
        the last position: γ̄ = r γ_L + (1 - r) γ̄_neg, with r the mean share of positions from l* on.
        """
        position = run.data.position.where(run.data.position >= 0)
        share = 1 - float(position.mean()) / self.task.length
        plateaus = share * reading(run, "γ last") + (1 - share) * reading(run, "negative")
        meaning = "r γ_L + (1 - r) γ̄_neg, r the share of positions from the keyword on"
        return {"gamma_mean": plateaus.assign_attrs(meaning=meaning)}


def observables(sequences: LabelledSequences) -> tuple[Observable, ...]:
    """Return the readings on given sequences."""
    positive = torch.nonzero(sequences.position >= 0)[:, 0]
    place = sequences.position[positive]
    length = sequences.source.shape[1]
    reach = min(REACH, length - 2)
    row = torch.arange(len(place))

    def four(values: Tensor) -> Tensor:
        """Return the mean over sequences of the values at l*, l* + 1, on average and at L."""
        known = values[positive].double()
        parts = (known[row, place], known[row, place + 1], known.mean(dim=1), known[:, -1])
        return torch.stack([part.mean() for part in parts])

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, SequenceClassifier)
        look = model.evaluate(sequences.source)
        loss = F.binary_cross_entropy_with_logits(look.logits, sequences.label.to(look.logits))
        right = (look.logits > 0) == (sequences.label > 0)
        negative = look.log_odds[sequences.position < 0]
        single = [part.double().mean() for part in (loss, right, negative)]
        return torch.cat([torch.stack(single), four(look.log_odds), four(look.weights)])

    def around(model: nn.Module) -> Tensor:
        assert isinstance(model, SequenceClassifier)
        known = model.log_odds(sequences.source)[positive].double()
        at = place[:, None] + torch.arange(-reach, reach + 1)
        inside = (at >= 0) & (at < length)
        values = known.gather(1, at.clamp(0, length - 1)) * inside
        return values.sum(dim=0) / inside.sum(dim=0)

    what = (
        "loss (nats), accuracy, mean γ of negative sequences; γ and then α of positive ones at "
        "the keyword l*, at l* + 1, on average, and at the last position"
    )
    where = f"γ from {reach} positions before the keyword to {reach} after it"
    return (
        Observable("reading", read, ("reading",), "", what),
        Observable("gamma_around", around, ("offset",), "nats", where),
    )
