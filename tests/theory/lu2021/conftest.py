"""Gradient flow in which only topic words learn: Assumption 1 made exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.engines import Flow, Linear, Memory, Observable, Record
from attnscope.models import BagAttention, TwoLayer, classifier
from attnscope.models.classifiers import Classifier
from attnscope.models.pooling import bag_average_padded, cross_entropy
from attnscope.tasks import Bags


class TopicRowsOnly(nn.Module):
    """A copy of a model in which the first rows of both tables learn, and the classifier."""

    def __init__(self, model: BagAttention, topic_words: int) -> None:
        super().__init__()
        scores, embeddings = model.scores().detach(), model.embeddings().detach()
        self.score = nn.Parameter(scores[:topic_words].clone())
        self.embedding = nn.Parameter(embeddings[:topic_words].clone())
        self.other_scores = scores[topic_words:].clone()
        self.other_embeddings = embeddings[topic_words:].clone()
        self.classifier = model.classifier

    def forward(self, bags: Bags) -> Tensor:
        scores = torch.cat([self.score, self.other_scores])
        embeddings = torch.cat([self.embedding, self.other_embeddings])
        context = bag_average_padded(scores, embeddings, bags)
        return self.classifier.rest(context @ self.classifier.weight)


Run = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture
def topic_rows_flow() -> Callable[[BagAttention, Bags, int, float], Run]:
    """Return a function that flows and gives times, scores and embeddings of topic words."""

    def flow(model: BagAttention, bags: Bags, topic_words: int, time: float) -> Run:
        memory = Memory()
        Flow(rtol=1e-8, atol=1e-10).run(
            TopicRowsOnly(model, topic_words),
            lambda module: cross_entropy(module(bags), bags.labels),
            time=time,
            record=[
                Record(
                    (
                        Observable("score", lambda module: module.score),
                        Observable("embedding", lambda module: module.embedding),
                    ),
                    Linear(7),
                )
            ],
            sink=memory,
        )
        return memory.times[0], memory.arrays[0]["score"], memory.arrays[0]["embedding"]

    return flow


class SmoothTwoLayer(TwoLayer):
    """Two layers with tanh: nonlinear, and without the kinks that stop a solver of high order."""

    def rest(self, projected: Tensor) -> Tensor:
        return torch.tanh(projected + self.bias) @ self.readout + self.readout_bias


@pytest.fixture
def reader() -> Callable[[str, int, int, torch.Generator], Classifier]:
    """Return a function that builds one of the paper's classifiers, or the smooth one."""

    def build(kind: str, dim: int, classes: int, generator: torch.Generator) -> Classifier:
        if kind == "tanh":
            return SmoothTwoLayer(dim, classes, generator=generator)
        return classifier(kind, dim, classes, generator=generator)  # type: ignore[arg-type]

    return build
