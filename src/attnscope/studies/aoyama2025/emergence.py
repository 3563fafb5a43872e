"""When induction heads appear in a model of text, over batch size and context (Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Fraction, Positive, Several
from attnscope.claims import Claim, above, below, within
from attnscope.engines import Adam, Given, Observable, Reached, Record, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.relative_attention import RelativeTransformer, next_state_loss
from attnscope.probes.intervals import mean_interval
from attnscope.probes.repeated_tokens import induction, repeated_ids
from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, Table, each_seed
from attnscope.report.page import Cell
from attnscope.studies.aoyama2025._exponents import slopes
from attnscope.tasks.repetition import Repetition, RepetitionStream
from attnscope.theory.aoyama2025 import CriticalBatch, critical_batch, emergence_tokens
from attnscope.trajectory import Readings, carried, crossing

APPEARED = 0.5
"""Prefix-matching score of the best head that counts as an induction head."""
DONE = 0.8
"""A run ends when the score is above this; steps at 0.3 and 0.8 are in the table."""
NONE = 0.2
"""A score below this is no induction head."""
LONGEST = 50
"""Words of a probe sequence that are said twice, as in the paper."""
ONE_LAYER, RARE = "one layer", "rare repetition"
SELDOM = 0.1
"""Frequency and reliability of text that hardly repeats anything."""


class _Loss:
    """Cross-entropy of the next word on text that is never seen again."""

    def __init__(self, stream: RepetitionStream) -> None:
        self.stream = stream

    def __call__(self, model: nn.Module, rows: Tensor) -> Tensor:
        tokens = self.stream.batch(rows)
        return next_state_loss(model(tokens), tokens)


@dataclass(frozen=True)
class Emergence(Study):
    """Two layers of attention on synthetic text: batch sizes at one context, contexts at one batch.

    With it two runs in which no head may appear: a single layer, and text that hardly repeats.
    The default is of the paper's kind, a night; at ``desk`` and ``quick`` the vocabulary is so
    small and the rate so large that heads appear within seconds.
    """

    seeds: Count = 2
    training: Steps = Steps(steps=60_000, batch=32)
    """Steps at most; a run ends when a head is there. The batch is that of all contexts."""
    words: Several = 1000
    """V."""
    width: Count = 128
    """d."""
    batches: tuple[Count, ...] = (8, 32, 128)
    """Sequences in an update, compared at one context."""
    context: Several = 64
    """C of all batch sizes."""
    contexts: tuple[Several, ...] = (32, 64, 128)
    """Contexts, compared at one batch size."""
    frequency: Fraction = 0.9
    """How often a word has occurred before."""
    reliability: Fraction = 0.9
    """How often its old successor then follows again."""
    local: bool = True
    """Words prefer some successors, as in text; otherwise all alike."""
    rate: Positive = 1e-3
    """Learning rate of Adam."""
    probes: Count = 50
    """Sequences that heads are read on."""
    every: Count = 100
    """Steps from one record point to the next."""

    desk: ClassVar = {
        "seeds": 6,
        "steps": 3000,
        "batch": 32,
        "words": 128,
        "width": 32,
        "batches": (8, 16, 32, 64, 128, 256, 512),
        "context": 32,
        "contexts": (16, 32, 64),
        "local": False,
        "every": 10,
    }
    quick: ClassVar = {**desk, "seeds": 3, "steps": 2000, "batch": 16} | {
        "batches": (16, 64, 256),
        "contexts": (16, 32),
    }
    citation = "Aoyama et al. 2025, arXiv 2511.16893"

    @property
    def cases(self) -> tuple[str, ...]:
        """Batch size and context, then the controls."""
        pairs = [(batch, self.context) for batch in self.batches]
        pairs += [(self.training.batch or 0, context) for context in self.contexts]
        return (*dict.fromkeys(_name(*pair) for pair in pairs), ONE_LAYER, RARE)

    def pair(self, case: str) -> tuple[int, int]:
        """Return batch size and context of a case."""
        if case in (ONE_LAYER, RARE):
            return self.training.batch or 0, self.context
        batch, context = case.split(" x ")
        return int(batch), int(context)

    def task(self, case: str) -> Repetition:
        """Return the text of a case."""
        how = (SELDOM, SELDOM) if case == RARE else (self.frequency, self.reliability)
        return Repetition(self.words, self.pair(case)[1], *how, self.local)

    def check(self) -> None:
        """Check that there are two sizes of each to compare, and text for every case."""
        for name in ("batches", "contexts"):
            sizes = getattr(self, name)
            if len(sizes) < 2 or list(sizes) != sorted(set(sizes)):
                raise AttnscopeError(f"{name} = {sizes}: expected two or more rising sizes.")
        if self.training.batch is None:
            raise AttnscopeError("batch = None: expected the sequences in an update of contexts.")
        for case in self.cases:
            self.task(case)

    def engine(self, case: str, seed: int) -> Adam:
        """Return Adam on batches of the case's size."""
        return Adam(rate=self.rate, steps=self.training.steps, batch=self.pair(case)[0])

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; it ends when a head is there."""
        batch, context = self.pair(case)
        model = RelativeTransformer(
            self.words,
            context,
            layers=1 if case == ONE_LAYER else 2,
            width=self.width,
            distance_std=0.2,
            generator=torch.Generator().manual_seed(seed),
        )
        length = 2 * min(LONGEST, context // 2)
        ids = torch.from_numpy(repeated_ids(self.probes, length, self.words, seed))

        @torch.no_grad()
        def score(module: nn.Module) -> Tensor:
            assert isinstance(module, RelativeTransformer)
            weights = module.answer(ids).attention
            found = [induction(each[:, None].numpy())[0] for each in weights]
            return torch.tensor(found, dtype=torch.float64).max()

        last = self.training.steps
        times = Given(tuple(float(step) for step in {*range(0, last, self.every), last}))
        meaning = "prefix-matching score of the best head"
        record = Record((Observable("score", score, (), "", meaning),), times)
        loss, rows = _Loss(self.task(case).stream(seed)), batch * (last + 1)
        target = {"1 - prefix-matching score": 1 - DONE}
        stop = (Reached(lambda m: 1 - score(m)[None], target, self.every),)
        return Problem(model, loss, [record], stop, rows=rows, seed=seed, shuffle=False)

    def updates(self, run: Readings, case: str, level: float = APPEARED) -> xr.DataArray:
        """Return the updates until the best head passed a score; NaN where it did not."""
        return crossing(run.of(case).score, level)

    def tokens(self, run: Readings, cases: list[str]) -> np.ndarray:
        """Return the tokens read until a head appeared, (seed, case)."""
        each = [self.updates(run, case).to_numpy() * np.prod(self.pair(case)) for case in cases]
        return np.stack(each, axis=-1)

    def of_batches(self) -> list[str]:
        """Return the cases that differ in the batch size alone."""
        return [_name(batch, self.context) for batch in self.batches]

    def of_contexts(self) -> list[str]:
        """Return the cases that differ in the context alone."""
        return [_name(self.training.batch or 0, context) for context in self.contexts]

    def fits(self, run: Readings) -> list[CriticalBatch | None]:
        """Return the critical batch size of every seed; ``None`` where a head is missing."""
        updates = self.tokens(run, self.of_batches()) / (np.array(self.batches) * self.context)
        found: list[CriticalBatch | None] = []
        for own in updates:
            try:
                found.append(critical_batch(self.batches, own))
            except AttnscopeError:
                found.append(None)
        return found

    def claims(self) -> list[Claim]:
        """Return appearance with its controls, both exponents, and where the first one turns."""
        two = [case for case in self.cases if case not in (ONE_LAYER, RARE)]

        def best(run: Readings, cases: list[str]) -> np.ndarray:
            ends = [carried(run.of(case).score).max("step").to_numpy() for case in cases]
            return np.asarray(np.min(ends, axis=0))

        def slope(run: Readings, given: tuple[str, float]) -> np.ndarray:
            which, power = given
            sizes, cases = {
                "batch": (self.batches, self.of_batches()),
                "context": (self.contexts, self.of_contexts()),
            }[which]
            return slopes(sizes, self.tokens(run, cases)) - power

        def turn(run: Readings, order: tuple[int, int]) -> np.ndarray:
            """Return how much steeper tokens grow over the last two batches than the first two."""
            tokens = np.log(self.tokens(run, self.of_batches()))
            local = np.diff(tokens, axis=1) / np.diff(np.log(self.batches))
            return np.asarray(local[:, order[1]] - local[:, order[0]])

        source = "N = T √(B C); refitted, B^0.63 C^0.38"
        law = {
            "batch": ("0.5 (2025), 0.63 (2026)", (0.3, 0.8)),
            "context": ("0.5 (2025), 0.38 (2026)", (0.2, 0.7)),
        }
        reasons = {
            "batch": "it is no power law: the exponent is B/(B + B_c) and turns from 0 into 1.",
            "context": "a longer context has more words to tell apart here, and as many updates "
            "or more are needed; in the law it has more to learn from, and fewer are.",
        }
        return [
            Claim(
                "appear",
                "Two layers on text that repeats itself form an induction head in every case.",
                best,
                two,
                above(APPEARED),
                ([ONE_LAYER], "a single layer"),
                "section 3",
                "",
                "prefix-matching score of the best head, least over cases",
                reason="at this rate some batches are too small, or runs shorter than needed.",
            ),
            Claim(
                "repetition",
                "On text that hardly repeats itself none appears.",
                best,
                [RARE],
                below(NONE),
                ([_name(self.training.batch or 0, self.context)], "text that repeats itself"),
                "section 5",
                "no head below a frontier of frequency and reliability",
                "largest prefix-matching score of the best head",
            ),
            *(
                Claim(
                    f"{which}-exponent",
                    f"Tokens until then grow with the {which} to the power of the law.",
                    slope,
                    (which, 0.0),
                    within(*bounds),
                    ((which, -1.0), "the same data at an exponent one more"),
                    source,
                    said,
                    f"slope of log tokens over log {which}, mean over seeds",
                    each=False,
                    reason=reasons[which],
                )
                for which, (said, bounds) in law.items()
            ),
            Claim(
                "turn",
                "The exponent in the batch size turns upwards: noise decides for small batches "
                "only.",
                turn,
                (0, -1),
                above(0.0),
                ((-1, 0), "the other way round"),
                "not in the paper",
                "not stated",
                "local exponent between the two largest batches less that between the smallest",
                each=False,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the score of the best head, and tokens over batch size and over context."""
        marks: list[Mark] = []
        for i, case in enumerate(self.cases):
            marks += each_seed(run.of(case).score, case, i)
        marks.append(Rule(APPEARED, "an induction head"))
        panels = [Panel("best head", "step", "prefix-matching score", tuple(marks), "log")]
        sides = (
            ("batch size", self.batches, self.of_batches()),
            ("context", self.contexts, self.of_contexts()),
        )
        for label, sizes, cases in sides:
            x, tokens = np.array(sizes, dtype=float), self.tokens(run, cases)
            dots: list[Mark] = [
                Dots(x, own, label="" if seed else "measured", color=0)
                for seed, own in enumerate(tokens)
            ]
            whole = np.where(np.isfinite(tokens).all(axis=1, keepdims=True), tokens, np.nan)
            if np.isfinite(whole).any():
                middle = float(np.exp(np.nanmean(np.log(whole))))
                ratio = x / np.exp(np.log(x).mean())
                dots.append(Line(x, middle * ratio**0.5, "power 0.5", 1, theory=True))
            fit = self.fits(run)[0] if label == "batch size" else None
            if fit is not None:
                fine = np.geomspace(x[0], x[-1], 60)
                dots.append(Line(fine, fit.at(fine) * fine * self.context, "critical batch", 2))
            panels.append(Panel(f"over {label}", label, "tokens", tuple(dots), "log", "log"))
        return [
            Figure(
                "emergence",
                "When induction heads appear",
                "Left: prefix-matching score of the best head, on random words that come twice. "
                "Then: tokens read until it passes one half, over the batch size and over the "
                "context, with the law's power (dashed) and, of the first seed, the curve of a "
                "critical batch size.",
                tuple(panels),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate emergence beside the law, and the exponents with their intervals."""
        rows: list[tuple[Cell, ...]] = []
        for case in self.cases:
            updates = [float(self.updates(run, case, at).mean()) for at in (0.3, APPEARED, DONE)]
            law = emergence_tokens(*self.pair(case)).tokens
            score = float(carried(run.of(case).score).max("step").mean())
            tokens = updates[1] * float(np.prod(self.pair(case)))
            rows.append((case, *updates, tokens, law, score))
        head = ("batch x context", "updates to 0.3", "to 0.5", "to 0.8", "tokens", "law of 2025")
        exponents: list[tuple[Cell, ...]] = []
        found = {
            "exponent in the batch": slopes(self.batches, self.tokens(run, self.of_batches())),
            "exponent in the context": slopes(self.contexts, self.tokens(run, self.of_contexts())),
            "critical batch size": np.array(
                [np.nan if f is None else f.size for f in self.fits(run)]
            ),
        }
        for name, values in found.items():
            mean, low, high = (float(each) for each in mean_interval(values))
            exponents.append((name, mean, low, high, int(np.isfinite(values).sum())))
        return [
            Table("emergence", "Emergence, mean over seeds", (*head, "best score"), tuple(rows)),
            Table(
                "exponents",
                "Exponents of tokens, mean over seeds with 95 % intervals",
                ("what", "mean", "low", "high", "seeds in which all heads appeared"),
                tuple(exponents),
            ),
        ]


def _name(batch: int, context: int) -> str:
    return f"{batch} x {context}"
