"""One transformer on topic documents at a setting of your choice; the lab plays it (Fig 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, Finding, above, below
from attnscope.engines import Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.report import Figure, Line, Mark, Panel, Rule
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023.onset.claims import AHEAD
from attnscope.studies.li2023.onset.readings import onset
from attnscope.tasks import TopicDocuments
from attnscope.tasks.topic_documents import MASK
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import (
    UniformGradient,
    near_zero,
    score_norm,
)
from attnscope.trajectory import Readings, final, initial

UNIFORM, LEARNED = "uniform", "learned"
MOST_WORDS = 50
"""T v, so that no setting takes long."""
SENTENCE = 12
"""Words of the document that attention is shown on."""
CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""
TIME = "time (learning rate × steps)"


@dataclass(frozen=True)
class TopicDocumentsRun(Playable, TopicDocumentsStudy):
    """One run on topic documents, and one without attention that predicts when it starts."""

    seeds: Count = 1
    training: Flow = Flow(until=1500.0, rtol=1e-5, atol=1e-8)
    points: Several = 61
    """Record points, evenly spaced."""
    topics: Count = 5
    """T, number of topics."""
    words: Count = 5
    """v, words of each topic."""
    tau: Count = 2
    """τ, distinct topics of a document."""
    documents: Count = 100
    """Documents; all of them make every step."""
    length: Count = 64
    """N, positions of a document."""
    noise: Positive = 1e-2
    """ε, standard deviation of the initial entries of W^K and W^Q."""
    value_noise: Positive = 1e-2
    """Standard deviation of the initial entries of W^V."""

    cases = (UNIFORM, LEARNED)
    labels = {
        "kind": ("same word", "same topic", "different topics", "[MASK] at [MASK]"),
        "block": ("within", "across"),
    }

    def check(self) -> None:
        """Check that documents differ, and that no run takes long."""
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

    def engine(self, case: str, seed: int) -> Flow:
        """Return gradient flow, which follows keys and queries as small as the noise."""
        return replace(self.training, atol=min(self.training.atol, 1e-3 * self.noise))

    def start(self, case: str, seed: int) -> TopicTransformer:
        """Return the model at time 0."""
        noise = 1.0 if case == UNIFORM else self.noise
        words = self.documents_task().vocabulary
        kind = cast(Any, case)
        return near_zero(words, kind, noise, self.value_noise, seed, torch.float64)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; both see the same documents from the same W^V."""
        task = self.documents_task()
        documents, ids, topic = task.sample(self.documents, seed), self.sentence(), task.topic_of
        loss, pairs = TopicObjective(documents), _pairs(topic)

        def kinds(model: nn.Module) -> Tensor:
            weights = _topic(model).attention_by_word() * len(topic)
            between = weights[1:, 1:]
            return torch.stack([*(between[kind].mean() for kind in pairs), weights[0, 0]])

        def blocks(model: nn.Module) -> Tensor:
            values = _topic(model).word_map()[1:, 1:]
            return torch.stack([values[~pairs[2]].mean(), values[pairs[2]].mean()])

        def shown(model: nn.Module) -> Tensor:
            own = _topic(model)
            scores = own.score_matrix()[ids][:, ids] / own.attention_dim**0.5
            return torch.softmax(scores, dim=0).T

        curves = (
            Observable("loss", cast(Any, loss), (), "nats", "cross-entropy"),
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
            Observable("kinds", kinds, ("kind",), "", "attention over uniform attention"),
            Observable("blocks", blocks, ("block",), "", "W^V within a topic, and across"),
            Observable("attention", shown, ("query", "key"), "", "on one document"),
        )
        records = [Record(curves, Linear(self.points))]
        if case == UNIFORM:
            *_, gradient = UniformGradient(documents, torch.float64).observables()
            records.append(Record((gradient,), Linear(self.points), dim="probe"))
        return Problem(self.start(case, seed), loss, records)

    def sentence(self) -> np.ndarray:
        """Return the words of a small unseen document, sorted by topic, two of them hidden."""
        drawn = self.documents_task(SENTENCE).sample(1, self.draw + 1_000_003)
        return np.concatenate([[MASK, MASK], np.sort(drawn.ids[0].numpy())[2:]])

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Predict ‖W^Kᵀ W^Q‖₂ from the run without attention alone.

        ``score_norm`` is the linear system around zero from the actual start;
        ``score_norm_closed`` knows the size of the noise only: the norm of the average over starts.
        """
        norms = run.score_norm
        times, nothing = norms["time"].to_numpy(), xr.full_like(norms, np.nan, dtype=float)
        linear, closed = nothing.copy(), nothing.copy()
        for seed in norms["seed"].to_numpy():
            driven = (times, run.of(UNIFORM).gradient.sel(seed=seed).to_numpy())
            start = self.start(LEARNED, int(seed)).keys_and_queries()
            keys, queries = (side.detach().numpy() for side in start)
            found = li2023.propagate(keys, queries, *driven).norms
            linear.loc[LEARNED, seed][: len(found)] = found
            mean = li2023.expected_norms(*driven, self.noise, keys.shape[0])
            closed.loc[LEARNED, seed][: len(mean)] = mean
        return {
            "score_norm": linear.assign_attrs(meaning="the linear system"),
            "score_norm_closed": closed,
        }

    def claims(self) -> list[Claim]:
        """Return what can be said of such a run."""

        def error(run: Readings, factor: float) -> xr.DataArray:
            # A linear system: a tenth of the noise is a hundredth of the product, at all times.
            own = run.of(LEARNED)
            predicted = onset(own.theory.score_norm * factor**2)
            if factor < 1:
                predicted = predicted.fillna(self.end)
            return abs(predicted / onset(own.score_norm) - 1)

        def asleep(run: Readings, share: float) -> xr.DataArray:
            norms = run.of(LEARNED).score_norm
            return norms.isel(step=int(share * (norms.sizes["step"] - 1)))

        def gain(run: Readings, when: Any) -> xr.DataArray:
            with_it, without = (when(run.of(case).loss) for case in (LEARNED, UNIFORM))
            return without - with_it

        def over_training(name: str, run: Readings, when: Any) -> xr.DataArray:
            return when(run.of(LEARNED).get(name))

        def topics(run: Readings, when: Any) -> xr.DataArray:
            kinds = over_training("kinds", run, when)
            return kinds.sel(kind="same topic") / kinds.sel(kind="different topics")

        def values(run: Readings, when: Any) -> xr.DataArray:
            blocks = over_training("blocks", run, when)
            return blocks.sel(block="within") - blocks.sel(block="across")

        def masks(run: Readings, when: Any) -> xr.DataArray:
            return over_training("kinds", run, when).sel(kind="[MASK] at [MASK]")

        later = partial(Claim, given=final, control=(initial, "before training"))
        return [
            Claim(
                "onset",
                "A run without any attention says when attention starts.",
                error,
                1.0,
                AHEAD,
                (0.1, "the prediction for a tenth of the noise"),
                "beyond the paper; Fig 4",
                "one onset",
                "relative error of the onset",
            ),
            Claim(
                "two-stages",
                "There are two stages: after a quarter of training, attention still sleeps.",
                asleep,
                0.25,
                below(0.3),
                (1.0, "the end of training"),
                "section 5, Fig 4",
                "W^V first, then W^K and W^Q",
                "‖W^Kᵀ W^Q‖₂, where 1 counts as awake",
            ),
            later(
                "values",
                "The values learn topics: words of one topic vote for each other.",
                of=values,
                holds=above(0.3),
                source="Theorem 2",
                paper="blocks",
                measure="mean entry of W^V within a topic minus across topics",
            ),
            later(
                "masks",
                "The first thing attention learns is that a hidden word need not look at hidden "
                "words.",
                of=masks,
                holds=below(0.5),
                source="beyond the paper",
                paper="not stated",
                measure="attention of [MASK] to [MASK], over uniform attention",
            ),
            later(
                "useful",
                "Once it is awake, attention lowers the loss.",
                of=gain,
                holds=above(0.01),
                source="beyond the paper",
                paper="not stated",
                measure="loss without attention minus loss with it, in nats",
            ),
            later(
                "attention",
                "Words attend more to other words of their topic than to those of other topics.",
                of=topics,
                holds=above(1.05),
                source="Theorem 3",
                paper="same topic above different topics",
                measure="same topic over different topics",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the onset of attention, who is attended to, and the loss, of the first seed."""
        own = run.of(LEARNED)
        times = own.loss["time"].to_numpy()
        now = Rule(float(times[-1]), NOW, vertical=True)

        def line(reading: xr.DataArray, label: str, color: int = 0, theory: bool = False) -> Line:
            return Line(times, reading.isel(seed=0).to_numpy(), label, color, theory=theory)

        ahead = (own.theory.get(name) for name in ("score_norm", "score_norm_closed"))
        size: tuple[Mark, ...] = (
            line(own.score_norm, "with attention"),
            *(line(each.where(each < CEILING), "theory", theory=True) for each in ahead),
            now,
        )
        names = self.labels["kind"]
        kinds = (line(own.kinds.sel(kind=name), str(name), i) for i, name in enumerate(names, 1))
        losses = (
            line(own.loss, "with attention", 0),
            line(run.of(UNIFORM).loss, "without attention", 5),
            now,
        )
        score = "size of the attention scores"
        uniform = "attention over uniform attention"
        return [
            Figure(
                "play-li2023",
                "Values learn first, attention starts later",
                "Left: the size of the attention scores. Dashed: the linear system around zero, "
                "and (ε² d_a/2) exp(2∫σ dt), both driven by a run in which attention is frozen at "
                "uniform. Where they reach 1, attention starts. Middle: attention that words pay "
                "to the same word, the same topic and other topics, and [MASK] to itself; uniform "
                "attention is 1. Right: the loss with attention and without.",
                (
                    Panel(score, TIME, "‖W^Kᵀ W^Q‖₂", size, yscale="log"),
                    Panel(uniform, TIME, "times uniform", (*kinds, now)),
                    Panel("loss over training", TIME, "cross-entropy (nats)", losses),
                ),
            )
        ]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return what the words of a small document attend to."""
        ids, topic = self.sentence(), self.documents_task().topic_of
        names = tuple(
            f"{'ABCDEFGHIJ'[topic[i]]}{(i - 1) % self.words + 1}" if i else "[MASK]" for i in ids
        )
        weights = run.of(LEARNED).get("attention").isel(seed=0)
        return AttentionOverTime(
            "Attention within one document",
            "Rows look at columns; the letter is the topic of a word, and words are sorted by it. "
            "Two are hidden: the first thing to learn is not to look at them. Numbers are percent.",
            weights["time"].to_numpy(),
            "time",
            names,
            names,
            weights.to_numpy(),
            tuple(int(topic[i]) for i in ids),
            (-1,) * len(ids),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say when attention started."""
        own = run.of(LEARNED)
        loss = float(final(own.loss)[0])
        measured, ahead = (float(onset(x)[0]) for x in (own.score_norm, own.theory.score_norm))
        if np.isnan(measured):
            return f"Loss {loss:.3g} nats; attention has not started yet."
        said = f"predicted {ahead:.0f}" if np.isfinite(ahead) else "not predicted"
        return f"Loss {loss:.3g} nats; attention started at time {measured:.0f}, {said}."


def _pairs(topic: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Return pairs of words, [MASK] left out: the same, of one topic, of different topics."""
    same = torch.from_numpy(topic[1:, None] == topic[None, 1:])
    word = torch.eye(len(topic) - 1, dtype=torch.bool)
    return word, same & ~word, ~same


def _topic(model: nn.Module) -> TopicTransformer:
    return cast(TopicTransformer, model)
