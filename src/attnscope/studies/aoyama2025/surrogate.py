"""When a head that looks back appears on Markov chains, by batch size; in seconds (beyond)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, within
from attnscope.engines import Adam, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.report import Dots, Figure, Line, Mark, Panel, Table
from attnscope.studies._markov import HeldOut, MarkovStudy
from attnscope.studies.aoyama2025._exponents import slopes
from attnscope.theory.edelman2024 import LOOKS_BACK
from attnscope.trajectory import Readings, crossing


@dataclass(frozen=True)
class Surrogate(MarkovStudy):
    """The head of the first layer of an induction circuit, at batch sizes a factor apart.

    The law is about language models of a night each. On Markov chains the same circuit forms in
    seconds; whether it follows the same exponent is what is asked.
    """

    seeds: Count = 3
    training: Steps = Steps(steps=900, batch=32)
    length: int = 48
    distance_std: float = 0.2
    held_out: int = 64
    every: int = 10
    batches: tuple[Several, ...] = (32, 64, 128, 256)
    """Sequences in an update, case by case."""
    rate: Positive = 3e-3
    """Learning rate of Adam, the same for all."""

    quick = {"seeds": 3, "batches": (64, 128, 256), "steps": 400}
    citation = "Aoyama et al. 2025, arXiv 2511.16893"

    def check(self) -> None:
        """Check that there are batch sizes to compare."""
        super().check()
        if len(self.batches) < 2 or list(self.batches) != sorted(set(self.batches)):
            raise AttnscopeError(
                f"batches = {self.batches}: expected two or more rising batch sizes."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """The batch sizes."""
        return tuple(f"batch {size}" for size in self.batches)

    def engine(self, case: str, seed: int) -> Adam:
        """Return Adam on batches of the case's size."""
        return Adam(rate=self.rate, steps=self.training.steps, batch=int(case.split()[1]))

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; all batch sizes of a seed have the same start."""
        held_out = HeldOut(self.task(case), self.held_out)
        read = held_out.observables(layers=2)[1:]
        return self.problem(
            self.model(case, seed), self.task(case), seed, read, int(case.split()[1])
        )

    def tokens(self, run: Readings) -> xr.DataArray:
        """Return the tokens read until the head appeared; NaN where it did not."""
        steps = xr.concat(
            [crossing(run.of(case).looks_back.isel(layer=0), LOOKS_BACK) for case in self.cases],
            "case",
        )
        sizes = xr.DataArray(np.array(self.batches, dtype=float), dims="case")
        return steps * sizes * self.length

    def slope(self, run: Readings) -> xr.DataArray:
        """Return the slope of log tokens over log batch size, seed by seed."""
        tokens = self.tokens(run).transpose("seed", "case").to_numpy()
        return xr.DataArray(slopes(self.batches, tokens), dims="seed")

    def claims(self) -> list[Claim]:
        """Return the exponent, against its two alternatives."""

        def exponent(run: Readings, power: float) -> xr.DataArray:
            """Return the exponent that is left when tokens are divided by batch to a power."""
            return self.slope(run) - power

        source = "N = T √(B C); refitted, B^0.63"
        measure = "slope of log tokens at emergence over log batch size, mean over seeds"
        return [
            Claim(
                "exponent",
                "Tokens until the head appears grow with the batch size to the power 0.5 to 0.63, "
                "as for induction heads of language models.",
                exponent,
                0.0,
                within(0.3, 0.8),
                (1.0, "the same data at an exponent one less: tokens independent of the batch"),
                source,
                "0.5 (2025), 0.63 (2026)",
                measure,
                each=False,
                reason="with full batches tokens grow in proportion to the batch: where noise of "
                "the gradient stops to decide, the exponent turns from 0.5 into 1.",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw tokens and updates at emergence over the batch size."""
        x, tokens = np.array(self.batches, dtype=float), self.tokens(run)
        marks: list[Mark] = []
        for seed in range(tokens.sizes["seed"]):
            own = tokens.isel(seed=seed).to_numpy()
            marks.append(Dots(x, own, label=f"seed {seed}", color=seed))
        middle = float(np.exp(np.log(tokens).mean()))
        for power in (0.5, 1.0):
            line = middle * (x / np.exp(np.log(x).mean())) ** power
            marks.append(Line(x, line, f"batch to the power {power:g}", 3, theory=power == 0.5))
        return [
            Figure(
                "surrogate",
                "Tokens until a head looks back",
                "Tokens read until attention of layer 1 to the previous state passes "
                f"{LOOKS_BACK}, over the batch size, with the exponent of the law (dashed) and "
                "that of a constant number of updates.",
                (Panel("emergence", "batch size", "tokens", tuple(marks), "log", "log"),),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate emergence by batch size."""
        tokens = self.tokens(run)
        logs = np.log(tokens.transpose("case", "seed").to_numpy()).mean(axis=1)
        local = np.append(np.nan, np.diff(logs) / np.diff(np.log(self.batches)))
        rows = tuple(
            (
                case,
                float(tokens.isel(case=i).mean()) / (size * self.length),
                float(tokens.isel(case=i).mean()),
                float(local[i]),
                int(tokens.isel(case=i).notnull().sum()),
            )
            for i, (case, size) in enumerate(zip(self.cases, self.batches, strict=True))
        )
        head = ("case", "updates", "tokens", "local exponent", "seeds in which it appeared")
        return [Table("surrogate", "Emergence, mean over seeds", head, rows)]
