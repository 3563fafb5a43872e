"""What is read off a model while it learns real text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnscope.engines import Final, Logarithmic, Observable, Patience, Record
from attnscope.models import BagAttention
from attnscope.models.objective import BagObjective
from attnscope.probes.topics.purity import attended_words
from attnscope.studies.lu2021._topic_words import accuracy
from attnscope.tasks import Bags
from attnscope.tasks.text_bags import TextBags
from attnscope.theory import lu2021

SIDES = ("level", "half square", "speed", "lemma2")
"""Both sides of eq (9), then both sides of eq (8)."""
MOST_NEIGHBOURS = 40_000_000
"""Pairs of words in one sentence that averages over Ψ_t may hold: about a gigabyte of memory."""


def records(
    text: TextBags,
    words: np.ndarray,
    pair: tuple[int, int],
    stop: Patience,
    unit: float,
    points: int,
) -> list[Record]:
    """Return the readings of a run.

    Args:
        text: the sentences.
        words: numbers of the words that are followed through training.
        pair: the two words whose competition is followed.
        stop: the rule that ends the run.
        unit: time of an epoch.
        points: record points of the curves; every third of them also reads whole sentences.
    """
    train, objective, every = text.train, BagObjective(text.train), torch.from_numpy(words)
    sentence, positions = together(train, pair)
    company = lu2021.words_in_company(train)
    if lu2021.neighbours(train, company) > MOST_NEIGHBOURS:
        company = words
    sets, all_sets = lu2021.PsiSets(train, words), lu2021.PsiSets(train, company)

    def weights(model: BagAttention) -> Tensor:
        if sentence < 0:
            return torch.full((2,), torch.nan)
        return model.attention(train[torch.tensor([sentence])])[0, positions]

    def whole(model: BagAttention) -> Tensor:
        out = torch.full((train.vocabulary, len(SIDES)), torch.nan)
        out[company] = sides(model, all_sets, objective).float()
        return out

    def attended(model: BagAttention) -> Tensor:
        return attended_words(model.scores(), train, torch.Generator().manual_seed(0))

    def best(_: object) -> Tensor:
        return torch.tensor(stop.best_time / unit)

    def loss(name: str, bags: Bags, meaning: str) -> Observable:
        return _read(name, BagObjective(bags), (), meaning, "nats")

    def right(name: str, bags: Bags) -> Observable:
        meaning = "share of sentences classified rightly"
        return _read(name, lambda m: accuracy(m, bags), (), meaning)

    curves = (
        loss("loss", train, "mean cross-entropy of the training sentences"),
        loss("dev_loss", text.dev, "mean cross-entropy of the dev sentences"),
        right("dev_accuracy", text.dev),
        right("test_accuracy", text.test),
        _read("score", lambda m: m.scores()[every], ("word",), "s_w"),
        _read("norm", lambda m: m.embeddings_of(every).norm(dim=1), ("word",), "‖v_w‖"),
        _read("pair_attention", weights, ("pair",), "attention on two words, in one"),
    )
    both = "both sides of eq (9), then both sides of eq (8)"
    sentences = (
        _read("identity", lambda m: sides(m, sets, objective).float(), ("word", "side"), both),
        _read("attended", attended, ("sentence",), "word of the largest score"),
    )
    end = (
        _read("score_all", lambda m: m.scores(), ("vocab",), "s_w of all words"),
        _read("norm_all", lambda m: m.embeddings().norm(dim=1), ("vocab",), "‖v_w‖ of all"),
        _read("identity_all", whole, ("vocab", "side"), "the same of all words"),
        loss("end_dev_loss", text.dev, "dev loss where it is least"),
        right("end_dev_accuracy", text.dev),
        right("end_test_accuracy", text.test),
        _read("best_epoch", best, (), "best dev loss", "epochs"),
    )
    first = 50 * unit
    return [
        Record(curves, Logarithmic(points, first)),
        Record(sentences, Logarithmic(max(2, points // 3), first), dim="probe"),
        Record(end, Final(), dim="end"),
    ]


def sides(model: BagAttention, sets: lu2021.PsiSets, objective: BagObjective) -> Tensor:
    """Return both sides of eqs (9) and (8) for each word, under gradient flow."""
    with torch.enable_grad():
        score = model.score_source.get_parameter("score")
        slopes = torch.autograd.grad(objective(model), (score, model.embedding))
    scale = float(model.score_source.scale())
    speed, push = (-scale * slope.double() for slope in slopes)
    both = sets.sides(model.scores().detach(), model.embeddings().detach(), speed, push)
    return torch.from_numpy(both)


def together(bags: Bags, pair: tuple[int, int]) -> tuple[int, list[int]]:
    """Return the first sentence that holds both words and where they stand; -1 if none does."""
    held = [bags.ids == word for word in pair]
    if bags.mask is not None:
        held = [each & bags.mask for each in held]
    both = torch.nonzero(held[0].any(dim=1) & held[1].any(dim=1))
    if not both.numel():
        return -1, [0, 0]
    sentence = int(both[0, 0])
    return sentence, [int(each[sentence].int().argmax()) for each in held]


def _read(
    name: str, of: Callable[[Any], Tensor], dims: tuple[str, ...], meaning: str, unit: str = ""
) -> Observable:
    return Observable(name, of, dims, unit, meaning)
