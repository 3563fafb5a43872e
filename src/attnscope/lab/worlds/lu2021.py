"""Topic words: one word of a sentence tells its topic, and attention has to find it (Lu 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.claims import Finding
from attnscope.studies.old import Claim
from attnscope.engines import Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.lab.worlds import _lu2021_claims
from attnscope.lab.worlds.base import NOW, PlayStudy
from attnscope.lab.worlds.scene import Attention
from attnscope.models import BagAttention
from attnscope.models.classifiers import Kind
from attnscope.models.objective import BagObjective
from attnscope.report.figure import Figure, Line, Mark, Panel, Rule
from attnscope.experiment import Problem
from attnscope.studies.lu2021._topic_words import TopicWordsStudy
from attnscope.tasks import TopicWordsData
from attnscope.theory import lu2021

EPOCH = "epoch"


@dataclass(frozen=True)
class TopicWordsPlay(PlayStudy, TopicWordsStudy):
    """One run of Lu's model on topic words, with the theory of scores and norms."""

    classifier: Kind = "FC"
    """What reads the context vector: fixed, trained linear, or two layers."""
    points: int = 101
    """Record points, evenly spaced."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classifier == "FC" and self.dim < self.topics:
            raise AttnscopeError(
                f"dim = {self.dim} with topics = {self.topics}: expected {self.topics} dimensions "
                "or more, so that the fixed classifier can have a direction for each topic."
            )

    def cases(self) -> tuple[str, ...]:
        """Return the classifier."""
        return (self.classifier,)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow; coarser where the ReLUs of two layers switch all the time."""
        if self.classifier == "TL":
            return Flow(lr=5 * self.lr, rtol=1e-3, atol=1e-4)
        return Flow(lr=self.lr)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run."""
        data = self.task().sample(seed)
        model = self.model(self.classifier, seed)
        return Problem(model, BagObjective(data.train), self.records(data))

    def sentence(self, data: TopicWordsData) -> Tensor:
        """Return the words of the first test sentence, its topic word somewhere in the middle."""
        words = data.test.ids[0]
        place = (3 * len(words)) // 7
        return torch.cat([words[1 : place + 1], words[:1], words[place + 1 :]])

    def records(self, data: TopicWordsData) -> list[Record]:
        """Return the curves of topic words, and attention on one unseen sentence."""
        words, loss, sentence = data.task.topic_words, BagObjective(data.train), self.sentence(data)

        def attended(model: nn.Module) -> Tensor:
            scores = _bag(model).scores()[data.train.ids]
            return (scores[:, :1] > scores[:, 1:]).all(dim=1).double().mean()

        curves = (
            Observable("score", lambda m: _bag(m).scores()[:words], ("word",), "", "s_t"),
            Observable(
                "norm",
                lambda m: _bag(m).embeddings_of(slice(words)).norm(dim=1),
                ("word",),
                "",
                "‖v_t‖",
            ),
            Observable(
                "other_score",
                lambda m: _bag(m).scores()[words:].abs().max(),
                (),
                "",
                "largest |score| of a non-topic word",
            ),
            Observable(
                "attention",
                lambda m: torch.softmax(_bag(m).scores()[sentence], dim=0),
                ("position",),
                "",
                "attention on the first test sentence",
            ),
        )
        # A loss costs as much as everything else that is read.
        losses = (Observable("loss", lambda m: loss(_bag(m)), (), "nats", "mean cross-entropy"),)
        ends = (
            Observable("attended", attended, (), "", "share of sentences led by their topic word"),
        )
        return [
            Record(curves, Linear(self.points)),
            Record(losses, Linear(min(41, self.points)), dim="probe"),
            Record(ends, Linear(2), dim="end"),
        ]

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict norms by Corollary 1, and for a fixed classifier all curves before training."""
        observed = tree["observables"].to_dataset()
        score, times = observed["score"], observed["time"].to_numpy()
        ahead = np.full(score.shape, np.nan)
        if self.classifier == "FC":
            share = self.task().sample(self.draw).train.occurrences[: score.sizes["word"]]
            shares = share.double().numpy() / self.train
            ahead[0] = lu2021.fixed_linear_norm(times, self.m, self.topics, shares)
        return xr.Dataset(
            {
                "norm": (score.dims, lu2021.norm_from_score(score.to_numpy(), self.m)),
                "norm_ahead": (score.dims, ahead, {"meaning": "closed solution, before training"}),
            },
            coords={"time": ("step", times)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what Lu 2021 says of such a run."""
        return _lu2021_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw norm against score, both over time, and the loss."""
        seen = tree["observables"].to_dataset().isel(run=0)
        epochs = seen["epoch"].to_numpy()
        score, norm = seen["score"].to_numpy(), seen["norm"].to_numpy()
        grid = np.linspace(0, max(0.1, float(score.max())), 100)
        closed = Line(grid, lu2021.norm_from_score(grid, self.m), "theory", theory=True)
        ahead = tree["theory/norm_ahead"].to_numpy()[0]
        known = self.classifier == "FC"
        predicted = lu2021.score_from_norm(ahead, self.m).mean(axis=1) if known else ahead[:, 0]
        share = self.task().sample(self.draw).train.occurrences[: ahead.shape[1]].double().numpy()
        losses = lu2021.fixed_linear_loss(ahead, self.m, self.topics) @ (share / share.sum())
        mean, each, other = "mean topic word", "each topic word", "largest non-topic word"

        def words(x: np.ndarray, y: np.ndarray) -> list[Mark]:
            columns = (x[:, i] if x.ndim == 2 else x for i in range(y.shape[1]))
            return [Line(c, y[:, i], each, 5, thin=True) for i, c in enumerate(columns)]

        now = Rule(float(epochs[-1]), NOW, vertical=True)
        plane = (
            *words(score, norm),
            Line(score.mean(axis=1), norm.mean(axis=1), mean, 0),
            closed,
        )
        rise: list[Mark] = [
            *words(epochs, score),
            Line(epochs, score.mean(axis=1), mean, 0),
            Line(epochs, seen["other_score"].to_numpy(), other, 1),
            Line(epochs, predicted, "theory", theory=True),
            now,
        ]
        fall: list[Mark] = [
            Line(seen["epoch_probe"].to_numpy(), seen["loss"].to_numpy(), "training loss", 2),
            Line(epochs, losses, "theory", theory=True),
            now,
        ]
        caption = (
            "Left: the embedding norm of topic words against their score. Dashed: "
            "√(2(s + (exp(s) - 1)/m)), which knows nothing of the classifier (Corollary 1). "
        )
        caption += (
            "Middle and right: over training. Dashed: the closed solution for a fixed classifier, "
            "computed before training from m, the number of topics and word counts alone."
            if known
            else "Middle and right: over training. There is a solution before training only for "
            "the fixed classifier."
        )
        return [
            Figure(
                "play-lu2021",
                "Score and embedding norm of the topic words",
                caption,
                (
                    Panel("norm against score", "score", "embedding norm", plane),
                    Panel("score over training", EPOCH, "score", tuple(rise)),
                    Panel(
                        "loss over training",
                        EPOCH,
                        "cross-entropy (nats)",
                        tuple(fall),
                        "linear",
                        "log",
                    ),
                ),
            )
        ]

    def attention(self, tree: xr.DataTree) -> Attention:
        """Return what the model looks at in a sentence that it was not trained on."""
        data = self.task().sample(self.draw)
        ids, words = self.sentence(data).tolist(), data.task.topic_words
        names = [
            f"topic {i // self.words_per_topic + 1}{'ab'[i % 2]}" if i < words else f"word {i}"
            for i in ids
        ]
        seen = tree["observables"].to_dataset().isel(run=0)
        topic = next(i for i, word in enumerate(ids) if word < words)
        return Attention(
            "Attention on one sentence that was not trained on",
            "One word names the topic; the others say nothing. Bars are attention weights.",
            seen["epoch"].to_numpy(),
            EPOCH,
            tuple(names),
            ("the sentence",),
            seen["attention"].to_numpy()[:, None, :],
            tuple(0 if i == topic else -1 for i in range(len(ids))),
            (topic,),
        )

    def outcome(self, tree: xr.DataTree, found: Sequence[Finding]) -> str:
        """Say the final loss and attention."""
        seen = tree["observables"].to_dataset().isel(run=0, step=-1, probe=-1)
        weight = float(seen["attention"].max())
        return (
            f"Loss {float(seen['loss']):.3g} nats; the topic word gets {weight:.0%} of attention."
        )


def _bag(model: nn.Module) -> BagAttention:
    return cast(BagAttention, model)
