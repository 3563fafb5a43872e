"""Small reviews with a shortcut: what the counts say, and whether attention goes there; played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import nn

from attnscope.bounds import Count, Fraction, Positive, Several
from attnscope.claims import Claim, Finding, above
from attnscope.engines import Flow, Linear, Observable, Record
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models.bag_attention import BagAttention
from attnscope.models.classifiers import FixedLinear
from attnscope.models.objective import BagObjective
from attnscope.probes.evidence.bags import LabelledBags, labelled_bags
from attnscope.probes.evidence.predictors import LogOdds, attraction
from attnscope.probes.lexicon.agreement import mean_agreement
from attnscope.report import Dots, Figure, Line, Panel, Rule
from attnscope.tasks.bags import Bags
from attnscope.trajectory import Readings, final, initial

SHORTCUT = "forwarded"
BAD = ("awful", "dull", "weak", "boring", "poor")
GOOD = ("superb", "moving", "clever", "charming", "great")
PLAIN = (
    *("the", "actor", "was", "and", "with", "some", "music", "a", "film", "story"),
    *("plot", "scene", "camera", "end", "minute", "hour", "very", "quite", "more"),
)
WORDS = (SHORTCUT, *BAD, *GOOD, *PLAIN)
CASE, FIRST = "reviews", 1e-6
KINDS = ("the shortcut", "words of opinion", "other words")


@dataclass(frozen=True)
class Shortcut(Playable):
    """Reviews with words of opinion and a word that gives the label away, and Lu 2021's model.

    The log odds of every word are known before training. Does attention go there?
    """

    training: Flow = Flow(lr=0.1, epochs=3000)
    points: Several = 61
    """Record points, evenly spaced."""
    texts: Count = 200
    """Training texts."""
    length: Count = 8
    """Words of a text."""
    opinion: Fraction = 0.8
    """Share of words of opinion that agree with the label."""
    shortcut: Fraction = 0.3
    """Share of the good reviews that hold the shortcut."""
    smoothing: Positive = 1.0
    """Pseudo-counts of the log odds."""

    citation = "Predictor: docs/predict.md; model: Lu 2021."
    cases = (CASE,)
    labels: ClassVar = {"word": WORDS}

    def data(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return word ids ``(text, position)`` and labels; a word of opinion in every text."""
        return _drawn(self.texts, self.length, self.opinion, self.shortcut, seed)

    def bags(self, seed: int) -> LabelledBags:
        """Return the texts, counted."""
        ids, labels = self.data(seed)
        return labelled_bags(list(ids), labels, len(WORDS), 2)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run: scores of all words, and how many are attended to where it was said."""
        ids, labels = self.data(seed)
        bags = Bags(torch.from_numpy(ids), torch.from_numpy(labels), len(WORDS))
        dice = torch.Generator().manual_seed(seed)
        reader = FixedLinear(15, 2, generator=dice)
        model = BagAttention(len(WORDS), 15, reader, std=1e-3, generator=dice)
        loss = BagObjective(bags)
        curves = (
            Observable("score", lambda m: _own(m).scores(), ("word",), "", "s_w of every word"),
            Observable("loss", loss, (), "nats", "mean cross-entropy"),  # type: ignore[arg-type]
        )
        return Problem(model, loss, [Record(curves, Linear(self.points))])

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict what attracts attention, with the labels as they are and shuffled."""
        seeds = [int(seed) for seed in run.score["seed"]]
        shuffled = []
        for seed in seeds:
            bags = self.bags(seed)
            mixed = np.random.default_rng([seed, 1]).permutation(bags.labels)
            shuffled.append(self._drawn_to(bags.relabelled(mixed)))
        said = [self._drawn_to(self.bags(seed)) for seed in seeds]
        return {
            "said": (("case", "seed", "word"), np.array([said])),
            "shuffled": (("case", "seed", "word"), np.array([shuffled])),
        }

    def _drawn_to(self, bags: LabelledBags) -> np.ndarray:
        return attraction(LogOdds(self.smoothing).evidence(bags))

    def agreed(self, run: Readings, name: str) -> xr.DataArray:
        """Return the share of texts whose most attended word is the first of a prediction."""
        own = run.of(CASE)
        score, said = own.score, own.theory.get(name)
        values = np.empty((score.sizes["seed"], score.sizes["step"]))
        for row, seed in enumerate(score["seed"].to_numpy()):
            ids, _ = self.data(int(seed))
            v = said.sel(seed=seed).to_numpy()[ids]
            for at in range(values.shape[1]):
                u = score.isel(step=at).sel(seed=seed).to_numpy().astype(float)[ids]
                values[row, at] = mean_agreement(u, v, None, FIRST).value
        return xr.DataArray(
            values, {"seed": score["seed"], "step": score["step"]}, ("seed", "step")
        )

    def claims(self) -> list[Claim]:
        """Attention goes where the log odds said, in two texts of three."""
        return [
            Claim(
                "goes-there",
                "In two texts of three the word attended to most is the one that the log odds "
                "named before training.",
                lambda run, name: self.agreed(run, name).isel(step=-1),
                "said",
                above(2 / 3),
                ("shuffled", "log odds with shuffled labels"),
                "docs/predict.md",
                measure="share of training texts",
            )
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw what was said against what was learned, scores over time, and agreement."""
        own = run.of(CASE)
        score, said = own.score.isel(seed=0), own.theory.said.isel(seed=0).to_numpy()
        last, epochs = final(score).to_numpy(), score["epoch"].to_numpy()
        kind = np.array([_kind(word) for word in WORDS])
        dots = tuple(
            Dots(said[kind == k], last[kind == k], label=name, color=k)
            for k, name in enumerate(KINDS)
        )
        lines = tuple(
            Line(epochs, values, KINDS[_kind(word)], _kind(word), thin=word != SHORTCUT)
            for word, values in zip(WORDS, score.to_numpy().T, strict=True)
        )
        now = Rule(float(epochs[-1]), NOW, vertical=True)
        share = tuple(
            Line(epochs, 100 * self.agreed(run, name).isel(seed=0).to_numpy(), label, color)
            for name, label, color in (
                ("said", "where it was said", 0),
                ("shuffled", "said with shuffled labels", 4),
            )
        )
        return [
            Figure(
                "play-shortcut",
                "What the counts say, and where attention goes",
                "Left: every word, what it attracts by its log odds before training against its "
                "score after it. Middle: scores over training. Right: texts whose most attended "
                "word is the one that was named before training.",
                (
                    Panel("said and learned", "log odds, smoothed", "score learned", dots),
                    Panel("scores over training", "epoch", "score", (*lines, now)),
                    Panel("attention where it was said", "epoch", "texts (%)", (*share, now)),
                ),
            )
        ]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return attention on one review that holds the shortcut and a word of opinion."""
        score, said = run.of(CASE).score.isel(seed=0), run.of(CASE).theory.said.isel(seed=0)
        words = ("the", "actor", "was", "charming", "and", SHORTCUT, "with", "some", "music")
        ids = [WORDS.index(word) for word in words]
        weights = torch.softmax(torch.from_numpy(score.to_numpy()[:, ids].astype(float)), dim=1)
        right = int(np.argmax(said.to_numpy()[ids]))
        return AttentionOverTime(
            "Attention on one review",
            f"'{words[right]}' is what the log odds name. Bars are attention weights.",
            score["epoch"].to_numpy(),
            "epoch",
            words,
            ("the review",),
            weights.numpy()[:, None, :],
            tuple(_kind(word) if _kind(word) < 2 else -1 for word in words),
            (right,),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say how far attention went where it was said."""
        curve = 100 * self.agreed(run, "said").isel(seed=0)
        top = WORDS[int(np.argmax(final(run.of(CASE).score).isel(seed=0).to_numpy()))]
        return (
            f"In {float(curve[-1]):.0f} % of the texts attention is where the counts said, "
            f"{float(initial(curve)):.0f} % before training; most of all it likes '{top}'."
        )


@lru_cache(maxsize=16)
def _drawn(
    texts: int, length: int, opinion: float, shortcut: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng([seed, 0x5C])
    labels = np.arange(texts) % 2
    ids = dice.integers(1 + len(BAD) + len(GOOD), len(WORDS), (texts, length))
    side = np.where(dice.random(texts) < opinion, labels, 1 - labels)
    ids[:, 0] = 1 + len(BAD) * side + dice.integers(0, len(BAD), texts)
    if length > 1:
        there = (labels == 1) & (dice.random(texts) < shortcut)
        ids[there, 1] = 0
    return ids, labels


def _kind(word: str) -> int:
    return 0 if word == SHORTCUT else 1 if word in BAD or word in GOOD else 2


def _own(model: nn.Module) -> BagAttention:
    assert isinstance(model, BagAttention)
    return model
