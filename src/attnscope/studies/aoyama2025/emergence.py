"""When induction heads appear in a language model, over batch size and context: a night (Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Fraction, Positive, Several
from attnscope.claims import Claim, above, within
from attnscope.engines import Adam, Linear, Observable, Record, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.relative_attention import RelativeTransformer, next_state_loss
from attnscope.probes.repeated_tokens import induction, repeated_ids
from attnscope.report import Dots, Figure, Mark, Panel, Rule, Table, each_seed
from attnscope.report.page import Cell
from attnscope.tasks.repetition import Repetition, RepetitionStream
from attnscope.theory.aoyama2025 import emergence_tokens
from attnscope.trajectory import Readings, crossing

APPEARED = 0.5
"""Prefix-matching score of the best head that counts as an induction head."""
LONGEST = 50
"""Words of a probe sequence that are said twice, as in the paper."""


class _Loss:
    """Cross-entropy of the next word on text that is never seen again."""

    def __init__(self, stream: RepetitionStream) -> None:
        self.stream = stream

    def __call__(self, model: nn.Module, rows: Tensor) -> Tensor:
        tokens = self.stream.batch(rows)
        return next_state_loss(model(tokens), tokens)


@dataclass(frozen=True)
class Emergence(Study):
    """Two layers of attention on synthetic text, at four pairs of batch size and context.

    Runs go until twice what the law says, and last a night on two cores at the default setting;
    at the quick one they are too short for a head to appear, and only show that everything works.
    ``aoyama2025.surrogate`` is the same question in seconds.
    """

    seeds: Count = 2
    training: Steps = Steps(steps=60_000, batch=8)
    words: Several = 1000
    """V."""
    width: Count = 128
    """d."""
    settings_tried: tuple[str, ...] = ("8 x 64", "32 x 64", "8 x 128", "32 x 128")
    """Batch size and context of every case."""
    frequency: Fraction = 0.9
    """How often a word has occurred before."""
    reliability: Fraction = 0.9
    """How often its old successor then follows again."""
    rate: Positive = 1e-3
    """Learning rate of Adam."""
    probes: Count = 100
    """Sequences that heads are read on."""
    points: Several = 121
    """Record points."""

    quick = {
        "seeds": 1,
        "steps": 60,
        "words": 100,
        "width": 32,
        "settings_tried": ("8 x 32", "16 x 32"),
        "probes": 20,
        "points": 7,
    }
    citation = "Aoyama et al. 2025, arXiv 2511.16893"

    @property
    def cases(self) -> tuple[str, ...]:
        """Batch size and context."""
        return self.settings_tried

    def task(self, case: str) -> Repetition:
        """Return the text of a case."""
        return Repetition(self.words, _pair(case)[1], self.frequency, self.reliability)

    def check(self) -> None:
        """Check that every case is a batch size and a context that text can have."""
        for case in self.settings_tried:
            _pair(case)
            self.task(case)

    def engine(self, case: str, seed: int) -> Adam:
        """Return Adam on batches of the case's size."""
        return Adam(rate=self.rate, steps=self.training.steps, batch=_pair(case)[0])

    def build(self, case: str, seed: int) -> Problem:
        """Make a run."""
        batch, context = _pair(case)
        model = RelativeTransformer(
            self.words,
            context,
            width=self.width,
            distance_std=0.2,
            generator=torch.Generator().manual_seed(seed),
        )
        length = 2 * min(LONGEST, context // 2)
        ids = torch.from_numpy(repeated_ids(self.probes, length, self.words, seed))

        def score(module: nn.Module) -> Tensor:
            assert isinstance(module, RelativeTransformer)
            weights = module.answer(ids).attention
            found = [induction(each[:, None].numpy())[0] for each in weights]
            return torch.tensor(found, dtype=torch.float64)

        read = Observable("prefix_matching", score, ("layer",), "", "prefix-matching score")
        loss = _Loss(self.task(case).stream(seed))
        rows = batch * (self.training.steps + 1)
        record = Record((read,), Linear(self.points))
        return Problem(model, loss, [record], rows=rows, seed=seed, shuffle=False)

    def theory(self, run: Readings) -> dict[str, object]:
        """Return the tokens at which heads should appear, by both fits."""
        found = {
            fit: [emergence_tokens(*_pair(case), fit=fit).tokens for case in self.cases]
            for fit in ("2025", "2026")
        }
        return {f"tokens_{fit}": ("case", values) for fit, values in found.items()}

    def tokens(self, run: Readings) -> xr.DataArray:
        """Return the tokens read until a head appeared; NaN where none did."""
        found = []
        for case in self.cases:
            batch, context = _pair(case)
            best = run.of(case).prefix_matching.max("layer")
            found.append(crossing(best, APPEARED) * batch * context)
        return xr.concat(found, "case")

    def claims(self) -> list[Claim]:
        """Return the slope of the law, and that heads appear at all."""

        def slope(run: Readings, power: float) -> xr.DataArray:
            tokens = np.log(self.tokens(run).transpose("seed", "case").to_numpy())
            x = np.log([np.prod(_pair(case)) for case in self.cases])
            x = x - x.mean()
            return xr.DataArray(tokens @ x / (x @ x) - power, dims="seed")

        def best(run: Readings, when: int) -> xr.DataArray:
            read = run.prefix_matching.isel(step=when)
            return read.max("layer").min("case")

        return [
            Claim(
                "appear",
                "An induction head appears in every case.",
                best,
                -1,
                above(APPEARED),
                (0, "before training"),
                "section 3",
                "",
                "prefix-matching score of the best head, least over cases",
                reason="runs are shorter than the law asks for.",
            ),
            Claim(
                "law",
                "Tokens until then grow with the tokens of an update to the power 0.3 to 0.7.",
                slope,
                0.0,
                within(0.3, 0.7),
                (1.0, "an exponent one less"),
                "N = T √(B C)",
                "0.5",
                "slope of log tokens over log(B C); undecided where no head appeared",
                each=False,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the score of the best head, and emergence over the tokens of an update."""
        marks: list[Mark] = []
        for i, case in enumerate(self.cases):
            marks += each_seed(run.of(case).prefix_matching.max("layer"), case, i)
        marks.append(Rule(APPEARED, "an induction head"))
        x = np.array([float(np.prod(_pair(case))) for case in self.cases])
        points: list[Mark] = [
            Dots(x, _law(run, fit), label=f"law of {fit}", color=i + 1)
            for i, fit in enumerate(("2025", "2026"))
        ]
        for seed, own in enumerate(self.tokens(run).transpose("seed", "case").to_numpy()):
            points.append(Dots(x, own, label="" if seed else "measured", color=0))
        return [
            Figure(
                "emergence",
                "When induction heads appear",
                "Left: prefix-matching score of the best head, on random words that come twice. "
                "Right: tokens read until it passes one half, with the law in both fits.",
                (
                    Panel("best head", "step", "prefix-matching score", tuple(marks)),
                    Panel("law", "tokens in an update", "tokens", tuple(points), "log", "log"),
                ),
                columns=2,
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate emergence beside the law."""
        rows: list[tuple[Cell, ...]] = []
        for i, case in enumerate(self.cases):
            law = [float(_law(run, fit)[i]) for fit in ("2025", "2026")]
            score = float(run.of(case).prefix_matching.isel(step=-1).max("layer").mean())
            rows.append((case, float(self.tokens(run).isel(case=i).mean()), *law, score))
        head = ("batch x context", "tokens at emergence", "law of 2025", "law of 2026", "score")
        return [Table("emergence", "Emergence, mean over seeds", head, tuple(rows))]


def _law(run: Readings, fit: str) -> np.ndarray:
    """Return what a fit says of every case; seeds have the same."""
    return np.asarray(run.theory.get(f"tokens_{fit}").isel(seed=0).to_numpy())


def _pair(case: str) -> tuple[int, int]:
    batch, _, context = case.partition(" x ")
    if not (batch.isdigit() and context.isdigit() and int(batch)):
        raise AttnscopeError(f"settings_tried has '{case}': expected batch x context, as '8 x 64'.")
    return int(batch), int(context)
