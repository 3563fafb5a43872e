"""A table of the reader's own: what the counts say of it, and the bag of words of Lu 2021 on it.

The prediction is that of `attnscope predict` with another smoothing of the counts. The model is a
score and an embedding a word with a fixed classifier, trained by gradient flow on some of the
texts. What it attends to is put beside what was said, moment by moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnscope.engines import Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.bag_attention import BagAttention
from attnscope.models.classifiers import FixedLinear
from attnscope.models.objective import BagObjective
from attnscope.prediction.asked import AskedLabelled
from attnscope.probes.evidence.bags import LabelledBags
from attnscope.probes.evidence.predictors import LogOdds, Mixture, WeightIdf, attraction
from attnscope.probes.lexicon.agreement import mean_agreement
from attnscope.tasks.bags import Bags

TEXTS, LONGEST = 4000, 120
"""Texts that are trained on at most, drawn at random, and words of a text."""
LOOKED = 400
"""Texts in which attention is compared with what was said."""
PARTS, MOMENTS = 10, 4
"""Parts in which training is told, and moments of each."""
FIRST, EMBEDDING, LR = 1e-6, 15, 0.1
KEPT = ("table", "accuracy", "certainty", "texts", "labels")
"""What does not depend on the smoothing."""


class Smoothed(AskedLabelled):
    """A question about labelled text, with a smoothing of its own."""

    pseudo: float = 1.0

    @cached_property
    def predictor(self) -> Mixture:
        """The predictor of `attnscope predict`, its log odds with so many pseudo-counts."""
        return Mixture((LogOdds(self.pseudo), WeightIdf(0.1)))

    @cached_property
    def evidence(self) -> NDArray[np.float64]:
        """e_wc, shape ``(word, class)``."""
        return self.predictor.evidence(self.table.bags)

    @property
    def leak(self) -> float:
        """None: what is trained here is a bag of words, and a position is its word."""
        return 0.0


def smoothed(asked: AskedLabelled, pseudo: float) -> Smoothed:
    """Return the same question with another smoothing; what can be kept is not counted again."""
    made = Smoothed(asked.data, asked.without, asked.tell, asked.seed, asked.sentences)
    made.__dict__["pseudo"] = pseudo
    for name in KEPT:
        made.__dict__[name] = getattr(asked, name)
    return made


@dataclass(frozen=True, eq=False)
class Moments:
    """A part of a training.

    Args:
        epochs: shape ``(moment,)``.
        scores: of every word, shape ``(moment, word)``.
        losses: shape ``(moment,)``.
    """

    epochs: NDArray[np.float64]
    scores: NDArray[np.float64]
    losses: NDArray[np.float64]


def training(asked: AskedLabelled, epochs: int) -> Iterator[Moments]:
    """Train by gradient flow, and yield the course part by part, the start first.

    Raises:
        AttnscopeError: no text holds a word, or training broke down.
    """
    ids, mask, labels = padded(asked)
    words, classes = len(asked.table.words), len(asked.classes)
    bags = Bags(torch.from_numpy(ids), torch.from_numpy(labels), words, torch.from_numpy(mask))
    dice = torch.Generator().manual_seed(asked.seed)
    reader = FixedLinear(max(EMBEDDING, classes), classes, generator=dice)
    model = BagAttention(words, max(EMBEDDING, classes), reader, std=1e-3, generator=dice)
    loss = BagObjective(bags)
    done = 0.0
    for part in range(PARTS):
        seen: list[NDArray[np.float64]] = []
        losses: list[float] = []

        def read(m: nn.Module, seen: list[NDArray[np.float64]] = seen) -> Tensor:
            assert isinstance(m, BagAttention)
            found = m.scores().detach()
            seen.append(found.numpy().astype(float))
            return found

        def height(m: nn.Module, losses: list[float] = losses) -> Tensor:
            assert isinstance(m, BagAttention)
            found = loss(m).detach()
            losses.append(float(found))
            return found

        record = (Observable("score", read, ("word",)), Observable("loss", height))
        steps = max(1, round(epochs / PARTS))
        # A flow has no memory: one part goes on where the last one ended.
        ended = Flow(lr=LR, epochs=steps).run(
            model,
            loss,
            record=[Record(record, Linear(MOMENTS + 1))],
        )
        times = np.linspace(0, steps, MOMENTS + 1)
        if len(seen) != len(times):
            raise AttnscopeError(f"Training ended early: {ended.status}")
        first = 0 if part == 0 else 1
        yield Moments((done + times)[first:], np.array(seen[first:]), np.array(losses[first:]))
        done += steps


def padded(
    asked: AskedLabelled,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return words, where there are some, and labels of the texts that are trained on."""
    order = np.random.default_rng(asked.seed).permutation(len(asked.texts))
    rows, labels = [], []
    for i in order:
        row = asked.table.ids(asked.table.split(asked.texts[int(i)]))[:LONGEST]
        if len(row):
            rows.append(row)
            labels.append(int(asked.labels[i]))
        if len(rows) == TEXTS:
            break
    if not rows:
        raise AttnscopeError("No text holds a word: there is nothing to train on.")
    width = max(map(len, rows))
    ids, mask = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), bool)
    for at, row in enumerate(rows):
        ids[at, : len(row)], mask[at, : len(row)] = row, True
    return ids, mask, np.array(labels, dtype=np.int64)


class Beside:
    """Attention put beside what was said, on the same texts at every moment.

    Args:
        asked: what was asked, with its smoothing.
    """

    def __init__(self, asked: Smoothed) -> None:
        ids, mask, _ = padded(asked)
        self.ids, self.mask = ids[:LOOKED], mask[:LOOKED]
        self.said = asked.attraction[self.ids]
        bags: LabelledBags = asked.table.bags
        mixed = np.random.default_rng([asked.seed, 1]).permutation(bags.labels)
        self.shuffled = attraction(asked.predictor.evidence(bags.relabelled(mixed)))[self.ids]

    def share(self, scores: NDArray[np.float64], *, shuffled: bool = False) -> float:
        """Return the share of texts whose most attended word is the one that was named."""
        named = self.shuffled if shuffled else self.said
        return mean_agreement(scores[self.ids], named, self.mask, FIRST).value

    @property
    def chance(self) -> float:
        """What a word at random would have."""
        return float((1 / self.mask.sum(axis=1)).mean())


def learned(scores: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return attention on one text at every moment, shape ``(moment, word)``."""
    if not len(ids):
        return np.zeros((len(scores), 0))
    own = scores[:, ids]
    weights = np.exp(own - own.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
