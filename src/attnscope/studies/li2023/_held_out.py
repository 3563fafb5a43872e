"""What the studies of attention by kind of pair share: fresh documents, and held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count
from attnscope.engines import Observable, Record, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.probes.topics.topic_attention import UNIT, topic_attention
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.tasks import Documents, TopicStream
from attnscope.trajectory import Readings, final, initial

KINDS = ("same word", "same topic, different words", "different topics")
WORD, TOPIC, OTHER = KINDS
SHUFFLES = 10
"""A single shuffle leaves words of one topic together by chance."""
TRAINED = (("attention", final),)
UNTRAINED = (("attention", initial),)
BASELINES = (*UNTRAINED, ("shuffled", final))
"""Readings in which topics must not show, each with when it is taken."""


@dataclass(frozen=True)
class HeldOutStudy(TopicDocumentsStudy):
    """Training on documents that are never seen twice, attention read on held-out ones."""

    training: Steps = Steps(steps=5000, batch=40)
    documents: Count = 100
    """Held-out documents that attention is averaged over."""

    labels: ClassVar = {"kind": KINDS}
    axes: ClassVar[tuple[str, ...]] = ()
    """Axes of the reading of attention besides its kinds."""

    def check(self) -> None:
        """Check the task, and that steps are of some documents."""
        self.task()
        if self.training.batch is None:
            raise AttnscopeError("batch = None: expected the documents of a step, 1 or more.")

    def held_out(self, seed: int) -> Documents:
        """Return documents that the run of a seed is not trained on."""
        return self.task().sample(self.documents, seed + 1_000_003)

    def problem(self, model: TopicTransformer, seed: int, records: list[Record]) -> Problem:
        """Return the run of a model on fresh documents."""
        rows = (self.training.batch or 1) * self.training.steps
        loss = TopicObjective(TopicStream(self.task(), seed))
        return Problem(model, loss, records, rows=rows, seed=seed)

    def readings(self, documents: Documents, seed: int) -> tuple[Observable, ...]:
        """Return loss, attention by kind of pair, and the same with topics shuffled."""
        topic, rng = self.task().topic_of, np.random.default_rng([seed, 0x5FF])
        shuffled = [np.append(-1, rng.permutation(topic[1:])) for _ in range(SHUFFLES)]
        loss, dims = TopicObjective(documents), (*self.axes, "kind")
        return (
            Observable(
                "loss", lambda m: loss(own(m)), (), "nats", "cross-entropy, held-out documents"
            ),
            Observable(
                "attention",
                self.attention_by_kind(documents, [topic]),
                dims,
                "",
                "mean weight × length / 100: same word, same topic, different topics",
            ),
            Observable(
                "shuffled",
                self.attention_by_kind(documents, shuffled),
                dims,
                "",
                f"attention with topics shuffled among words, mean of {SHUFFLES} shuffles",
            ),
        )

    def attention_by_kind(
        self, documents: Documents, topics_of: Sequence[np.ndarray]
    ) -> Callable[[nn.Module], Tensor]:
        """Return a reading of the three means, over lists of topics; without [MASK] and padding."""
        ids, lengths = documents.visible.numpy(), documents.lengths.numpy()
        topics = [topics_at(documents, topic) for topic in topics_of]

        def read(model: nn.Module) -> Tensor:
            weights = self.weights(own(model), documents)
            kinds = [topic_attention(weights, ids, topic, lengths).kinds for topic in topics]
            return torch.from_numpy(np.mean(kinds, axis=0))

        return read

    def weights(self, model: TopicTransformer, documents: Documents) -> np.ndarray:
        """Return attention, shape ``(document, ..., key, query)``."""
        return model.attention(documents).numpy()

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Return uniform attention, what every kind of pair has before training."""
        uniform = xr.full_like(run.attention, 1 / UNIT, dtype=float)
        meaning = "uniform attention, after length-debiasing"
        return {"attention": uniform.assign_attrs(meaning=meaning)}


def ratio(reading: xr.DataArray, over: str = TOPIC, under: str = OTHER) -> xr.DataArray:
    """Return attention of one kind of pair over that of another."""
    return reading.sel(kind=over) / reading.sel(kind=under)


def topics_at(documents: Documents, topic: np.ndarray) -> np.ndarray:
    """Return the topic of every position, -1 for [MASK] and padding."""
    topics = topic[documents.visible.numpy()]
    return topics if documents.mask is None else np.where(documents.mask.numpy(), topics, -1)


def own(model: nn.Module) -> TopicTransformer:
    """Return a model as what it is."""
    assert isinstance(model, TopicTransformer)
    return model
