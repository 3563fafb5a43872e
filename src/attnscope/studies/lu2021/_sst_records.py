"""What is read off a model while it learns real text."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Final, Logarithmic, Observable, Patience, Record
from attnscope.models import BagAttention
from attnscope.models.objective import BagObjective
from attnscope.probes.purity import attended_words
from attnscope.tasks import Bags
from attnscope.tasks.text_bags import TextBags
from attnscope.theory import lu2021

Pair = tuple[int, int]
MOST_NEIGHBOURS = 40_000_000
"""Pairs of words in one sentence that averages over Ψ_t may hold: about a gigabyte of memory."""


def records(
    text: TextBags, words: np.ndarray, pair: Pair, stop: Patience, lr: float, points: int
) -> list[Record]:
    """Return the readings of a run.

    Args:
        text: the sentences.
        words: numbers of the words that are followed through training.
        pair: the two words whose competition is followed.
        stop: the rule that ends the run.
        lr: learning rate.
        points: record points of the curves; every third of them also looks at whole sentences.
    """
    every = torch.from_numpy(words)
    sentence, positions = together(text.train, pair)
    sets = lu2021.PsiSets(text.train, words)
    company = words_in_company(text.train)
    if neighbours(text.train, company) > MOST_NEIGHBOURS:
        company = words
    all_sets = lu2021.PsiSets(text.train, company)
    objective = BagObjective(text.train)

    def weights(model: nn.Module) -> Tensor:
        if sentence < 0:
            return torch.full((2,), torch.nan)
        row = text.train[torch.tensor([sentence])]
        return bag(model).attention(row)[0, positions]

    def whole(model: nn.Module) -> Tensor:
        out = np.full((text.train.vocabulary, 4), np.nan, dtype=np.float32)
        out[company] = sides(bag(model), all_sets, objective)
        return torch.from_numpy(out)

    def led(model: nn.Module) -> Tensor:
        dice = torch.Generator().manual_seed(0)
        return attended_words(bag(model).scores(), text.train, dice)

    curves = (
        _loss("loss", text.train, "mean cross-entropy of the training sentences"),
        _loss("dev_loss", text.dev, "mean cross-entropy of the dev sentences"),
        _accuracy("dev_accuracy", text.dev),
        _accuracy("test_accuracy", text.test),
        Observable("score", lambda m: bag(m).scores()[every], ("word",), "", "s_w"),
        Observable(
            "norm", lambda m: bag(m).embeddings_of(every).norm(dim=1), ("word",), "", "‖v_w‖"
        ),
        Observable("pair_attention", weights, ("pair",), "", "attention on two words, in one"),
    )
    sentences = (
        Observable(
            "identity",
            lambda m: torch.from_numpy(sides(bag(m), sets, objective).astype(np.float32)),
            ("word", "side"),
            "",
            "both sides of eq (9), then both sides of eq (8)",
        ),
        Observable("attended", led, ("sentence",), "", "word of the largest score"),
    )
    end = (
        Observable("score_all", lambda m: bag(m).scores(), ("vocab",), "", "s_w of all words"),
        Observable(
            "norm_all", lambda m: bag(m).embeddings().norm(dim=1), ("vocab",), "", "‖v_w‖ of all"
        ),
        Observable("identity_all", whole, ("vocab", "side"), "", "the same of all words"),
        _loss("end_dev_loss", text.dev, "dev loss at the best look"),
        _accuracy("end_dev_accuracy", text.dev),
        _accuracy("end_test_accuracy", text.test),
        Observable(
            "best_epoch", lambda _: torch.tensor(stop.best_time / lr), (), "epochs", "best dev loss"
        ),
    )
    first = 50 * lr
    return [
        Record(curves, Logarithmic(points, first)),
        Record(sentences, Logarithmic(max(2, points // 3), first), dim="probe"),
        Record(end, Final(), dim="end"),
    ]


def sides(model: BagAttention, sets: lu2021.PsiSets, objective: BagObjective) -> np.ndarray:
    """Return both sides of eqs (9) and (8) for each word, shape ``(word, side)``.

    In this order: s + exp(s)⟨1/Z(χ∖t)⟩ and ½‖v - ⟨v̄(χ∖t)⟩‖², whose growth eq (9) says is equal;
    then ds/dt as it is, and as eq (8) has it, (v - ⟨v̄(χ∖t)⟩)ᵀ dv/dt / ⟨Z(χ)/Z(χ∖t)⟩.
    """
    scores, embeddings = model.scores().detach(), model.embeddings().detach()
    means = sets.averages(scores, embeddings)
    own = scores.double().numpy()[sets.words]
    distance = embeddings.double().numpy()[sets.words] - means.context
    speed, push = _speeds(model, objective, sets.words)
    return np.stack(
        [
            own + np.exp(own) * means.inverse_z,
            (distance**2).sum(axis=1) / 2,
            speed,
            (distance * push).sum(axis=1) / means.ratio,
        ],
        axis=1,
    )


def _speeds(
    model: BagAttention, objective: BagObjective, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ds/dt and dv/dt of some words under gradient flow."""
    with torch.enable_grad():
        score = model.score_source.get_parameter("score")
        slopes = torch.autograd.grad(objective(model), (score, model.embedding))
    scale = float(model.score_source.scale())
    down = [-scale * slope.detach().double().numpy()[words] for slope in slopes]
    return down[0], down[1]


def together(bags: Bags, pair: Pair) -> tuple[int, list[int]]:
    """Return the first sentence that holds both words and where they stand; -1 if none does."""
    held = [(bags.ids == word) & _occupied(bags) for word in pair]
    both = torch.nonzero(held[0].any(dim=1) & held[1].any(dim=1))
    if not both.numel():
        return -1, [0, 0]
    sentence = int(both[0, 0])
    return sentence, [int(h[sentence].int().argmax()) for h in held]


def words_in_company(bags: Bags, least: int = 1) -> np.ndarray:
    """Return the words that stand in ``least`` sentences or more, and beside another in one."""
    rows, ids = bags.sentences.numpy(), bags.words.numpy()
    # A sentence may be one word said twice: what counts is whether another stands beside it.
    kinds = np.bincount(np.unique(rows * bags.vocabulary + ids) // bags.vocabulary)
    most = np.zeros(bags.vocabulary, dtype=np.int64)
    np.maximum.at(most, ids, kinds[rows])
    return np.flatnonzero((bags.occurrences.numpy() >= least) & (most > 1))


def neighbours(bags: Bags, words: np.ndarray) -> int:
    """Return how many times one of some words stands beside another, which is what Ψ_t costs."""
    listed = np.zeros(bags.vocabulary, dtype=bool)
    listed[words] = True
    pairs = np.unique(bags.sentences.numpy() * bags.vocabulary + bags.words.numpy())
    rows = pairs[listed[pairs % bags.vocabulary]] // bags.vocabulary
    return int((np.bincount(rows).astype(np.int64) ** 2).sum())


def bag(model: nn.Module) -> BagAttention:
    """Return the model under its own type."""
    assert isinstance(model, BagAttention)
    return model


def _occupied(bags: Bags) -> Tensor:
    return torch.ones_like(bags.ids, dtype=torch.bool) if bags.mask is None else bags.mask


def _loss(name: str, bags: Bags, meaning: str) -> Observable:
    objective = BagObjective(bags)
    return Observable(name, lambda m: objective(bag(m)), (), "nats", meaning)


def _accuracy(name: str, bags: Bags) -> Observable:
    def read(model: nn.Module) -> Tensor:
        logits: Tensor = model(bags)
        return (logits.argmax(dim=1) == bags.labels).double().mean()

    return Observable(name, read, (), "", "share of sentences classified rightly")
