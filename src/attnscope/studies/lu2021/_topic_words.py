"""What the studies on topic words share: the task, the model, the readings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Given, Linear, Observable, Record
from attnscope.engines.observe import Schedule
from attnscope.models import BagAttention, classifier
from attnscope.models.bag_attention import Freeze
from attnscope.models.classifiers import Kind
from attnscope.models.objective import BagObjective
from attnscope.studies.base import Problem, Study
from attnscope.tasks import Bags, TopicWords, TopicWordsData
from attnscope.theory import lu2021

CITATION = "Lu, Mao, Nayak. On the Dynamics of Training Attention Models. ICLR 2021."


@dataclass(frozen=True)
class TopicWordsStudy(Study):
    """Fields that describe the task and the model of Lu 2021, section 5.1."""

    topics: int = 4
    """J, number of topics."""
    words_per_topic: int = 2
    """Topic words of each topic."""
    m: int = 20
    """Non-topic words in each sentence."""
    dictionary: int = 5000
    """M, number of non-topic words there are."""
    train: int = 800
    """Training sentences."""
    test: int = 200
    """Test sentences."""
    dim: int = 15
    """d, length of embeddings."""
    variance: float = 1e-6
    """σ²/d, variance of the entries of the initial embeddings."""

    citation = CITATION

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task()

    def task(self) -> TopicWords:
        """Return the task."""
        return TopicWords(
            topics=self.topics,
            words_per_topic=self.words_per_topic,
            m=self.m,
            dictionary=self.dictionary,
            train=self.train,
            test=self.test,
        )

    def model(self, kind: Kind, seed: int, freeze: Freeze = "nothing") -> BagAttention:
        """Return Attn-``kind`` at its initial state; one seed gives all kinds one embedding."""
        generator = torch.Generator().manual_seed(seed)
        embedding_source = torch.Generator().manual_seed(seed + 1_000_003)
        reader = classifier(kind, self.dim, self.topics, generator=generator)
        return BagAttention(
            self.task().vocabulary,
            self.dim,
            reader,
            std=self.variance**0.5,
            freeze=freeze,
            generator=embedding_source,
        )

    def truth(self) -> xr.Dataset:
        """Return which words are topic words, and of which topic."""
        topic = self.task().topic_of
        return xr.Dataset(
            {
                "topic": ("vocab", topic, {"meaning": "topic of a word, -1 for non-topic words"}),
                "topic_of_word": ("word", topic[: self.task().topic_words]),
            }
        )

    def curve_schedule(self) -> Schedule:
        """Return when curves are read."""
        return Linear(self.points)

    def problem(self, model: BagAttention, data: TopicWordsData) -> Problem:
        """Return the run of a model on a sample, with the usual readings."""
        return Problem(model, BagObjective(data.train), self.records(data))

    def records(self, data: TopicWordsData) -> list[Record]:
        """Return what is read: curves, means over sentences, and the whole dictionary twice."""
        words = data.task.topic_words
        loss = BagObjective(data.train)
        curves = (
            Observable(
                "loss",
                lambda m: loss(_bag(m)),
                (),
                "nats",
                "mean cross-entropy of the training sentences",
            ),
            Observable(
                "score", lambda m: _bag(m).scores()[:words], ("word",), "", "s_t of topic words"
            ),
            Observable(
                "norm",
                lambda m: _bag(m).embeddings_of(slice(words)).norm(dim=1),
                ("word",),
                "",
                "‖v_t‖ of topic words",
            ),
        )
        ends = (
            Observable("score_all", lambda m: _bag(m).scores(), ("vocab",), "", "s_w of all words"),
            Observable(
                "norm_all",
                lambda m: _bag(m).embeddings().norm(dim=1),
                ("vocab",),
                "",
                "‖v_w‖ of all words",
            ),
            Observable(
                "test_accuracy", lambda m: accuracy(m, data.test), (), "", "share of test sentences"
            ),
        )
        return [
            Record(curves, self.curve_schedule()),
            Record(sentence_readings(data), Linear(min(41, self.points)), dim="probe"),
            Record(ends, Given((self.time,)), dim="snapshot"),
        ]


def sentence_readings(data: TopicWordsData) -> tuple[Observable, ...]:
    """Return both sides of Theorem 1's identity, and the attention that topic words get."""
    words = np.arange(data.task.topic_words)
    sets = lu2021.PsiSets(data.train, words)

    def identity(model: nn.Module) -> Tensor:
        scores, embeddings = _bag(model).scores(), _bag(model).embeddings()
        means = sets.averages(scores, embeddings)
        own = scores.double().numpy()[words]
        distance = embeddings.double().numpy()[words] - means.context
        left = own + np.exp(own) * means.inverse_z
        return torch.from_numpy(np.stack([left, (distance**2).sum(axis=1) / 2], axis=1))

    def weights(model: nn.Module) -> Tensor:
        return torch.from_numpy(lu2021.topic_attention(_bag(model).scores(), data.train, 0))

    def attended(model: nn.Module) -> Tensor:
        scores = _bag(model).scores()[data.train.ids]
        return (scores[:, :1] > scores[:, 1:]).all(dim=1).double().mean()

    return (
        Observable("identity", identity, ("word", "side"), "", "both sides of eq (9)"),
        Observable("attention_min", lambda m: weights(m).min(), (), "", "least topic attention"),
        Observable("attention_mean", lambda m: weights(m).mean(), (), "", "mean topic attention"),
        Observable("attended", attended, (), "", "share of sentences led by their topic word"),
    )


def accuracy(model: nn.Module, bags: Bags) -> Tensor:
    """Return the share of sentences that the model classifies rightly."""
    logits: Tensor = model(bags)
    return (logits.argmax(dim=1) == bags.labels).double().mean()


def _bag(model: nn.Module) -> BagAttention:
    assert isinstance(model, BagAttention)
    return model
