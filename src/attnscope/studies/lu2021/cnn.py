"""The relationship persists when attention reads a convolution of word pairs (Figs 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.engines import Given, Linear, Observable, Record
from attnscope.models import TrainableLinear, WordPairAttention
from attnscope.models.pooling import cross_entropy
from attnscope.probes import histogram_interval, rank_correlation
from attnscope.report.figure import Figure, Histogram, Line, Panel
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.lu2021._topic_words import CITATION
from attnscope.trajectory import select
from attnscope.tasks import Sentences, WordPairs, WordPairsData
from attnscope.theory import lu2021

CASE = "TC-CNN"


@dataclass(frozen=True)
class Cnn(Study):
    """Attn-TC-CNN on two Markov chains that differ in their topic word pairs."""

    seeds: int = 10
    epochs: int = 3000
    dictionary: int = 200
    """Words there are."""
    pairs_per_topic: int = 2
    """Topic word pairs of each of the two topics."""
    length: int = 10
    """Words in a sentence, m + 1."""
    train: int = 4000
    """Training sentences."""
    test: int = 1000
    """Test sentences."""
    dim: int = 15
    """d, length of embeddings and keys, and number of kernels of both convolutions."""
    variance: float = 1e-6
    """Variance of the entries of the initial embeddings and keys."""

    citation = CITATION
    quick: ClassVar[dict[str, Any]] = {"seeds": 3}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task()

    def task(self) -> WordPairs:
        """Return the task."""
        return WordPairs(self.dictionary, self.pairs_per_topic, self.length, self.train, self.test)

    def cases(self) -> tuple[str, ...]:
        """Return the one model."""
        return (CASE,)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run with one seed."""
        source = torch.Generator().manual_seed(seed)
        model = WordPairAttention(
            self.dictionary,
            self.dim,
            TrainableLinear(self.dim, 2, generator=source),
            std=self.variance**0.5,
            generator=source,
        )
        data = self.task().sample(seed)

        def loss(model: nn.Module) -> Tensor:
            logits: Tensor = model(data.train)
            return cross_entropy(logits, data.train.labels)

        return Problem(model, loss, self._records(model, data))

    def _records(self, model: WordPairAttention, data: WordPairsData) -> list[Record]:
        pairs = torch.from_numpy(data.pairs.reshape(-1, 2))
        words = torch.arange(self.dictionary)
        every_pair = torch.cartesian_prod(words, words)
        with torch.no_grad():
            start_score, start = model.pair_scores(pairs), model.pair_embeddings(pairs)
            all_score = model.pair_scores(every_pair)
            all_start = model.pair_embeddings(every_pair)
        curves = (
            Observable("loss", lambda m: _loss(m, data.train), (), "nats", "training loss"),
            Observable(
                "score",
                lambda m: _cnn(m).pair_scores(pairs) - start_score,
                ("pair",),
                "",
                "score of a topic pair, less its initial value",
            ),
            Observable(
                "norm",
                lambda m: (_cnn(m).pair_embeddings(pairs) - start).norm(dim=1),
                ("pair",),
                "",
                "norm of a topic pair's embedding, less its initial value",
            ),
        )
        ends = (
            Observable(
                "score_all", lambda m: _cnn(m).pair_scores(every_pair) - all_score, ("pairs",)
            ),
            Observable(
                "norm_all",
                lambda m: (_cnn(m).pair_embeddings(every_pair) - all_start).norm(dim=1),
                ("pairs",),
            ),
            Observable(
                "is_topic",
                lambda m: (every_pair[:, None] == pairs[None]).all(dim=2).any(dim=1).float(),
                ("pairs",),
            ),
            Observable("test_accuracy", lambda m: _accuracy(m, data.test), ()),
        )
        return [
            Record(curves, Linear(self.points)),
            Record(ends, Given((self.time,)), dim="snapshot"),
        ]

    def truth(self) -> xr.Dataset:
        """Return the topic of each topic pair, in the order of the readings."""
        return xr.Dataset({"topic": ("pair", np.repeat([0, 1], self.pairs_per_topic))})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict norms by Corollary 1 with m = pairs in a sentence less one."""
        score = tree["observables/score"]
        return xr.Dataset(
            {"norm": (score.dims, lu2021.norm_from_score(score.to_numpy(), self.length - 2))},
            coords={"time": ("step", tree["observables/time"].to_numpy())},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what appendix A says."""
        return (
            Claim(
                key="accuracy",
                sentence="The trained model classifies the test sentences.",
                source="appendix A",
                paper="99.89 %",
                statistic=lambda tree: _final(tree, "test_accuracy"),
                criterion=above(0.99),
                control_sentence="the same model before training",
                control=lambda tree: (
                    select(tree, "test_accuracy", CASE).isel(snapshot=0).to_numpy()
                ),
                each=False,
                measure="share of test sentences",
            ),
            Claim(
                key="assumption1-scores",
                sentence="Scores of non-topic pairs are nearly unchanged beside those of topic "
                "pairs.",
                source="appendix A, Fig 8",
                paper="nearly unchanged",
                statistic=lambda tree: _movement(tree, "score_all", True),
                criterion=below(0.1),
                control_sentence="as many random non-topic pairs in place of the topic pairs",
                control=lambda tree: _movement(tree, "score_all", False),
                measure="mean movement of non-topic over topic pairs",
                reason=_SHARED,
            ),
            Claim(
                key="assumption1-norms",
                sentence="Embeddings of non-topic pairs are nearly unchanged beside those of "
                "topic pairs.",
                source="appendix A, Fig 8",
                paper="nearly unchanged",
                statistic=lambda tree: _movement(tree, "norm_all", True),
                criterion=below(0.1),
                control_sentence="as many random non-topic pairs in place of the topic pairs",
                control=lambda tree: _movement(tree, "norm_all", False),
                measure="mean movement of non-topic over topic pairs",
                reason=_SHARED,
            ),
            Claim(
                key="positive",
                sentence="Score and embedding norm of every topic pair grow together.",
                source="appendix A, Fig 9",
                paper="positive relationship holds",
                statistic=lambda tree: _least_correlation(tree, False),
                criterion=above(0.95),
                control_sentence="the same norms in a random order of time",
                control=lambda tree: _least_correlation(tree, True),
                measure="smallest rank correlation over training, of any topic pair",
            ),
        )

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Figs 8 and 9."""
        score = select(tree, "score", CASE).isel(pair=0).to_numpy()
        norm = select(tree, "norm", CASE).isel(pair=0).to_numpy()
        grid = np.linspace(0, max(0.1, float(score.max())) * 1.05, 100)
        lines = [Line(score[i], norm[i], f"run {i}", i, thin=True) for i in range(len(score))]
        theory = Line(grid, lu2021.norm_from_score(grid, self.length - 2), "eq (10)", theory=True)
        sen = Panel("topic pair, Attn-TC-CNN", "centred score", "centred norm", (*lines, theory))
        topic = select(tree, "is_topic", CASE).isel(snapshot=-1).to_numpy() > 0
        panels = []
        for name, what in (("score_all", "score"), ("norm_all", "embedding norm")):
            values = select(tree, name, CASE).isel(snapshot=-1).to_numpy()
            for kind, mask in (("non-topic pairs", ~topic), ("topic pairs", topic)):
                chosen = np.stack([v[m] for v, m in zip(values, mask, strict=True)])
                edges = np.linspace(chosen.min(), chosen.max(), 31)
                mean, low, high = histogram_interval(chosen, edges)
                panels.append(
                    Panel(
                        f"centred {what}, {kind}",
                        f"centred {what}",
                        "share of pairs",
                        (Histogram(edges, mean, low, high, "Attn-TC-CNN"),),
                    )
                )
        return [
            Figure(
                "fig9-sen",
                "Score and norm of a word pair grow together",
                f"One topic pair in {self.seeds} runs of {self.epochs:,} epochs, initial values "
                "subtracted, and eq (10), which was derived without the convolution "
                "(Lu 2021, Fig 9).",
                (sen,),
                columns=1,
            ),
            Figure(
                "fig8-histograms",
                "How far pairs moved",
                f"Scores and embedding norms of all {self.dictionary**2:,} pairs after training, "
                "initial values subtracted, mean over runs with 95 % intervals. Mind the different "
                "horizontal axes (Lu 2021, Fig 8).",
                tuple(panels),
                columns=2,
            ),
        ]

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the end of training, run by run."""
        rows = tuple(
            (
                seed,
                float(_final(tree, "test_accuracy")[seed]),
                float(select(tree, "loss", CASE).isel(run=seed, step=-1)),
                float(select(tree, "score", CASE).isel(run=seed, step=-1).mean()),
                float(select(tree, "norm", CASE).isel(run=seed, step=-1).mean()),
            )
            for seed in range(self.seeds)
        )
        columns = ("seed", "test accuracy", "loss (nats)", "mean topic score", "mean topic norm")
        return [Table("end", "End of training", columns, rows)]


_SHARED = (
    "a word of a topic pair also stands in hundreds of other pairs, and both convolutions are "
    "shared by all pairs: whatever moves a topic pair moves them along."
)


def _final(tree: xr.DataTree, name: str) -> np.ndarray:
    return select(tree, name, CASE).isel(snapshot=-1).to_numpy()


def _movement(tree: xr.DataTree, name: str, real: bool) -> np.ndarray:
    moved = np.abs(_final(tree, name))
    topic = _final(tree, "is_topic") > 0
    out = []
    for values, mask in zip(moved, topic, strict=True):
        others = np.flatnonzero(~mask)
        drawn = np.random.default_rng(0).choice(others, int(mask.sum()), replace=False)
        own = values[mask] if real else values[drawn]
        out.append(values[~mask].mean() / own.mean())
    return np.asarray(out)


def _least_correlation(tree: xr.DataTree, shuffled: bool) -> np.ndarray:
    score = select(tree, "score", CASE).to_numpy()
    norm = select(tree, "norm", CASE).to_numpy()
    if shuffled:
        norm = np.random.default_rng(0).permuted(norm, axis=1)
    return np.asarray(rank_correlation(score, norm, axis=1).min(axis=1))


def _cnn(model: nn.Module) -> WordPairAttention:
    assert isinstance(model, WordPairAttention)
    return model


def _loss(model: nn.Module, sentences: Sentences) -> Tensor:
    return cross_entropy(_cnn(model)(sentences), sentences.labels)


def _accuracy(model: nn.Module, sentences: Sentences) -> Tensor:
    return (_cnn(model)(sentences).argmax(dim=1) == sentences.labels).double().mean()
