"""Words of a small corpus, and the toy system of two: knowledge comes first (sections 3 and 4.1).

The toy system is that of the authors' blog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Finite, Fraction, Several
from attnscope.claims import Claim, Finding, above, below
from attnscope.engines import Flow, Given, Linear, Observable, Record
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.report import Figure, Line, Mark, Panel, Rule
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import SPECIALS, SequencePairs
from attnscope.theory import snell2021
from attnscope.trajectory import Readings, final, initial

CASE = "words first"
TOY_END = 3.0
"""τ of the toy system at the end of a run."""
BLOG = "the authors' blog"
EQ15 = "eq 15 at all times, which is right to first order only"


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
class WordsFirst(Playable):
    """Words of a small corpus under uniform attention, beside the toy system of the blog.

    The toy system has a right word that knows β₁, a wrong one that knows β₀, and attention p to the
    right one. The corpus is copied word by word, some of it wrongly.
    """

    training: Flow = Flow(until=0.3, rtol=1e-4, atol=1e-4)
    points: Several = 61
    """Record points, evenly spaced."""
    length: Count = 5
    """Words in a sentence."""
    types: Count = 10
    """Words there are."""
    pairs: Count = 100
    """Sentences and their translations."""
    width: Count = 2000
    """d, length of the embeddings."""
    noise: Fraction = 0.0
    """Share of translated words that are replaced by any word."""
    head_start: Finite = 0.05
    """β₁ - β₀ of the toy system at the start: how much better the right word is known."""
    first_look: Finite = 0.0
    """p of the toy system at the start: attention to the right word."""

    citation = CITATION
    cases = (CASE,)
    labels = {"part": ("wrong", "right", "attention")}

    def check(self) -> None:
        """Check that sentences can be drawn."""
        self.task()

    @property
    def pace(self) -> float:
        """τ of the toy system in a unit of time."""
        return TOY_END / self.end

    def task(self) -> Copying:
        """Return the task without its noise."""
        return Copying(self.length, self.types, end=False)

    def sample(self, seed: int) -> SequencePairs:
        """Return the corpus; at every noise the same words are hit first."""
        clean = self.task().sample(self.pairs, seed)
        rng = np.random.default_rng([seed, 0x5E11])
        target = clean.target.numpy()
        hit = rng.random(target.shape) < self.noise
        other = rng.integers(SPECIALS, self.task().vocabulary, size=target.shape)
        return SequencePairs(clean.source, torch.from_numpy(np.where(hit, other, target)))

    def bags(self, seed: int) -> snell2021.PairBags:
        """Return the corpus as the theory takes it."""
        pairs = self.sample(seed)
        size = self.task().vocabulary
        return snell2021.pair_bags(pairs.source.numpy(), pairs.target.numpy(), size)

    def engine(self, case: str, seed: int) -> Flow:
        """Return gradient flow, as exact as the size of the parameters asks for."""
        return replace(self.training, atol=min(self.training.atol, 1e-4 * self.width**-0.5))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run, in double precision."""
        pairs, size = self.sample(seed), self.task().vocabulary
        generator = torch.Generator().manual_seed(seed)
        proxy = WordProxy(size, size, self.width, generator=generator).double()
        half = self.head_start / 2
        model = ToyAndProxy(proxy, (-half, half, self.first_look))
        words = ProxyObjective(pairs)
        shown = self.task().sample(1, seed + 1_000_003)

        def loss(module: nn.Module) -> Tensor:
            toy = _own(module).toy
            return words(_own(module).proxy) + self.pace * toy[2] * (toy[0] - toy[1])

        def gram(rows: Tensor) -> Tensor:
            return rows @ rows.T

        def read(name: str, of: Any, *dims: str, meaning: str = "") -> Observable:
            return Observable(name, lambda module: of(_own(module)), dims, "", meaning)

        curves = (
            read("words_loss", lambda m: words(m.proxy), meaning="loss of the corpus, in nats"),
            read(
                "theta",
                lambda m: torch.softmax(m.proxy.logits_by_word(), dim=1),
                "input",
                "output",
                meaning="softmax(W e_i)_o",
            ),
            read(
                "attention",
                lambda m: torch.softmax(m.proxy.log_beta(shown), dim=2)[0],
                "query",
                "key",
                meaning="β^px over its sum",
            ),
            read("toy", lambda m: m.toy.clone(), "part", meaning="β₀, β₁, p"),
        )
        start = (
            read("logits", lambda m: m.proxy.logits_by_word(), "input", "output"),
            read("source_gram", lambda m: gram(m.proxy.embedding), "input", "input_2"),
            read("target_gram", lambda m: gram(m.proxy.W), "output", "output_2"),
        )
        records = [Record(curves, Linear(self.points)), Record(start, Given((0.0,)), "start")]
        return Problem(model, loss, records)

    def truth(self) -> xr.Dataset:
        """Return how often words meet."""
        counts = np.asarray(self.bags(self.draw).counts.toarray())
        return xr.Dataset({"counts": (("input", "output"), counts, {"meaning": "C of eq 16"})})

    def theory(self, run: Readings) -> dict[str, Any]:
        """Predict what words know from counts alone and from the start, and solve the toy."""
        theta = run.of(CASE).theta
        times, seeds = theta["time"].to_numpy(), [int(seed) for seed in theta["seed"]]
        half = self.head_start / 2
        toy = snell2021.toy_solution(self.pace * times, -half, half, self.first_look)
        found: dict[str, list[np.ndarray]] = {"limit": [], "exact": [], "early": []}
        for seed in seeds:
            bags, own = self.bags(seed), run.of(CASE)
            names = ("logits", "source_gram", "target_gram")
            grams = snell2021.Grams(*(initial(own.get(n)).sel(seed=seed).to_numpy() for n in names))
            found["limit"].append(snell2021.proxy_flow(bags, times).probabilities)
            found["exact"].append(snell2021.proxy_flow(bags, times, grams).probabilities)
            early = [snell2021.early_probabilities(bags.counts, time) for time in times]
            found["early"].append(np.stack(early))
        solved = np.stack([toy.wrong, toy.right, toy.attention], axis=1)
        return {
            **{f"theta_{name}": (theta.dims, np.stack(each)) for name, each in found.items()},
            "toy": (("step", "part"), solved),
        }

    def claims(self) -> list[Claim]:
        """Return what Snell 2021 says of such a run."""

        def error(run: Readings, name: str) -> xr.DataArray:
            own = run.of(CASE)
            return abs(knowledge(own.theta) - knowledge(own.theory.get(name))).max("step")

        def best_known(run: Readings, when: Any) -> xr.DataArray:
            theta = when(run.of(CASE).theta).isel(input=slice(3, None), output=slice(3, None))
            right = theta.argmax("input") == xr.DataArray(np.arange(self.types), dims="output")
            return right.mean("output")

        def aim(run: Readings, when: Any) -> xr.DataArray:
            return gold(when(run.of(CASE).get("attention"))) * self.length

        def toy_error(run: Readings, sign: float) -> xr.DataArray:
            solved = run.theory.toy
            gap = abs(run.of(CASE).toy - sign * solved).max(("step", "part"))
            return gap / max(1e-3, float(abs(solved).max()))

        def toy_attention(run: Readings, when: Any) -> xr.DataArray:
            return when(run.of(CASE).toy).sel(part="attention")

        solved = partial(
            Claim,
            of=error,
            control=("theta_early", EQ15),
            measure="largest error of the probability of the right word",
        )
        later = partial(Claim, given=final, control=(initial, "before training"))
        return [
            solved(
                "exact",
                "What words know is solved exactly from the inner products at the start.",
                given="theta_exact",
                holds=below(0.01),
                source="beyond section 4.1",
                paper="to first order",
            ),
            solved(
                "counts",
                "A wide model needs no look at its start: counts of words alone say what it will "
                "know.",
                given="theta_limit",
                holds=below(0.02),
                source="section 4.1, for d → ∞",
                paper="equal in the limit",
            ),
            later(
                "words",
                "Every word is best known by the right word, without any attention.",
                of=best_known,
                holds=above(0.999),
                source="section 3",
                paper="knowledge of words comes first",
                measure="share of words",
            ),
            later(
                "aims",
                "That knowledge is enough to aim attention in a new sentence.",
                of=aim,
                holds=above(1.5),
                source="section 3",
                paper="attention follows β",
                measure="attention to the right word over uniform attention",
            ),
            Claim(
                "toy",
                "The toy system moves as its solution says, with exp(√2 τ).",
                toy_error,
                1.0,
                below(0.01),
                (-1.0, "the solution with its sign turned"),
                BLOG,
                "not solved",
                "largest error over the largest value",
            ),
            later(
                "toy-right",
                "In the toy system attention ends at the right word.",
                of=toy_attention,
                holds=above(0.5),
                source=BLOG,
                paper="knowledge drives attention",
                measure="p at the end",
                reason="which way it goes is decided by β₁ - β₀ + √2 p at the start: above 0 it "
                "is the right word.",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw what words know, where attention would look, and the toy system."""
        own = run.of(CASE)
        times = own.theta["time"].to_numpy()
        now = Rule(float(times[-1]), NOW, vertical=True)

        def line(reading: xr.DataArray, label: str, color: int = 0, theory: bool = False) -> Line:
            values = reading.isel(seed=0) if "seed" in reading.dims else reading
            x = self.pace * times if "part" in reading.coords else times
            return Line(x, values.to_numpy(), label, color, theory=theory)

        exact = (own.theory.get(f"theta_{kind}") for kind in ("exact", "limit"))
        known: tuple[Mark, ...] = (
            line(knowledge(own.theta), "knowledge"),
            *(line(knowledge(theta), "theory", theory=True) for theta in exact),
            now,
        )
        aimed: tuple[Mark, ...] = (
            line(gold(own.get("attention")), "right position", 2),
            Line(times, np.full(len(times), 1 / self.length), "uniform attention", 4),
            now,
        )
        parts = {
            "wrong": ("wrong word knows β₀", 1),
            "right": ("right word knows β₁", 0),
            "attention": ("attention p to the right word", 3),
        }
        toy = (
            *(line(own.toy.sel(part=part), *said) for part, said in parts.items()),
            *(line(run.theory.toy.sel(part=part), "theory", theory=True) for part in parts),
        )
        right = "probability of the right word"
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
                    Panel("a corpus: knowledge of words", "time", right, known),
                    Panel(
                        "a corpus: attention it allows",
                        "time",
                        "attention to the right word",
                        aimed,
                    ),
                    Panel("two words: the toy system", "τ", "value", toy),
                ),
            )
        ]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return where the words of an unseen sentence would be found."""
        words = self.task().sample(1, self.draw + 1_000_003).source[0].numpy() - SPECIALS + 1
        weights = run.of(CASE).get("attention").isel(seed=0)
        return AttentionOverTime(
            "Where the words of one new sentence would be found",
            "Rows are words to be said, columns the words of the sentence. A frame marks the right "
            "one. Numbers are percent.",
            weights["time"].to_numpy(),
            "time",
            tuple(f"word {i}" for i in words),
            tuple(f"word {i}" for i in words),
            weights.to_numpy(),
            (-1,) * self.length,
            tuple(range(self.length)),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say what words know, and where the toy system looks."""
        own = run.of(CASE)
        known = float(knowledge(final(own.theta))[0])
        looks = "right" if float(final(own.toy).sel(part="attention")[0]) > 0 else "wrong"
        return (
            f"A word is known with probability {known:.0%}; the toy system looks at the {looks} "
            "word."
        )


def knowledge(theta: xr.DataArray) -> xr.DataArray:
    """Return the mean probability that a word is translated rightly."""
    words = xr.DataArray(np.arange(SPECIALS, theta.sizes["input"]), dims="word")
    return theta.isel(input=words, output=words).mean("word")


def gold(weights: xr.DataArray) -> xr.DataArray:
    """Return the mean attention of words to themselves."""
    words = xr.DataArray(np.arange(weights.sizes["query"]), dims="word")
    return weights.isel(query=words, key=words).mean("word")


def _own(module: nn.Module) -> ToyAndProxy:
    return cast(ToyAndProxy, module)
