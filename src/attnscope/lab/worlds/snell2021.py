"""The toy system, and a corpus that does the same: knowing words comes first (Snell 2021)."""

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
from attnscope.engines import Flow, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.lab.worlds import _snell2021_claims
from attnscope.lab.worlds.base import NOW, PlayStudy
from attnscope.lab.worlds.scene import Attention
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.report.figure import Figure, Line, Panel, Rule
from attnscope.experiment import Problem
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import SPECIALS, SequencePairs
from attnscope.theory import snell2021

TOY_END = 3.0
"""τ of the toy system at the end of a run."""
TIME = "time"


class ToyAndProxy(nn.Module):
    """Two systems that do not touch, trained by one flow.

    Args:
        proxy: a bag-of-words model of a corpus.
        toy: β₀, β₁ and p of the toy system.
    """

    def __init__(self, proxy: WordProxy, toy: tuple[float, float, float]) -> None:
        super().__init__()
        self.proxy = proxy
        self.toy = nn.Parameter(torch.tensor(toy, dtype=torch.float64))


@dataclass(frozen=True)
class WordsFirstPlay(PlayStudy):
    """Words of a small corpus under uniform attention, beside the toy system of the blog.

    The toy system has a right word that knows β₁, a wrong one that knows β₀, and attention p to the
    right one. The corpus is copied word by word, some of it wrongly.
    """

    lr: float = 1e-3
    """Unit of time."""
    epochs: int = 300
    """Units of time in a run."""
    points: int = 61
    """Record points, evenly spaced."""
    length: int = 5
    """Words in a sentence."""
    types: int = 10
    """Words there are."""
    pairs: int = 100
    """Sentences and their translations."""
    width: int = 2000
    """d, length of the embeddings."""
    noise: float = 0.0
    """Share of translated words that are replaced by any word."""
    head_start: float = 0.05
    """β₁ - β₀ of the toy system at the start: how much better the right word is known."""
    first_look: float = 0.0
    """p of the toy system at the start: attention to the right word."""

    citation = CITATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(f"engine = '{self.engine}': expected 'flow', and correct False.")
        if not 0 <= self.noise <= 1:
            raise AttnscopeError(f"noise = {self.noise}: expected a share from 0 to 1.")
        self.task()

    @property
    def pace(self) -> float:
        """τ of the toy system in a unit of time."""
        return TOY_END / self.time

    def task(self) -> Copying:
        """Return the task without its noise."""
        return Copying(self.length, self.types, end=False)

    def sample(self) -> SequencePairs:
        """Return the corpus; at every noise the same words are hit first."""
        clean = self.task().sample(self.pairs, self.draw)
        rng = np.random.default_rng([self.draw, 0x5E11])
        target = clean.target.numpy()
        hit = rng.random(target.shape) < self.noise
        other = rng.integers(SPECIALS, self.task().vocabulary, size=target.shape)
        return SequencePairs(clean.source, torch.from_numpy(np.where(hit, other, target)))

    def bags(self) -> snell2021.PairBags:
        """Return the corpus as the theory takes it."""
        pairs = self.sample()
        size = self.task().vocabulary
        return snell2021.pair_bags(pairs.source.numpy(), pairs.target.numpy(), size)

    def cases(self) -> tuple[str, ...]:
        """Return the only one."""
        return ("words first",)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow, as exact as the size of the parameters asks for."""
        return Flow(rtol=1e-4, atol=1e-4 * self.width**-0.5)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run, in double precision."""
        pairs, size = self.sample(), self.task().vocabulary
        generator = torch.Generator().manual_seed(seed)
        proxy = WordProxy(size, size, self.width, generator=generator).double()
        half = self.head_start / 2
        model = ToyAndProxy(proxy, (-half, half, self.first_look))
        words = ProxyObjective(pairs)
        shown = self.task().sample(1, self.draw + 1_000_003)

        def loss(module: nn.Module) -> Tensor:
            toy = _own(module).toy
            return words(_own(module).proxy) + self.pace * toy[2] * (toy[0] - toy[1])

        def table(module: nn.Module) -> Tensor:
            return torch.softmax(_own(module).proxy.logits_by_word(), dim=1)

        def attention(module: nn.Module) -> Tensor:
            return torch.softmax(_own(module).proxy.log_beta(shown), dim=2)[0]

        def gram(rows: Tensor) -> Tensor:
            return rows @ rows.T

        curves = (
            Observable("words_loss", lambda m: words(_own(m).proxy), (), "nats", "of the corpus"),
            Observable("theta", table, ("input", "output"), "", "softmax(W e_i)_o"),
            Observable("attention", attention, ("looking", "looked_at"), "", "β^px over its sum"),
            Observable("toy", lambda m: _own(m).toy.clone(), ("part",), "", "β₀, β₁, p"),
        )
        start = (
            Observable("logits", lambda m: _own(m).proxy.logits_by_word(), ("input", "output")),
            Observable(
                "source_gram", lambda m: gram(_own(m).proxy.embedding), ("input", "input_2")
            ),
            Observable("target_gram", lambda m: gram(_own(m).proxy.W), ("output", "output_2")),
        )
        return Problem(
            model,
            loss,
            [Record(curves, Linear(self.points)), Record(start, Given((0.0,)), "start")],
        )

    def truth(self) -> xr.Dataset:
        """Return how often words meet."""
        counts = np.asarray(self.bags().counts.toarray())
        return xr.Dataset({"counts": (("input", "output"), counts, {"meaning": "C of eq 16"})})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict what words know from counts alone and from the start, and solve the toy."""
        times = tree["observables/time"].to_numpy()
        bags = self.bags()
        grams = snell2021.Grams(
            *(
                tree[f"observables/{name}"].to_numpy()[0, 0]
                for name in ("logits", "source_gram", "target_gram")
            )
        )
        half = self.head_start / 2
        toy = snell2021.toy_solution(self.pace * times, -half, half, self.first_look)
        along = ("step", "input", "output")
        early = [snell2021.early_probabilities(bags.counts, time) for time in times]
        return xr.Dataset(
            {
                "theta_limit": (along, snell2021.proxy_flow(bags, times).probabilities),
                "theta_exact": (along, snell2021.proxy_flow(bags, times, grams).probabilities),
                "theta_early": (along, np.stack(early)),
                "toy": (("step", "part"), np.stack([toy.wrong, toy.right, toy.attention], axis=1)),
            },
            coords={"time": ("step", times)},
        )

    def knowledge(self, theta: np.ndarray) -> np.ndarray:
        """Return the mean probability that a word is translated rightly."""
        right = np.diagonal(theta, axis1=-2, axis2=-1)[..., SPECIALS:]
        return np.asarray(right.mean(axis=-1))

    def claims(self) -> tuple[Claim, ...]:
        """Return what Snell 2021 says of such a run."""
        return _snell2021_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw what words know, where attention would look, and the toy system."""
        seen = tree["observables"].to_dataset().isel(run=0)
        known = tree["theory"].to_dataset()
        times, tau = seen["time"].to_numpy(), self.pace * seen["time"].to_numpy()
        toy, solved = seen["toy"].to_numpy(), known["toy"].to_numpy()
        weights = seen["attention"].to_numpy()
        gold = np.diagonal(weights, axis1=1, axis2=2).mean(axis=1)
        now = Rule(float(times[-1]), NOW, vertical=True)
        names = ("wrong word knows β₀", "right word knows β₁", "attention p to the right word")
        return [
            Figure(
                "play-snell2021",
                "Knowledge of words comes first, and attention follows it",
                "Left: the probability that a word of the corpus is translated rightly, under "
                "uniform attention. Dashed: solved from the actual start, and at infinite width "
                "from counts alone. Middle: the attention to the right word of a sentence that "
                "this knowledge is good for. Right: the toy system of two words; dashed: its "
                "solution. With p = 0 at the start, it is knowledge that starts attention.",
                (
                    Panel(
                        "a corpus: knowledge of words",
                        TIME,
                        "probability of the right word",
                        (
                            Line(times, self.knowledge(seen["theta"].to_numpy()), "knowledge", 0),
                            *(
                                Line(
                                    times,
                                    self.knowledge(known[name].to_numpy()),
                                    "theory",
                                    theory=True,
                                )
                                for name in ("theta_exact", "theta_limit")
                            ),
                            now,
                        ),
                    ),
                    Panel(
                        "a corpus: attention it allows",
                        TIME,
                        "attention to the right word",
                        (
                            Line(times, gold, "right position", 2),
                            Line(
                                times, np.full(len(times), 1 / self.length), "uniform attention", 4
                            ),
                            now,
                        ),
                    ),
                    Panel(
                        "two words: the toy system",
                        "τ",
                        "value",
                        (
                            *(
                                Line(tau, toy[:, i], name, (1, 0, 3)[i])
                                for i, name in enumerate(names)
                            ),
                            *(Line(tau, solved[:, i], "theory", theory=True) for i in range(3)),
                        ),
                    ),
                ),
            )
        ]

    def attention(self, tree: xr.DataTree) -> Attention:
        """Return where the words of an unseen sentence would be found."""
        words = self.task().sample(1, self.draw + 1_000_003).source[0].numpy() - SPECIALS + 1
        seen = tree["observables"].to_dataset().isel(run=0)
        return Attention(
            "Where the words of one new sentence would be found",
            "Rows are words to be said, columns the words of the sentence. A frame marks the right "
            "one. Numbers are percent.",
            seen["time"].to_numpy(),
            TIME,
            tuple(f"word {i}" for i in words),
            tuple(f"word {i}" for i in words),
            seen["attention"].to_numpy(),
            (-1,) * self.length,
            tuple(range(self.length)),
        )

    def outcome(self, tree: xr.DataTree, found: Sequence[Finding]) -> str:
        """Say what words know, and where the toy system looks."""
        seen = tree["observables"].to_dataset().isel(run=0, step=-1)
        known = float(self.knowledge(seen["theta"].to_numpy()))
        looks = "right" if float(seen["toy"][2]) > 0 else "wrong"
        return (
            f"A word is known with probability {known:.0%}; the toy system looks at the {looks} "
            "word."
        )


def _own(module: nn.Module) -> ToyAndProxy:
    return cast(ToyAndProxy, module)
