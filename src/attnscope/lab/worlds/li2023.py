"""Topic documents: a transformer learns topics, values first and attention later (Li 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.claims import Finding
from attnscope.studies.old import Claim
from attnscope.engines import Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.lab.worlds import _li2023_claims
from attnscope.lab.worlds.base import NOW, PlayStudy
from attnscope.lab.worlds.scene import Attention
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.report.figure import Figure, Line, Panel, Rule
from attnscope.experiment import Problem
from attnscope.studies.li2023._onset_model import (
    UniformGradient,
    leading_part,
    near_zero,
    score_norm,
)
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.trajectory import select
from attnscope.tasks import TopicDocuments
from attnscope.tasks.topic_documents import MASK
from attnscope.theory import li2023

UNIFORM, LEARNED = "uniform", "learned"
MOST_WORDS = 50
"""T v, so that no setting takes long."""
SENTENCE = 12
"""Words of the document that attention is shown on."""
CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""
TIME = "time (learning rate × steps)"


@dataclass(frozen=True)
class TopicDocumentsPlay(PlayStudy, TopicDocumentsStudy):
    """One run on topic documents, and one without attention that predicts when it starts."""

    lr: float = 1.0
    """Unit of time."""
    epochs: int = 1500
    """Units of time in a run."""
    points: int = 61
    """Record points, evenly spaced."""
    topics: int = 5
    """T, number of topics."""
    words: int = 5
    """v, words of each topic."""
    tau: int = 2
    """τ, distinct topics of a document."""
    documents: int = 100
    """Documents; all of them make every step."""
    length: int = 64
    """N, positions of a document."""
    noise: float = 1e-2
    """ε, standard deviation of the initial entries of W^K and W^Q."""
    value_noise: float = 1e-2
    """Standard deviation of the initial entries of W^V."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(f"engine = '{self.engine}': expected 'flow', and correct False.")
        if self.tau >= self.topics:
            raise AttnscopeError(
                f"tau = {self.tau} topics in a document, of topics = {self.topics}: expected fewer "
                "than there are, or documents do not differ."
            )
        if self.topics * self.words > MOST_WORDS:
            raise AttnscopeError(
                f"topics = {self.topics} with words = {self.words} make "
                f"{self.topics * self.words} words: expected {MOST_WORDS} or fewer."
            )
        self.documents_task()

    def documents_task(self, length: int | None = None) -> TopicDocuments:
        """Return the task."""
        return self.task(tau=self.tau, length=length or self.length)

    def cases(self) -> tuple[str, ...]:
        """Return the run without attention, then the one with."""
        return (UNIFORM, LEARNED)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow, which follows keys and queries as small as the noise."""
        return Flow(rtol=1e-5, atol=1e-3 * min(1e-5, self.noise))

    def start(self, case: str, seed: int) -> TopicTransformer:
        """Return the model at time 0."""
        uniform = case == UNIFORM
        return near_zero(
            self.documents_task().vocabulary,
            "uniform" if uniform else "learned",
            1.0 if uniform else self.noise,
            self.value_noise,
            seed,
            torch.float64,
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; both see the same documents from the same W^V."""
        documents = self.documents_task().sample(self.documents, seed)
        loss, ids, topic = (
            TopicObjective(documents),
            self.sentence(),
            self.documents_task().topic_of,
        )
        pairs = _pairs(topic)
        other = pairs[2]

        def kinds(model: nn.Module) -> Tensor:
            weights = _topic(model).attention_by_word() * len(topic)
            between = weights[1:, 1:]
            return torch.stack([*(between[kind].mean() for kind in pairs), weights[0, 0]])

        def blocks(model: nn.Module) -> Tensor:
            values = _topic(model).word_map()[1:, 1:]
            return torch.stack([values[~other].mean(), values[other].mean()])

        def shown(model: nn.Module) -> Tensor:
            own = _topic(model)
            scores = own.score_matrix()[ids][:, ids] / own.attention_dim**0.5
            return torch.softmax(scores, dim=0).T

        curves = (
            Observable("loss", cast(Any, loss), (), "nats", "cross-entropy"),
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
            Observable("kinds", kinds, ("kind",), "", "attention over uniform attention"),
            Observable("blocks", blocks, ("block",), "", "W^V within a topic, and across"),
            Observable("attention", shown, ("looking", "looked_at"), "", "on one document"),
        )
        records = [Record(curves, Linear(self.points))]
        if case == UNIFORM:
            gradient = UniformGradient(documents, torch.float64)

            def driver(model: nn.Module) -> Tensor:
                triple = li2023.top_singular(gradient(model)[None].numpy())
                return torch.from_numpy(np.concatenate([part[0].ravel() for part in triple]))

            meaning = "leading singular value of G, then its key and its query side"
            reading = Observable("driver", driver, ("entry",), "", meaning)
            records.append(Record((reading,), Linear(self.points), dim="probe"))
        return Problem(self.start(case, seed), loss, records)

    def sentence(self) -> np.ndarray:
        """Return the words of a small unseen document, sorted by topic, two of them hidden."""
        drawn = self.documents_task(SENTENCE).sample(1, self.draw + 1_000_003)
        return np.concatenate([[MASK, MASK], np.sort(drawn.ids[0].numpy())[2:]])

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict ‖W^Kᵀ W^Q‖₂ and its onset from the run without attention alone.

        ``ahead`` is the linear system around zero from the actual start; ``closed`` knows the size
        of the noise only: (ε² d_a/2) exp(2∫σ dt).
        """
        times = tree["observables/time"].to_numpy()
        driver = select(tree, "driver", UNIFORM).isel(run=0).to_numpy()
        sigma, (left, right) = driver[:, 0], np.split(driver[:, 1:], 2, axis=1)
        start = self.start(LEARNED, self.draw).keys_and_queries()
        keys, queries = (side.detach().numpy() for side in start)
        part = leading_part(sigma, left, right)
        linear = li2023.propagate(keys, queries, times, part, None)
        ahead = np.full((2, len(times)), np.nan)
        ahead[1, : len(linear.norms)] = linear.norms
        closed = np.full((2, len(times)), np.nan)
        closed[1] = li2023.predicted_norms(times, sigma, self.noise, keys.shape[0], None)
        known = np.isfinite(ahead[1])
        onset = li2023.measured_onset(times[known], ahead[1][known]).time
        return xr.Dataset(
            {
                "score_norm": (("run", "step"), ahead, {"meaning": "the linear system"}),
                "score_norm_closed": (("run", "step"), closed),
                "onset": ((), onset, {"meaning": "when the linear system reaches 1"}),
            },
            coords={"time": ("step", times)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what can be said of such a run."""
        return _li2023_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw the onset of attention, who is attended to, and the loss."""
        times = tree["observables/time"].to_numpy()
        norm = select(tree, "score_norm", LEARNED).to_numpy()[0]
        ahead = tree["theory/score_norm"].to_numpy()[1]
        closed = tree["theory/score_norm_closed"].to_numpy()[1]
        kinds = select(tree, "kinds", LEARNED).to_numpy()[0]
        losses = [select(tree, "loss", case).to_numpy()[0] for case in (LEARNED, UNIFORM)]
        now = Rule(float(times[-1]), NOW, vertical=True)
        names = ("same word", "same topic", "different topics", "[MASK] at [MASK]")
        return [
            Figure(
                "play-li2023",
                "Values learn first, attention starts later",
                "Left: the size of the attention scores. Dashed: the linear system around zero, "
                "and (ε² d_a/2) exp(2∫σ dt), both driven by a run in which attention is frozen at "
                "uniform. Where they reach 1, attention starts. Middle: attention that words pay "
                "to the same word, the same topic and other topics, and [MASK] to itself; uniform "
                "attention is 1. "
                "Right: the loss with attention and without.",
                (
                    Panel(
                        "size of the attention scores",
                        TIME,
                        "‖W^Kᵀ W^Q‖₂",
                        (
                            Line(times, norm, "with attention", 0),
                            Line(
                                times,
                                np.where(ahead < CEILING, ahead, np.nan),
                                "theory",
                                theory=True,
                            ),
                            Line(
                                times,
                                np.where(closed < CEILING, closed, np.nan),
                                "theory",
                                theory=True,
                            ),
                            now,
                        ),
                        yscale="log",
                    ),
                    Panel(
                        "attention over uniform attention",
                        TIME,
                        "times uniform",
                        (
                            *(
                                Line(times, kinds[:, i], name, i + 1)
                                for i, name in enumerate(names)
                            ),
                            now,
                        ),
                    ),
                    Panel(
                        "loss over training",
                        TIME,
                        "cross-entropy (nats)",
                        (
                            Line(times, losses[0], "with attention", 0),
                            Line(times, losses[1], "without attention", 5),
                            now,
                        ),
                    ),
                ),
            )
        ]

    def attention(self, tree: xr.DataTree) -> Attention:
        """Return what the words of a small document look at."""
        ids, topic = self.sentence(), self.documents_task().topic_of
        names = tuple(
            f"{'ABCDEFGHIJ'[topic[i]]}{(i - 1) % self.words + 1}" if i else "[MASK]" for i in ids
        )
        return Attention(
            "Attention within one document",
            "Rows look at columns; the letter is the topic of a word, and words are sorted by it. "
            "Two are hidden: the first thing to learn is not to look at them. Numbers are percent.",
            tree["observables/time"].to_numpy(),
            "time",
            names,
            names,
            select(tree, "attention", LEARNED).to_numpy()[0],
            tuple(int(topic[i]) for i in ids),
            (-1,) * len(ids),
        )

    def outcome(self, tree: xr.DataTree, found: Sequence[Finding]) -> str:
        """Say when attention started."""
        loss = float(select(tree, "loss", LEARNED).isel(run=0, step=-1))
        measured = _li2023_claims.measured(tree)
        if np.isnan(measured):
            return f"Loss {loss:.3g} nats; attention has not started yet."
        onset = float(tree["theory/onset"])
        said = f"predicted {onset:.0f}" if np.isfinite(onset) else "not predicted"
        return f"Loss {loss:.3g} nats; attention started at time {measured:.0f}, {said}."


def _pairs(topic: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Return pairs of words, [MASK] left out: the same, of one topic, of different topics."""
    same = torch.from_numpy(topic[1:, None] == topic[None, 1:])
    word = torch.eye(len(topic) - 1, dtype=torch.bool)
    return word, same & ~word, ~same


def _topic(model: nn.Module) -> TopicTransformer:
    return cast(TopicTransformer, model)
