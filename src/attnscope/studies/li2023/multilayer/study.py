"""The runs of ``li2023.multilayer``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.engines import Adam, Final, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicTransformer
from attnscope.probes.topics.topic_attention import main_topic_factor
from attnscope.studies.li2023._held_out import KINDS, HeldOutStudy, own, topics_at
from attnscope.studies.li2023.multilayer.claims import DEEP, MATRICES, SHALLOW, claims
from attnscope.studies.li2023.multilayer.figures import TURN, figures, tables
from attnscope.tasks import Documents, TopicDocuments

TURNS = 21
"""How often the turning of W^V is taken."""


@dataclass(frozen=True)
class Multilayer(HeldOutStudy):
    """Several layers of several heads, and one layer of as many heads beside them.

    Layers but the last add their input to their output, so the single layer is without. The
    learning rate is that of Figs 1 and 2.
    """

    seeds: Count = 3
    training: Adam = Adam(rate=0.01, steps=600, batch=20)
    points: Several = 61
    words: Count = 5
    documents: Count = 40
    layers: Several = 4
    """Number of layers."""
    heads: Count = 4
    """Heads of each layer."""
    attention_dim: Count = 16
    """d_a, length of keys and queries."""
    shortest: Count = 40
    """Least positions of a document."""
    longest: Count = 50
    """Most positions of a document."""
    noise: Positive = 0.01
    """Standard deviation of the entries of W^K, W^Q and W^V at the start."""

    quick: ClassVar = {"seeds": 2, "layers": 2, "heads": 2, "steps": 400, "points": 41}
    renamed: ClassVar = {"adam": "rate"}
    cases = (DEEP, SHALLOW)
    labels: ClassVar = {"kind": KINDS, "matrix": MATRICES}
    axes = ("layer", "head")
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check the task, and that W^V can turn."""
        super().check()
        if self.training.steps < 2 * TURN:
            raise AttnscopeError(f"steps = {self.training.steps}: expected {2 * TURN} or more.")

    def task(self, **more: object) -> TopicDocuments:
        """Return the task, with documents of the study's lengths."""
        return super().task(length=(self.shortest, self.longest), **more)

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of Adam on fresh documents"

    def model(self, case: str, seed: int) -> TopicTransformer:
        """Return the model of a case at its start."""
        return TopicTransformer(
            self.task().vocabulary,
            attention_dim=self.attention_dim,
            layers=self.layers if case == DEEP else 1,
            heads=self.heads,
            biases=True,
            noise=self.noise,
            value_noise=self.noise,
            generator=torch.Generator().manual_seed(seed),
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed; W^V is read in pairs ten steps apart."""
        documents = self.held_out(seed)
        loss, attention, shuffled = self.readings(documents, seed)

        def norms(model: nn.Module) -> Tensor:
            matrices = (own(model).W_K, own(model).W_Q, own(model).W_V)
            flat = [each.reshape(own(model).layers, -1) for each in matrices if each is not None]
            return torch.stack([self.padded(each.norm(dim=1)) for each in flat])

        def value(model: nn.Module) -> Tensor:
            shape = (own(model).layers, own(model).heads, own(model).dim, own(model).dim)
            return self.padded(own(model).value_matrix().reshape(shape))

        norm = Observable(
            "norm", norms, ("matrix", "layer"), "", "Frobenius norms of W^K, W^Q, W^V"
        )
        turns = Observable(
            "value_matrix", value, (*self.axes, "word_out", "word_in"), "", "W^V of every head"
        )
        main_topic = Observable(
            "main_topic",
            self.main_topic(documents),
            self.axes,
            "",
            "factor on [MASK]'s weight for a word if its topic is the document's main one",
        )
        late = np.round(np.linspace(TURN, self.training.steps, TURNS))
        times = Given(tuple(np.unique([late, late - TURN]).tolist()))
        records = [
            Record((loss, attention, norm), Linear(self.points)),
            Record((turns,), times, dim="turn"),
            Record((shuffled, main_topic), Final(), dim="snapshot"),
        ]
        return self.problem(self.model(case, seed), seed, records)

    def weights(self, model: TopicTransformer, documents: Documents) -> np.ndarray:
        """Return attention as ``(document, layer, head, key, query)``, for a single head too."""
        length = documents.visible.shape[1]
        weights = model.attention(documents)
        return weights.reshape(-1, model.layers, model.heads, length, length).numpy()

    def attention_by_kind(
        self, documents: Documents, topics_of: Sequence[np.ndarray]
    ) -> Callable[[nn.Module], Tensor]:
        """Return a reading of the three means of every head."""
        read = super().attention_by_kind(documents, topics_of)
        return lambda model: self.padded(read(model))

    def main_topic(self, documents: Documents) -> Callable[[nn.Module], Tensor]:
        """Return a reading of how [MASK] weighs words of the document's most frequent topic."""
        topics = topics_at(documents, self.task().topic_of)
        factor = main_topic_factor(documents.visible.numpy(), topics, documents.lengths.numpy())
        return lambda m: self.padded(torch.from_numpy(factor(self.weights(own(m), documents))))

    def padded(self, values: Tensor) -> Tensor:
        """Fill up with NaN to the number of layers of the deep model: all runs share their axes."""
        missing = self.layers - values.shape[0]
        return torch.cat([values, values.new_full((missing, *values.shape[1:]), torch.nan)])
