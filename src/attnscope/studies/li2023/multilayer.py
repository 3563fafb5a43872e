"""Topics in the heads of several layers, norms over training, turning of W^V (Fig 5).

The paper looks at 4 layers of 4 heads on Wikipedia. Here they read documents of the topic model, so
that topics are known, on sizes that a laptop trains in minutes: 10 topics of 5 words, documents of
40 to 50 positions, keys and queries of length 16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Final, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.probes.topic_attention import UNIT, topic_attention
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _multilayer_claims, _multilayer_figures
from attnscope.studies.li2023._multilayer_claims import DEEP, SHALLOW
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.tasks import Documents, TopicDocuments, TopicStream

TURN = 10
"""Steps between the two W^V whose angle is taken."""
TURNS = 21
"""How often it is taken."""
SHUFFLES = 10
"""A single shuffle leaves words of one topic together by chance."""
HELD_OUT = 1_000_003
"""Added to a run's seed for documents that it is not trained on."""


@dataclass(frozen=True)
class Multilayer(TopicDocumentsStudy):
    """Several layers of several heads, and one layer of as many heads beside them.

    Layers but the last add their input to their output, so the single layer is without.
    """

    seeds: int = 3
    engine: Literal["flow", "descent"] = "descent"
    lr: float = 1.0
    """Time of a step; the learning rate proper is ``adam``."""
    epochs: int = 600
    """Steps."""
    points: int = 61
    words: int = 5
    """v, words of each topic."""
    layers: int = 4
    """Number of layers."""
    heads: int = 4
    """Heads of each layer."""
    attention_dim: int = 16
    """d_a, length of keys and queries."""
    shortest: int = 40
    """Least positions of a document."""
    longest: int = 50
    """Most positions of a document."""
    adam: float = 0.01
    """Learning rate of Adam, that of Figs 1 and 2."""
    noise: float = 0.01
    """Standard deviation of the entries of W^K, W^Q and W^V at the start."""
    batch: int = 20
    """Documents of a step."""
    documents: int = 40
    """Held-out documents that attention is averaged over."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 2,
        "layers": 2,
        "heads": 2,
        "epochs": 400,
        "points": 41,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task()
        if self.engine != "descent" or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}' with lr = {self.lr}: expected 'descent' with 1, since "
                "time counts steps; the learning rate is in adam."
            )
        least = {"layers": 2, "heads": 1, "batch": 1, "documents": 1, "epochs": 2 * TURN}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {number} or more.")
        self.make_engine()
        self.model(DEEP, 0)

    def task(self, **more: object) -> TopicDocuments:
        """Return the task, with documents of the study's lengths."""
        return super().task(length=(self.shortest, self.longest), **more)

    def cases(self) -> tuple[str, ...]:
        """Return the deep model and the single layer."""
        return DEEP, SHALLOW

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of Adam on fresh documents"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam on fresh documents."""
        return Descent(
            lr=self.adam,
            optimizer="adam",
            batch_size=self.batch,
            samples=self.batch * self.epochs,
            seed=seed,
            tick=1.0,
        )

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
        """Make the run of one model with one seed."""
        held_out = self.task().sample(self.documents, seed + HELD_OUT)
        loss = TopicObjective(TopicStream(self.task(), seed))
        return Problem(self.model(case, seed), loss, self.records(held_out, seed))

    def records(self, held_out: Documents, seed: int) -> list[Record]:
        """Return curves, W^V in pairs ten steps apart, and shuffled topics at both ends."""
        topic = self.task().topic_of
        rng = np.random.default_rng([seed, 0x5FF])
        shuffled = [np.append(-1, rng.permutation(topic[1:])) for _ in range(SHUFFLES)]
        loss, kinds = TopicObjective(held_out), ("layer", "head", "kind")
        meaning = "mean weight × length / 100: same word, same topic, different topics"
        curves = (
            Observable(
                "loss", lambda m: loss(_model(m)), (), "nats", "cross-entropy, held-out documents"
            ),
            Observable("attention", self._attention(held_out, [topic]), kinds, "", meaning),
            Observable(
                "norm", self._norms, ("matrix", "layer"), "", "Frobenius norms of W^K, W^Q, W^V"
            ),
        )
        turns = Observable(
            "value_matrix",
            lambda m: self._padded(_values(m)),
            ("layer", "head", "word_out", "word_in"),
            "",
            "W^V of every head",
        )
        ends = (
            Observable(
                "shuffled",
                self._attention(held_out, shuffled),
                kinds,
                "",
                f"attention with topics shuffled among words, mean of {SHUFFLES} shuffles",
            ),
            Observable(
                "main_topic",
                self._main_topic(held_out, topic),
                ("layer", "head"),
                "",
                "factor on [MASK]'s weight for a word if its topic is the document's main one",
            ),
        )
        return [
            Record(curves, Linear(self.points)),
            Record((turns,), Given(self.turn_times()), dim="turn"),
            Record(ends, Final(), dim="snapshot"),
        ]

    def turn_times(self) -> tuple[float, ...]:
        """Return steps t and t - 10, for evenly spaced t."""
        late = np.round(np.linspace(TURN, self.epochs, TURNS))
        return tuple(np.unique([late, late - TURN]).tolist())

    def _attention(
        self, documents: Documents, topics_of: list[np.ndarray]
    ) -> Callable[[nn.Module], Tensor]:
        """Return a reading of the three means of every head; without [MASK] and padding."""
        ids, lengths = documents.visible.numpy(), documents.lengths.numpy()
        topics = [_topics(documents, topic) for topic in topics_of]

        def read(model: nn.Module) -> Tensor:
            weights = _weights(model, documents)
            kinds = [topic_attention(weights, ids, t, lengths).kinds for t in topics]
            return self._padded(torch.from_numpy(np.mean(kinds, axis=0)))

        return read

    def _main_topic(self, documents: Documents, topic: np.ndarray) -> Callable[[nn.Module], Tensor]:
        """Return a reading of how [MASK] weighs words of the document's most frequent topic.

        The logarithms of its weights are fitted as document + word + β [word of the main topic]. In
        a first layer they are document + word exactly, so β = 0: words that everyone looks at,
        whatever the document, do not count.
        """
        topics = _topics(documents, topic)
        occupied = np.arange(topics.shape[1]) < documents.lengths.numpy()[:, None]
        masked = (topics < 0) & occupied
        main = np.array([np.bincount(row[row >= 0]).argmax() for row in topics])
        asks = np.broadcast_to(masked.any(axis=1, keepdims=True), topics.shape)
        row, key = np.nonzero((topics >= 0) & asks)
        query = masked.argmax(axis=1)[row]
        columns = (
            np.eye(len(topics))[row],
            np.eye(len(topic))[documents.visible.numpy()[row, key]],
            np.equal(topics[row, key], main[row]).reshape(-1, 1),
        )
        fit = np.linalg.pinv(np.concatenate(columns, axis=1))[-1]

        def read(model: nn.Module) -> Tensor:
            weights = _weights(model, documents)[row, :, :, key, query]
            logs = np.log(np.maximum(weights, np.finfo(np.float32).tiny))
            return self._padded(torch.from_numpy(np.exp(np.einsum("r,rlh->lh", fit, logs))))

        return read

    def _norms(self, model: nn.Module) -> Tensor:
        layers = _model(model).layers
        norms = [
            self._padded(p.reshape(layers, -1).norm(dim=1))
            for p in (_model(model).W_K, _model(model).W_Q, _model(model).W_V)
            if p is not None
        ]
        return torch.stack(norms)

    def _padded(self, values: Tensor) -> Tensor:
        """Fill up with NaN to the number of layers of the deep model: all runs share their axes."""
        missing = self.layers - values.shape[0]
        return torch.cat([values, values.new_full((missing, *values.shape[1:]), torch.nan)])

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Return uniform attention, what every kind of pair has before training."""
        attention = tree["observables/attention"]
        return xr.Dataset(
            {
                "attention": (
                    attention.dims,
                    np.full(attention.shape, 1 / UNIT),
                    {"meaning": "uniform attention, after length-debiasing"},
                )
            },
            coords={"time": ("step", tree["observables/time"].to_numpy())},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what is said of deeper models."""
        return _multilayer_claims.claims()

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw layers by heads, and norms, ratios and turning over training."""
        return _multilayer_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate every layer at the end of training."""
        return [_multilayer_figures.layer_table(self, tree)]


def _topics(documents: Documents, topic: np.ndarray) -> np.ndarray:
    """Return the topic of every position, -1 for [MASK] and padding."""
    topics = topic[documents.visible.numpy()]
    return topics if documents.mask is None else np.where(documents.mask.numpy(), topics, -1)


def _weights(model: nn.Module, documents: Documents) -> np.ndarray:
    """Return attention as ``(document, layer, head, key, query)``, for a single head too."""
    own, length = _model(model), documents.visible.shape[1]
    weights = own.attention(documents)
    return weights.reshape(-1, own.layers, own.heads, length, length).numpy()


def _values(model: nn.Module) -> Tensor:
    own = _model(model)
    return own.value_matrix().reshape(own.layers, own.heads, own.dim, own.dim)


def _model(model: nn.Module) -> TopicTransformer:
    assert isinstance(model, TopicTransformer)
    return model
