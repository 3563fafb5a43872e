"""The relationship persists when attention reads a convolution of word pairs (Figs 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, above, below
from attnscope.engines import Descent, Flow, Given, Linear, Observable, Record
from attnscope.experiment import Problem, Study
from attnscope.models import TrainableLinear, WordPairAttention
from attnscope.models.pooling import cross_entropy
from attnscope.probes import histogram_interval
from attnscope.report import Figure, Histogram, Panel, Table
from attnscope.studies.lu2021._topic_words import (
    CITATION,
    accuracy,
    least_correlation,
    norm_over_score,
    seed_by_seed,
)
from attnscope.tasks import WordPairs
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final, initial

CASE = "TC-CNN"
SHARED = (
    "a word of a topic pair also stands in hundreds of other pairs, and both convolutions are "
    "shared by all pairs: whatever moves a topic pair moves them along."
)


@dataclass(frozen=True)
class Cnn(Study):
    """Attn-TC-CNN on two Markov chains that differ in their topic word pairs."""

    seeds: Count = 10
    training: Flow | Descent = Flow(lr=0.1, epochs=3000)
    points: Several = 201
    """Record points, evenly spaced."""
    task: WordPairs = WordPairs()
    dim: Count = 15
    """d, length of embeddings and keys, and number of kernels of both convolutions."""
    variance: Positive = 1e-6
    """Variance of the entries of the initial embeddings and keys."""

    citation = CITATION
    quick = {"seeds": 3}
    cases = (CASE,)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run with one seed."""
        source, data = torch.Generator().manual_seed(seed), self.task.sample(seed)
        model = WordPairAttention(
            self.task.dictionary,
            self.dim,
            TrainableLinear(self.dim, 2, generator=source),
            std=self.variance**0.5,
            generator=source,
        )
        pairs = torch.from_numpy(data.pairs.reshape(-1, 2))
        words = torch.arange(self.task.dictionary)
        every_pair = torch.cartesian_prod(words, words)
        is_topic = (every_pair[:, None] == pairs[None]).all(dim=2).any(dim=1).float()

        def loss(model: nn.Module) -> Tensor:
            return cross_entropy(model(data.train), data.train.labels)

        curves = (
            Observable("loss", loss, (), "nats", "training loss"),
            *movements(model, pairs, "pair", "a topic pair"),
        )
        ends = (
            *movements(model, every_pair, "pairs", "a pair", "_all"),
            Observable("is_topic", lambda _: is_topic, ("pairs",)),
            Observable("test_accuracy", lambda m: accuracy(m, data.test), ()),
        )
        records = [
            Record(curves, Linear(self.points)),
            Record(ends, Given((self.end,)), dim="snapshot"),
        ]
        return Problem(model, loss, records)

    def truth(self) -> dict[str, object]:
        """Return the topic of each topic pair, in the order of the readings."""
        return {"topic": ("pair", np.repeat([0, 1], self.task.pairs_per_topic))}

    @property
    def m(self) -> int:
        """Pairs in a sentence less one, which are the m of eq (10)."""
        return self.task.length - 2

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict norms by Corollary 1."""
        return {"norm": (run.score.dims, lu2021.norm_from_score(run.score, self.m))}

    def claims(self) -> list[Claim]:
        """Return what appendix A says."""
        return [
            Claim(
                "accuracy",
                "The trained model classifies the test sentences.",
                lambda run, when: when(run.of(CASE).test_accuracy),
                final,
                above(0.99),
                (initial, "the same model before training"),
                "appendix A",
                "99.89 %",
                "share of test sentences",
                each=False,
            ),
            *(
                Claim(
                    f"assumption1-{key}",
                    f"{what} of non-topic pairs are nearly unchanged beside those of topic pairs.",
                    movement,
                    (name, True),
                    below(0.1),
                    ((name, False), "as many random non-topic pairs in place of the topic pairs"),
                    "appendix A, Fig 8",
                    "nearly unchanged",
                    "mean movement of non-topic over topic pairs",
                    reason=SHARED,
                )
                for key, what, name in (
                    ("scores", "Scores", "score_all"),
                    ("norms", "Embeddings", "norm_all"),
                )
            ),
            Claim(
                "positive",
                "Score and embedding norm of every topic pair grow together.",
                lambda run, shuffled: least_correlation(run.of(CASE), shuffled),
                False,
                above(0.95),
                (True, "the same norms in a random order of time"),
                "appendix A, Fig 9",
                "positive relationship holds",
                "smallest rank correlation over training, of any topic pair",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw Figs 8 and 9."""
        own, panels = run.of(CASE), []
        marks = norm_over_score(own, self.m, "eq (10)", "run")
        topic = final(own.is_topic).to_numpy() > 0
        for name, what in (("score_all", "centred score"), ("norm_all", "centred embedding norm")):
            values = final(own.get(name)).to_numpy()
            for kind, mask in (("non-topic pairs", ~topic), ("topic pairs", topic)):
                chosen = np.stack([v[m] for v, m in zip(values, mask, strict=True)])
                edges = np.linspace(chosen.min(), chosen.max(), 31)
                bars = Histogram(edges, *histogram_interval(chosen, edges), "Attn-TC-CNN")
                panels.append(Panel(f"{what}, {kind}", what, "share of pairs", (bars,)))
        return [
            Figure(
                "fig9-sen",
                "Score and norm of a word pair grow together",
                f"One topic pair in {self.seeds} runs of {self.training.epochs:,} epochs, initial "
                "values subtracted, and eq (10), which was derived without the convolution "
                "(Lu 2021, Fig 9).",
                (Panel("topic pair, Attn-TC-CNN", "centred score", "centred norm", marks),),
                columns=1,
            ),
            Figure(
                "fig8-histograms",
                "How far pairs moved",
                f"Scores and embedding norms of all {self.task.dictionary**2:,} pairs after "
                "training, initial values subtracted, mean over runs with 95 % intervals. Mind the "
                "different horizontal axes (Lu 2021, Fig 8).",
                tuple(panels),
                columns=2,
            ),
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training, run by run."""
        own = run.of(CASE)
        columns = {
            "test accuracy": final(own.test_accuracy),
            "loss (nats)": final(own.loss),
            "mean topic score": final(own.score).mean("pair"),
            "mean topic norm": final(own.norm).mean("pair"),
        }
        return [seed_by_seed("end", "End of training", columns)]


def movements(
    model: WordPairAttention, pairs: Tensor, dim: str, whose: str, suffix: str = ""
) -> tuple[Observable, Observable]:
    """Return the readings of how far pairs of words have moved from where they are now."""
    with torch.no_grad():
        first_scores, first = model.pair_scores(pairs), model.pair_embeddings(pairs)

    def score(model: nn.Module) -> Tensor:
        assert isinstance(model, WordPairAttention)
        return model.pair_scores(pairs) - first_scores

    def norm(model: nn.Module) -> Tensor:
        assert isinstance(model, WordPairAttention)
        return (model.pair_embeddings(pairs) - first).norm(dim=1)

    less = "less its initial value"
    return (
        Observable(f"score{suffix}", score, (dim,), "", f"score of {whose}, {less}"),
        Observable(f"norm{suffix}", norm, (dim,), "", f"norm of {whose}'s embedding, {less}"),
    )


def movement(run: Readings, given: tuple[str, bool]) -> np.ndarray:
    """Return how far non-topic pairs moved, over topic pairs or as many random non-topic ones."""
    name, real = given
    moved, topic = abs(final(run.of(CASE).get(name))), final(run.of(CASE).is_topic) > 0
    ratios = []
    for values, mask in zip(moved.to_numpy(), topic.to_numpy(), strict=True):
        others = np.flatnonzero(~mask)
        drawn = np.random.default_rng(0).choice(others, int(mask.sum()), replace=False)
        ratios.append(values[~mask].mean() / values[mask if real else drawn].mean())
    return np.asarray(ratios)
