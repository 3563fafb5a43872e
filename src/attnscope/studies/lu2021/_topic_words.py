"""What the studies on topic words share: the task, the model, the readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.engines import Descent, Flow, Given, Linear, Observable, Record
from attnscope.engines.observe import Schedule
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models import BagAttention, KeyQuery, classifier
from attnscope.models.bag_attention import Freeze
from attnscope.models.classifiers import ClassifierKind
from attnscope.models.objective import BagObjective
from attnscope.probes import rank_correlation
from attnscope.report import Line, Table
from attnscope.tasks import Bags, Sentences, TopicWords, TopicWordsData
from attnscope.theory import lu2021
from attnscope.trajectory import Readings

CITATION = "Lu, Mao, Nayak. On the Dynamics of Training Attention Models. ICLR 2021."
MODELS: tuple[ClassifierKind, ...] = ("FC", "TC", "TL")
"""Fixed linear, trained linear, and two trained layers."""


@dataclass(frozen=True)
class TopicWordsStudy(Study):
    """The task and the model of Lu 2021, section 5.1."""

    training: Flow | Descent = Flow(lr=0.1, epochs=5000)
    points: Several = 201
    """Record points, evenly spaced."""
    task: TopicWords = TopicWords()
    dim: Count = 15
    """d, length of embeddings."""
    variance: Positive = 1e-6
    """σ²/d, variance of the entries of the initial embeddings."""

    citation = CITATION
    labels: ClassVar = {"side": ("score", "embedding")}

    def check(self) -> None:
        """Check that a fixed classifier has room for its topics."""
        fixed = any(case == "FC" or case.startswith("FC,") for case in self.cases)
        if fixed and self.dim < self.task.topics:
            raise AttnscopeError(
                f"dim = {self.dim} with topics = {self.task.topics}: expected {self.task.topics} "
                "dimensions or more, so that the fixed classifier can have a direction for each "
                "topic."
            )

    def model(
        self,
        kind: ClassifierKind,
        seed: int,
        freeze: Freeze = "nothing",
        scores: Callable[[torch.Generator], KeyQuery] | None = None,
    ) -> BagAttention:
        """Return Attn-``kind`` at its initial state; one seed gives all kinds one embedding."""
        generator = torch.Generator().manual_seed(seed)
        embedding_source = torch.Generator().manual_seed(seed + 1_000_003)
        keys = scores(generator) if scores is not None else None
        reader = classifier(kind, self.dim, self.task.topics, generator=generator)
        return BagAttention(
            self.task.vocabulary,
            self.dim,
            reader,
            scores=keys,
            std=self.variance**0.5,
            freeze=freeze,
            generator=embedding_source,
        )

    def truth(self) -> xr.Dataset:
        """Return which words are topic words, and of which topic."""
        topic = self.task.topic_of
        return xr.Dataset(
            {
                "topic": ("vocab", topic, {"meaning": "topic of a word, -1 for non-topic words"}),
                "topic_of_word": ("word", topic[: self.task.topic_words]),
            }
        )

    def curve_schedule(self) -> Schedule:
        """Return when curves are read."""
        return Linear(self.points)

    def problem(self, model: BagAttention, data: TopicWordsData) -> Problem:
        """Return the run of a model on a sample, with the usual readings."""
        words, loss = data.task.topic_words, BagObjective(data.train)
        curves = (
            Observable("loss", loss, (), "nats", "mean cross-entropy of the training sentences"),  # type: ignore[arg-type]
            score_of(words),
            norm_of(words),
        )
        ends = (
            Observable("score_all", lambda m: bag(m).scores(), ("vocab",), "", "s_w of all words"),
            Observable(
                "norm_all",
                lambda m: bag(m).embeddings().norm(dim=1),
                ("vocab",),
                "",
                "‖v_w‖ of all words",
            ),
            Observable(
                "test_accuracy", lambda m: accuracy(m, data.test), (), "", "share of test sentences"
            ),
        )
        records = [
            Record(curves, self.curve_schedule()),
            Record(sentence_readings(data), Linear(min(41, self.points)), dim="probe"),
            Record(ends, Given((self.end,)), dim="snapshot"),
        ]
        return Problem(model, loss, records)


def score_of(words: int) -> Observable:
    """Return the reading of the scores of the first words."""
    return Observable(
        "score", lambda m: bag(m).scores()[:words], ("word",), "", "s_t of topic words"
    )


def norm_of(words: int) -> Observable:
    """Return the reading of the embedding norms of the first words."""

    def norm(model: nn.Module) -> Tensor:
        return bag(model).embeddings_of(slice(words)).norm(dim=1)

    return Observable("norm", norm, ("word",), "", "‖v_t‖ of topic words")


def attended_of(data: TopicWordsData) -> Observable:
    """Return the reading of how often the topic word of a training sentence leads."""

    def attended(model: nn.Module) -> Tensor:
        scores = bag(model).scores()[data.train.ids]
        return (scores[:, :1] > scores[:, 1:]).all(dim=1).double().mean()

    return Observable("attended", attended, (), "", "share of sentences led by their topic word")


def sentence_readings(data: TopicWordsData) -> tuple[Observable, ...]:
    """Return both sides of Theorem 1's identity, and the attention that topic words get."""
    words = np.arange(data.task.topic_words)
    sets = lu2021.PsiSets(data.train, words)

    def identity(model: nn.Module) -> Tensor:
        scores, embeddings = bag(model).scores(), bag(model).embeddings()
        means = sets.averages(scores, embeddings)
        own = scores.double().numpy()[words]
        distance = embeddings.double().numpy()[words] - means.context
        left = own + np.exp(own) * means.inverse_z
        return torch.from_numpy(np.stack([left, (distance**2).sum(axis=1) / 2], axis=1))

    def weights(model: nn.Module) -> Tensor:
        return torch.from_numpy(lu2021.topic_attention(bag(model).scores(), data.train, 0))

    return (
        Observable("identity", identity, ("word", "side"), "", "both sides of eq (9)"),
        Observable("attention_min", lambda m: weights(m).min(), (), "", "least topic attention"),
        Observable("attention_mean", lambda m: weights(m).mean(), (), "", "mean topic attention"),
        attended_of(data),
    )


def accuracy(model: nn.Module, sentences: Bags | Sentences) -> Tensor:
    """Return the share of sentences that the model classifies rightly."""
    logits: Tensor = model(sentences)
    return (logits.argmax(dim=1) == sentences.labels).double().mean()


def bag(model: nn.Module) -> BagAttention:
    """Return a model as what it is."""
    assert isinstance(model, BagAttention)
    return model


def least_correlation(run: Readings, shuffled: bool) -> np.ndarray:
    """Return the smallest rank correlation of score and norm over training, one number per seed.

    Args:
        run: the readings of one case.
        shuffled: permute the norms in time, the same for every case.
    """
    norm = run.norm.to_numpy()
    if shuffled:
        norm = np.random.default_rng(0).permuted(norm, axis=1)
    return np.asarray(rank_correlation(run.score.to_numpy(), norm, axis=1).min(axis=1))


def norm_over_score(run: Readings, m: float, theory: str, seed: str = "seed") -> tuple[Line, ...]:
    """Return the first word's norm against its score, a line for each seed, and eq (10)."""
    score, norm = run.score[..., 0], run.norm[..., 0]
    grid = np.linspace(0, max(0.1, float(score.max())) * 1.05, 100)
    pairs = enumerate(zip(score.to_numpy(), norm.to_numpy(), strict=True))
    lines = [Line(x, y, f"{seed} {i}", i, thin=True) for i, (x, y) in pairs]
    return (*lines, Line(grid, lu2021.norm_from_score(grid, m), theory, theory=True))


def seed_by_seed(name: str, title: str, columns: Mapping[str, xr.DataArray]) -> Table:
    """Tabulate what has one number per seed, a row for each."""
    rows = zip(*(column.to_numpy().tolist() for column in columns.values()), strict=True)
    return Table(name, title, ("seed", *columns), tuple((i, *row) for i, row in enumerate(rows)))
