"""A transformer learns Markov chains in phases: uniform, then unigram, then bigram (Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.bounds import Count
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam
from attnscope.experiment import Problem
from attnscope.report import Figure, Mark, Panel, Rule, Table, band, ends
from attnscope.studies._markov import (
    BIGRAM,
    TIED,
    TRUTH,
    UNIGRAM,
    HeldOut,
    MarkovStudy,
    closest,
    lead,
)
from attnscope.theory import edelman2024
from attnscope.theory.edelman2024 import LOOKS_BACK, STRATEGIES
from attnscope.trajectory import Readings, crossing, final, initial

TWO, ONE = "two layers", "one layer"
LEAST_POINTS = 5
"""Record points for which each phase must last."""


@dataclass(frozen=True)
class Phases(MarkovStudy):
    """Two layers of attention, and one layer, which cannot do what the last phase needs."""

    seeds: Count = 10
    training: Adam = Adam(rate=5e-4, steps=2000, batch=64)

    quick = {"seeds": 4, "steps": 400, "rate": 3e-3, "length": 48, "distance_std": 0.2}
    citation = "Edelman et al. 2024, arXiv 2402.11004"
    cases = (TWO, ONE)

    def layers(self, case: str) -> int:
        """Return one layer or two."""
        return 1 if case == ONE else 2

    def build(self, case: str, seed: int) -> Problem:
        """Make a run. The layer that one layer lacks looks nowhere."""
        held_out = HeldOut(self.task(case), self.held_out)
        return self.problem(
            self.model(case, seed), self.task(case), seed, held_out.observables(layers=2)
        )

    def theory(self, run: Readings) -> dict[str, object]:
        """Return what each strategy costs on the held-out sequences, and with infinite context."""
        costs = HeldOut(self.task(TWO), self.held_out).costs().numpy()
        limit = edelman2024.infinite_context(self.states)
        meaning = "KL(truth || strategy) on the held-out sequences"
        return {
            "cost": ("strategy", costs, {"meaning": meaning, "unit": "nats"}),
            "limit": ("strategy", [limit.uniform, limit.unigram, 0.0], {"unit": "nats"}),
        }

    def costs(self, run: Readings) -> np.ndarray:
        """Return what the strategies cost."""
        return np.asarray(run.theory.cost.to_numpy())

    def claims(self) -> list[Claim]:
        """Return what the paper says of phases."""

        def shortest(run: Readings, case: str) -> xr.DataArray:
            """Return the record points of the shortest phase; 0 if they come out of order."""
            near = closest(run.of(case).kl)
            share = xr.concat([(near == i).sum("step") for i in range(TRUTH)], "strategy")
            first = xr.concat([(near == i).argmax("step") for i in range(TRUTH)], "strategy")
            ordered = (first.diff("strategy") > 0).all("strategy")
            return share.min("strategy").where(ordered, 0)

        def bigram_share(run: Readings, case: str) -> xr.DataArray:
            return (closest(run.of(case).kl) == BIGRAM).mean("step")

        def off_plateau(run: Readings, strategy: int) -> xr.DataArray:
            """Return how far the loss of the unigram phase is from the cost of a strategy."""
            own = run.of(TWO)
            plateau = own.kl.sel(answer="truth").where(closest(own.kl) == UNIGRAM).median("step")
            return abs(plateau / float(self.costs(run)[strategy]) - 1)

        def looks(run: Readings, case: str) -> xr.DataArray:
            return final(run.of(case).looks_back).isel(layer=0)

        return [
            Claim(
                "phases",
                "The model comes closest to the uniform, then the unigram, then the bigram rule.",
                shortest,
                TWO,
                above(LEAST_POINTS - 0.5),
                (ONE, "one layer"),
                "section 3, Fig 1",
                "three phases",
                "record points of the shortest phase, 0 if they come out of order",
            ),
            Claim(
                "one-layer",
                "One layer never comes closest to the bigram rule.",
                bigram_share,
                ONE,
                below(1e-9),
                (TWO, "two layers"),
                "section 3",
                "",
                "share of record points closest to the bigram rule",
            ),
            Claim(
                "plateau",
                "On the plateau the model does as well as the unigram rule.",
                off_plateau,
                UNIGRAM,
                below(0.25),
                (BIGRAM, "the cost of the bigram rule"),
                "section 3",
                "",
                "difference of the plateau's loss (median) from the rule's, over the rule's",
            ),
            Claim(
                "looks-back",
                "The bigram rule comes with a first layer that looks at the previous state.",
                looks,
                TWO,
                above(LOOKS_BACK),
                (ONE, "one layer"),
                "section 3, Fig 2",
                "",
                "attention of layer 1 to the previous state at the end",
            ),
        ]

    def transition(self, run: Readings, case: str) -> xr.DataArray:
        """Return the step at which layer 1 looks back; the last one if it never does."""
        found = crossing(run.of(case).looks_back.isel(layer=0), LOOKS_BACK)
        return found.fillna(float(self.training.steps))

    def figures(self, run: Readings) -> list[Figure]:
        """Draw divergences from the strategies, the loss, and where layer 1 looks."""
        panels = []
        for case in (TWO, ONE):
            kl = run.of(case).kl.isel(answer=slice(0, TRUTH))
            marks: list[Mark] = []
            for i, name in enumerate(STRATEGIES):
                marks += band(kl.isel(answer=i), f"from the {name} rule", i)
            title = f"{case}: distance from each rule"
            panels.append(Panel(title, "step", "KL (nats)", tuple(marks)))
        rules = tuple(
            Rule(float(cost), f"cost of the {name} rule")
            for name, cost in zip(STRATEGIES, self.costs(run), strict=True)
        )
        losses: list[Mark] = []
        looks: list[Mark] = []
        for i, case in enumerate(self.cases):
            looks += band(run.of(case).looks_back.isel(layer=0), case, i + 3)
            losses += band(run.of(case).kl.sel(answer="truth"), case, i + 3)
        level = Rule(LOOKS_BACK, f"{LOOKS_BACK:g}")
        return [
            Figure(
                "phases",
                "Uniform, unigram, bigram: one rule after the other",
                f"Means over {self.seeds} seeds with 95 % intervals, at the last position of "
                f"{self.held_out} held-out sequences of {self.length} states. Two layers come "
                "close to the uniform, the unigram and the bigram rule in turn; one layer stays "
                "with the unigram rule. The loss stands on the cost of one rule and falls to that "
                "of the next. The last panel shows when layer 1 looks at the previous state.",
                (
                    *panels,
                    Panel("loss over knowing the chain", "step", "KL (nats)", (*losses, *rules)),
                    Panel(
                        "layer 1 looks back",
                        "step",
                        "attention to the previous state",
                        (*looks, level),
                    ),
                ),
                columns=2,
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate when phases begin and how runs end."""
        near = xr.concat([closest(run.of(case).kl) for case in self.cases], "case")
        steps = near["step"]
        begins = {
            f"closest to {name} from step": steps.isel(step=(near == i).argmax("step"))
            .where((near == i).any("step"))
            .assign_coords(case=list(self.cases))
            for i, name in enumerate(STRATEGIES)
        }
        looks = xr.concat([self.transition(run, case) for case in self.cases], "case")
        columns = {
            **begins,
            f"looks back ({LOOKS_BACK:g}) at step": looks.assign_coords(case=list(self.cases)),
            "runner-up at the end further off by (nats)": lead(run.kl),
            "record points with two rules equally close": (near == TIED)
            .sum("step")
            .assign_coords(case=list(self.cases)),
            "loss at first (nats)": initial(run.kl.sel(answer="truth")),
            "loss at the end (nats)": final(run.kl.sel(answer="truth")),
        }
        return [ends(run, key="phases", title="Phases, mean over seeds", more=columns)]
