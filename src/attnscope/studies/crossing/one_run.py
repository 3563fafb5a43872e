"""One training run and four theories on one axis of time: which of them speaks when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Count
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam
from attnscope.experiment import Problem
from attnscope.experiment.one_axis import BEGUN, LOOKS_BACK, Curve, one_axis
from attnscope.report import Figure, Line, Panel, Rule, Table
from attnscope.studies._markov import BIGRAM, UNIGRAM, HeldOut, MarkovStudy, closest
from attnscope.theory.edelman2024 import STRATEGIES
from attnscope.trajectory import Readings, crossing
from attnscope.watching import THEORIES, as_observables
from attnscope.watching.readings.rank_growth import stable_rank_of_change

EVENTS = (
    "closest to the unigram rule (edelman2024)",
    "attention of layer 1 begins (li2023)",
    "attention of layer 2 begins (li2023)",
    "layer 1 looks back (edelman2024)",
    "closest to the bigram rule (edelman2024)",
)


@dataclass(frozen=True)
class OneRun(MarkovStudy):
    """A two-layer transformer on Markov chains, read with the eyes of four papers.

    Phases (edelman2024), the onset of attention (li2023, snell2021), the rank of what has been
    learned (boix2023), and entropy with its floor (zhai2023).
    """

    seeds: Count = 4
    training: Adam = Adam(rate=3e-3, steps=500, batch=64)
    length: int = 48
    distance_std: float = 0.2
    held_out: int = 64
    every: int = 5

    quick = {"seeds": 3, "steps": 400}
    citation = "Edelman 2024, Li 2023, Boix-Adsera 2023, Zhai 2023"

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; what theories ask for is read as :func:`attnscope.watch` reads it.

        In double precision, so that rows of nearly uniform attention are told from their floor.
        """
        held_out = HeldOut(self.task(case), self.held_out)
        model = self.model(case, seed).double()
        readings = as_observables(model, THEORIES, probe=held_out.tokens)
        phases = held_out.observables(layers=2)[:1]
        return self.problem(model, self.task(case), seed, (*phases, *readings))

    def theory(self, run: Readings) -> dict[str, object]:
        """Return the stable rank of W_KᵀW_Q of layer 1 at the start, that of a random one."""
        found = []
        for case, seed in self.runs():
            first = self.model(case, seed).layers[0]
            key, query = (
                each.weight.detach().double()  # type: ignore[union-attr, operator]
                for each in (first.key, first.query)
            )
            nothing = torch.zeros_like(key)
            found.append(float(stable_rank_of_change(key, query, nothing, nothing)))
        return {"random_rank": ("run", found)}

    def events(self, run: Readings) -> xr.DataArray:
        """Return the step of every event, by seed; NaN for what does not come."""
        own = run.of("run")
        near, steps = closest(own.kl), own.kl["step"]

        def phase(number: int) -> xr.DataArray:
            there = near == number
            return steps.isel(step=there.argmax("step")).where(there.any("step")).astype(float)

        found = [
            phase(UNIGRAM),
            crossing(own.onset_distance.isel(layer=0), BEGUN),
            crossing(own.onset_distance.isel(layer=1), BEGUN),
            crossing(own.mass_previous.isel(layer=0, head=0), LOOKS_BACK),
            phase(BIGRAM),
        ]
        plain = [xr.DataArray(each.to_numpy(), dims="seed") for each in found]
        return xr.concat(plain, "event")

    def claims(self) -> list[Claim]:
        """Return the order of what the theories announce."""

        def later(run: Readings, events: tuple[int, int]) -> xr.DataArray:
            times = self.events(run)
            return times.isel(event=events[1]) - times.isel(event=events[0])

        def rank(run: Readings, when: str) -> xr.DataArray:
            if when == "start":
                return run.of("run").theory.random_rank
            own = run.of("run").rank_growth.isel(layer=0, head=0, product=0)
            at = self.events(run).isel(event=3)
            picked = [
                float(own.isel(seed=i).sel(step=step, method="nearest"))
                if np.isfinite(step)
                else np.nan
                for i, step in enumerate(at.to_numpy())
            ]
            return xr.DataArray(picked, dims="seed")

        def slack(run: Readings, factor: float) -> xr.DataArray:
            own = run.of("run")
            return (own.entropy - factor * own.entropy_floor).min(["step", "layer", "head"])

        def order(
            key: str,
            sentence: str,
            events: tuple[int, int],
            source: str,
            control: tuple[tuple[int, int], str],
            reason: str = "",
        ) -> Claim:
            return Claim(
                key,
                sentence,
                later,
                events,
                above(0.0),
                control,
                source,
                "",
                "steps from the one to the other",
                reason=reason,
            )

        return [
            order(
                "unigram-first",
                "The unigram rule is there before attention of layer 1 has begun: it needs none.",
                (0, 1),
                "li2023: values before attention; edelman2024: layer 2 first",
                ((4, 1), "the bigram rule in the place of the unigram rule"),
                f"in some seeds attention of layer 1 passes {BEGUN} within the same first steps in "
                "which the unigram rule is learned.",
            ),
            order(
                "onset-before-transition",
                "Attention of layer 1 leaves uniform before the bigram rule is there: onset "
                "announces the transition.",
                (1, 4),
                "li2023 and edelman2024",
                ((4, 1), "the other way round"),
            ),
            Claim(
                "low-rank",
                "When layer 1 looks back, what W_K W_Q^T of layer 1 has learned is of stable rank "
                "below 2.",
                rank,
                "transition",
                below(2.0),
                ("start", "the random matrices of the start"),
                "boix2023: rank grows one by one",
                "",
                "stable rank of the change of W_K W_Q^T, layer 1",
            ),
            Claim(
                "floor",
                "The mean entropy of a layer is never below the mean floor of its rows.",
                slack,
                1.0,
                above(-1e-9),
                (2.0, "twice the floor"),
                "zhai2023, for single rows",
                "",
                "least difference over layers and steps (nats)",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw all theories on one axis, as the report of a watched run does, phases first."""
        own, steps = run.of("run"), run.kl["step"].to_numpy()
        curves: dict[str, Curve] = {
            name: (steps, own.get(name).isel(seed=0).to_numpy()) for name in THEORIES
        }
        rules = tuple(
            Rule(float(self.events(run)[i, 0]), words, vertical=True)
            for i, words in ((0, "unigram rule"), (4, "bigram rule"))
            if np.isfinite(self.events(run)[i, 0])
        )
        lines = tuple(
            Line(steps, own.kl.isel(seed=0, answer=i).to_numpy(), f"from the {name} rule", i)
            for i, name in enumerate(STRATEGIES)
        )
        phases = Panel("phases (edelman2024)", "step", "KL (nats)", (*lines, *rules))
        caption = "The first seed of a two-layer transformer on Markov chains."
        return [one_axis(curves, 1, more=[phases], caption=caption)]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the events."""
        events = self.events(run)
        rows = tuple(
            (name, float(own.mean()), float(own.min()), float(own.max()))
            for name, own in zip(EVENTS, events, strict=True)
        )
        head = ("event", "mean step", "first", "last")
        return [Table("events", "Which theory speaks when, over seeds", head, rows)]
