"""One model on topic words at a setting of your choice; the lab plays it (sections 4 and 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from attnscope.bounds import Count, Several
from attnscope.claims import Claim, Finding, above, below
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models.classifiers import ClassifierKind
from attnscope.models.objective import BagObjective
from attnscope.report import Figure, Line, Mark, Panel, Rule
from attnscope.studies.lu2021._topic_words import attended_of, bag, norm_of, score_of
from attnscope.studies.lu2021.sen import Sen
from attnscope.tasks import TopicWordsData
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final, initial


@dataclass(frozen=True)
class TopicWordsRun(Playable, Sen):
    """One run of Lu's model on topic words, with the theory of scores and norms."""

    seeds: Count = 1
    training: Flow = Flow(lr=0.1, epochs=5000)
    points: Several = 101
    """Record points, evenly spaced."""
    classifier: ClassifierKind = "FC"
    """What reads the context vector: fixed, trained linear, or two layers."""

    quick = {}

    @property
    def cases(self) -> tuple[str, ...]:  # type: ignore[override]
        """The classifier."""
        return (self.classifier,)

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient flow; coarser where the ReLUs of two layers switch all the time."""
        if case != "TL":
            return self.training
        return Flow(lr=5 * (self.training.lr or 0.1), rtol=1e-3, atol=1e-4)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run: curves of topic words, and attention on one unseen sentence."""
        data = self.task.sample(seed)
        words, loss, sentence = data.task.topic_words, BagObjective(data.train), _sentence(data)
        curves = (
            score_of(words),
            norm_of(words),
            Observable(
                "other_score",
                lambda m: bag(m).scores()[words:].abs().max(),
                meaning="largest |score| of a non-topic word",
            ),
            Observable(
                "attention",
                lambda m: torch.softmax(bag(m).scores()[sentence], dim=0),
                ("position",),
                meaning="attention on the first test sentence",
            ),
        )
        # A loss costs as much as everything else that is read.
        losses = (Observable("loss", loss, (), "nats", "mean cross-entropy"),)  # type: ignore[arg-type]
        ends = (
            attended_of(data),
            Observable("score_all", lambda m: bag(m).scores(), ("vocab",), "", "s_w of all words"),
        )
        records = [
            Record(curves, Linear(self.points)),
            Record(losses, Linear(min(41, self.points)), dim="probe"),
            Record(ends, Linear(2), dim="snapshot"),
        ]
        return Problem(self.model(self.classifier, seed), loss, records)

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict norms by Corollary 1, and for a fixed classifier all curves before training."""
        score, task = run.score, self.task
        times, ahead = score["time"].to_numpy(), xr.full_like(score, np.nan, dtype=float)
        loss = ahead.isel(word=0).copy()
        for seed in score["seed"].to_numpy() if self.classifier == "FC" else ():
            share = self.shares(int(seed))
            norm = lu2021.fixed_linear_norm(times, task.m, task.topics, share)
            ahead.loc["FC", seed] = norm
            losses = lu2021.fixed_linear_loss(norm, task.m, task.topics)
            loss.loc["FC", seed] = losses @ (share / share.sum())
        return {
            "norm": (score.dims, lu2021.norm_from_score(score, task.m)),
            "norm_ahead": ahead.assign_attrs(meaning="closed solution, before training"),
            "loss_ahead": loss.assign_attrs(meaning="the loss that goes with it"),
        }

    def claims(self) -> list[Claim]:
        """Return what Lu 2021 says of such a run, as the study of its figures says it."""
        known = {claim.key: claim for claim in super().claims()}
        before, apart = (initial, "before training"), known["assumption1-scores"]
        fixed = [known["ahead-of-training"]] if self.classifier == "FC" else []
        return [
            replace(known["corollary1"], per=(self.classifier,)),
            *fixed,
            replace(
                apart,
                sentence=apart.sentence.replace(", in all three models", ""),
                measure=apart.measure.removesuffix(", in the model where it is least"),
            ),
            Claim(
                "attention",
                "The topic word gets the largest weight in every training sentence.",
                lambda run, when: when(run.attended).mean("case"),
                final,
                above(0.999),
                before,
                "Theorem 2",
                "every sentence",
                "share of sentences whose topic word has the largest weight",
            ),
            Claim(
                "loss",
                "The training loss comes close to zero.",
                lambda run, when: when(run.loss).mean("case"),
                final,
                below(0.05),
                before,
                "Theorem 2",
                "close to zero",
                "cross-entropy in nats",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw norm against score, both over time, and the loss, of the first seed."""
        own, known = run.of(self.classifier), self.classifier == "FC"
        score, norm = (own.get(name).isel(seed=0) for name in ("score", "norm"))
        ahead, loss = own.theory.norm_ahead.isel(seed=0), own.loss.isel(seed=0)
        epochs, m = score["epoch"].to_numpy(), self.task.m
        grid = np.linspace(0, max(0.1, float(score.max())), 100)
        predicted = lu2021.score_from_norm(ahead, m).mean(axis=1) if known else ahead[:, 0]
        losses = own.theory.loss_ahead.isel(seed=0).to_numpy()

        def words(x: np.ndarray, y: xr.DataArray) -> list[Mark]:
            columns = (x[:, i] if x.ndim == 2 else x for i in range(y.sizes["word"]))
            each = zip(columns, y.to_numpy().T, strict=True)
            return [Line(c, values, "each topic word", 5, thin=True) for c, values in each]

        def mean(reading: xr.DataArray) -> np.ndarray:
            return reading.mean("word").to_numpy()

        now, topic = Rule(float(epochs[-1]), NOW, vertical=True), "mean topic word"
        other = own.other_score.isel(seed=0).to_numpy()
        closed = Line(grid, lu2021.norm_from_score(grid, m), "theory", theory=True)
        plane = (*words(score.to_numpy(), norm), Line(mean(score), mean(norm), topic, 0), closed)
        rise = (
            *words(epochs, score),
            Line(epochs, mean(score), topic, 0),
            Line(epochs, other, "largest non-topic word", 1),
            Line(epochs, np.asarray(predicted), "theory", theory=True),
            now,
        )
        fall = (
            Line(loss["epoch_probe"].to_numpy(), loss.to_numpy(), "training loss", 2),
            Line(epochs, losses, "theory", theory=True),
            now,
        )
        caption = (
            "Left: the embedding norm of topic words against their score. Dashed: "
            "√(2(s + (exp(s) - 1)/m)), which knows nothing of the classifier (Corollary 1). "
            "Middle and right: over training. "
        )
        caption += (
            "Dashed: the closed solution for a fixed classifier, computed before training from m, "
            "the number of topics and word counts alone."
            if known
            else "There is a solution before training only for the fixed classifier."
        )
        nats = "cross-entropy (nats)"
        return [
            Figure(
                "play-lu2021",
                "Score and embedding norm of the topic words",
                caption,
                (
                    Panel("norm against score", "score", "embedding norm", plane),
                    Panel("score over training", "epoch", "score", rise),
                    Panel("loss over training", "epoch", nats, fall, "linear", "log"),
                ),
            )
        ]

    def tables(self, run: Readings) -> list:
        """Tabulate nothing: the figure says it all."""
        return []

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return what the model attends to in a sentence that it was not trained on."""
        data = self.task.sample(self.draw)
        ids, words = _sentence(data).tolist(), data.task.topic_words
        names = [
            f"topic {i // self.task.words_per_topic + 1}{'ab'[i % 2]}" if i < words else f"word {i}"
            for i in ids
        ]
        seen = run.of(self.classifier).get("attention").isel(seed=0)
        topic = next(i for i, word in enumerate(ids) if word < words)
        return AttentionOverTime(
            "Attention on one sentence that was not trained on",
            "One word names the topic; the others say nothing. Bars are attention weights.",
            seen["epoch"].to_numpy(),
            "epoch",
            tuple(names),
            ("the sentence",),
            seen.to_numpy()[:, None, :],
            tuple(0 if i == topic else -1 for i in range(len(ids))),
            (topic,),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say the final loss and attention."""
        own = run.of(self.classifier)
        loss, weights = (final(own.get(name)).isel(seed=0) for name in ("loss", "attention"))
        weight = float(weights.max())
        return f"Loss {float(loss):.3g} nats; the topic word gets {weight:.0%} of attention."


def _sentence(data: TopicWordsData) -> Tensor:
    """Return the words of the first test sentence, its topic word somewhere in the middle."""
    words = data.test.ids[0]
    place = (3 * len(words)) // 7
    return torch.cat([words[1 : place + 1], words[:1], words[place + 1 :]])
