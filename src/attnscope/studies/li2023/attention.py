"""Attention to the same word, the same topic and other topics, by optimizer (Tables 3 and 4).

The paper gives optimizers and learning rates, not the start of the weights. Here every entry of
W^K, W^Q and W^V starts with the standard deviation of a linear layer's default, 1/√(3d), which is
what the released code uses for W^V; biases start at 0. Documents are never seen twice, where the
released code goes 20 times over 10,000: as many steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Final, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.probes.topic_attention import UNIT, topic_attention
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _attention_claims, _attention_figures, _attention_tables
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.tasks import Documents, TopicStream

SCALED = ", inputs × √V"
"""Ending of the cases whose one-hot inputs are brought to unit variance."""
SHUFFLES = 10
"""A single shuffle leaves words of one topic together by chance."""
HELD_OUT = 1_000_003
"""Added to a run's seed for documents that it is not trained on."""


@dataclass(frozen=True)
class Attention(TopicDocumentsStudy):
    """One layer, one head, one-hot words, cross-entropy: where does a trained model look.

    Besides the settings of the paper, the two of SGD are run with inputs √V times as large, which
    have unit variance as after a layer norm. For SGD that is the same as a learning rate V times
    and a start √V times as large.
    """

    seeds: int = 5
    engine: Literal["flow", "descent"] = "descent"
    lr: float = 1.0
    """Time of a step; the learning rates proper are in ``adam`` and ``sgd``."""
    epochs: int = 5000
    """Steps; the released code's 10,000 documents × 20 epochs / 40."""
    points: int = 26
    adam: tuple[float, ...] = (0.003, 0.01, 0.03)
    """Learning rates of Adam."""
    sgd: tuple[float, ...] = (0.01, 0.03)
    """Learning rates of SGD."""
    batch: int = 40
    """Documents of a step."""
    documents: int = 100
    """Held-out documents that attention is averaged over."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 2, "epochs": 1000, "points": 11, "documents": 50}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task()
        if self.engine != "descent" or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}' with lr = {self.lr}: expected 'descent' with 1, since "
                "time counts steps; the learning rates are in adam and sgd."
            )
        if not self.adam or not self.sgd:
            raise AttnscopeError(
                f"adam = {self.adam} and sgd = {self.sgd}: expected a learning rate or more of "
                "each."
            )
        for name in ("batch", "documents"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        for case in self.cases():
            self.make_engine(case)

    def settings(self) -> tuple[str, ...]:
        """Return the settings of Table 3, such as ``Adam 0.003``."""
        return (*(f"Adam {lr:g}" for lr in self.adam), *(f"SGD {lr:g}" for lr in self.sgd))

    def cases(self) -> tuple[str, ...]:
        """Return the settings of Table 3, and SGD with inputs of unit variance."""
        return (*self.settings(), *(f"SGD {lr:g}{SCALED}" for lr in self.sgd))

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of SGD or Adam on fresh documents"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return the optimizer that the case names."""
        name, lr = case.removesuffix(SCALED).split() if case else ("SGD", "1")
        return Descent(
            lr=float(lr) * (self.task().vocabulary if case.endswith(SCALED) else 1),
            optimizer="adam" if name == "Adam" else "gd",
            batch_size=self.batch,
            samples=self.batch * self.epochs,
            seed=seed,
            tick=1.0,
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one setting with one seed; all settings start from the same model."""
        task = self.task()
        std = (3 * task.vocabulary) ** -0.5
        if case.endswith(SCALED):
            std *= task.vocabulary**0.5
        model = TopicTransformer(
            task.vocabulary,
            biases=True,
            noise=std,
            value_noise=std,
            generator=torch.Generator().manual_seed(seed),
        )
        held_out = task.sample(self.documents, seed + HELD_OUT)
        records = self.records(held_out, seed)
        return Problem(model, TopicObjective(TopicStream(task, seed)), records)

    def records(self, held_out: Documents, seed: int) -> list[Record]:
        """Return what is read on held-out documents, and W^V at both ends."""
        topic = self.task().topic_of
        rng = np.random.default_rng([seed, 0x5FF])
        shuffled = [np.append(-1, rng.permutation(topic[1:])) for _ in range(SHUFFLES)]
        loss = TopicObjective(held_out)
        curves = (
            Observable(
                "loss", lambda m: loss(_model(m)), (), "nats", "cross-entropy, held-out documents"
            ),
            Observable(
                "attention",
                _attention(held_out, [topic]),
                ("kind",),
                "",
                "mean weight × length / 100: same word, same topic, different topics",
            ),
        )
        ends = (
            Observable(
                "shuffled",
                _attention(held_out, shuffled),
                ("kind",),
                "",
                f"the same with topics shuffled among words, mean of {SHUFFLES} shuffles",
            ),
            Observable("masked", _on_mask(held_out), (), "", "attention that words pay to [MASK]"),
            Observable(
                "value_matrix",
                lambda m: _model(m).word_map(),
                ("word_out", "word_in"),
                "",
                "W^V from word to word",
            ),
        )
        return [Record(curves, Linear(self.points)), Record(ends, Final(), dim="snapshot")]

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
        """Return what Tables 3 and 4 say."""
        return _attention_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Table 3, the way there, and Table 4."""
        return _attention_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Print Tables 3 and 4 beside the paper's."""
        return _attention_tables.tables(self, tree)


def _attention(
    documents: Documents, topics_of: Sequence[np.ndarray]
) -> Callable[[nn.Module], Tensor]:
    """Return a reading of the three means, over lists of topics; without [MASK] and padding."""
    ids, lengths = documents.visible.numpy(), documents.lengths.numpy()
    held = documents.mask.numpy() if documents.mask is not None else np.ones_like(ids, np.bool_)
    topics = [np.where(held, topic[ids], -1) for topic in topics_of]

    def read(model: nn.Module) -> Tensor:
        weights = _model(model).attention(documents).numpy()
        kinds = [topic_attention(weights, ids, topic, lengths).kinds for topic in topics]
        return torch.from_numpy(np.mean(kinds, axis=0))

    return read


def _on_mask(documents: Documents) -> Callable[[nn.Module], Tensor]:
    """Return a reading of the share of attention that goes to [MASK], mean over word queries."""
    held = documents.mask if documents.mask is not None else torch.ones_like(documents.selected)
    mask = (documents.visible == 0) & held
    words = held & ~mask

    def read(model: nn.Module) -> Tensor:
        share = (_model(model).attention(documents) * mask[:, :, None]).sum(dim=1)
        return share[words].mean()

    return read


def _model(model: nn.Module) -> TopicTransformer:
    assert isinstance(model, TopicTransformer)
    return model
