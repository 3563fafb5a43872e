"""The minimal model on Markov chains of your choice, by flow; the lab plays it (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Bounds, Fraction, Positive, Several
from attnscope.claims import Claim, Finding, above, below
from attnscope.engines import Flow, Logarithmic, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models.minimal_induction import ExpectedLoss, MinimalInduction
from attnscope.report import Figure, Line, Mark, Panel, Rule
from attnscope.studies._markov import TIED, closest, lead
from attnscope.studies.edelman2024._minimal_readings import minimal, observables
from attnscope.tasks.markov_chains import Chains, MarkovChains, Rows
from attnscope.theory.edelman2024 import LOOKS_BACK, STRATEGIES, predict_transition
from attnscope.trajectory import Readings, crossing, final

MOST = 12_000
"""States in all sequences together, so that no setting takes long."""
SHOWN = 10
"""Positions whose attention is shown."""
STIFF = 4_000
"""Steps after which a flow gives up: late in training it is stiff, and all that matters is over."""


@dataclass(frozen=True)
class Minimal(Playable):
    """One run of the minimal model, with the predicted time of its transition."""

    training: Flow = Flow(until=10.0, rtol=1e-4, atol=1e-7, max_steps=STIFF)
    points: Several = 121
    """Record points, evenly spaced on a logarithmic axis."""
    states: Annotated[int, Bounds(2, 8)] = 2
    """k."""
    length: Annotated[int, Bounds(8, 64)] = 32
    """T, states in a sequence."""
    sequences: Annotated[int, Bounds(1, 400)] = 96
    """Sequences that are learned from."""
    rate: Positive = 100.0
    """How much faster v moves than W."""
    rows: Rows = "dirichlet"
    """How transition matrices are drawn."""
    unigram_share: Fraction = 0.0
    """Share of chains in which the next state does not depend on the last one."""

    citation = "Edelman et al. 2024, arXiv 2402.11004"

    def check(self) -> None:
        """Check that no run takes long, and that there is something to learn."""
        if self.sequences * self.length > MOST:
            raise AttnscopeError(
                f"sequences = {self.sequences} of length = {self.length}: expected {MOST:,} states "
                "in all or fewer."
            )
        if self.unigram_share == 1:
            raise AttnscopeError(
                "unigram_share = 1: expected some chains whose next state depends on the last one."
            )

    def chains(self, seed: int) -> Chains:
        """Return the sequences of a run."""
        task = MarkovChains(self.states, self.length, self.rows, self.unigram_share)
        return task.sample(self.sequences, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run."""
        chains = self.chains(seed)
        model = MinimalInduction(self.states, self.length, rate=self.rate)

        def weights(module: nn.Module) -> Tensor:
            return minimal(module).first_layer()[:SHOWN, :SHOWN]

        shown = Observable("attention", weights, ("query", "key"), "", "layer 1, first positions")
        record = Record((*observables(chains), shown), Logarithmic(self.points, 1e-3 * self.end))
        return Problem(model, ExpectedLoss(chains), [record])

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the transition from the unigram rule; NaN where it has no push to look back."""
        found = []
        for _, seed in self.runs():
            try:
                found.append(predict_transition(self.chains(seed), self.rate).time)
            except AttnscopeError:
                found.append(np.nan)
        return {"transition": ("run", found, {"meaning": "predicted time of the transition"})}

    def claims(self) -> list[Claim]:
        """Return the order of the phases, and the prediction where the run is long enough."""

        def ordered(run: Readings, order: tuple[int, int]) -> xr.DataArray:
            """Return how much later the second phase begins than the first."""
            kl = run.of("run").kl
            near = closest(kl, "strategy")
            first = [(near == i).argmax("step") for i in order]
            there = (near == order[0]).any("step") & (near == order[1]).any("step")
            times = [kl["time"].isel(step=each) for each in first]
            return (times[1] - times[0]).where(there)

        def off(run: Readings, factor: float) -> xr.DataArray:
            own = run.of("run")
            return abs(factor * own.theory.transition / self.measured(run) - 1)

        return [
            Claim(
                "order",
                "The model is closest to the unigram rule first and to the bigram rule later.",
                ordered,
                (1, 2),
                above(0.0),
                ((2, 1), "the other way round"),
                "section 4",
                "unigram, then bigram",
                "time from the beginning of one phase to that of the other",
            ),
            Claim(
                "predicted",
                "Layer 1 begins to look back at the time that the unigram rule predicts.",
                off,
                1.0,
                below(0.15),
                (2.0, "twice the time"),
                "not in the paper",
                "not stated",
                "relative error of the predicted time",
            ),
        ]

    def measured(self, run: Readings) -> xr.DataArray:
        """Return the time at which layer 1 looked back; NaN if it never did."""
        looks = run.of("run").looks_back
        clock = looks.assign_coords(step=looks["time"].to_numpy())
        return crossing(clock, LOOKS_BACK)

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the distance from each rule, where layer 1 looks, and its logits by distance."""
        own = run.of("run")
        times = own.looks_back["time"].to_numpy()[1:]

        def line(reading: xr.DataArray, label: str, color: int = 0) -> Line:
            return Line(times, reading.isel(seed=0).to_numpy()[1:], label, color)

        now = Rule(float(times[-1]), NOW, vertical=True)
        marks: tuple[Mark, ...] = (now,)
        expected = float(own.theory.transition[0])
        if np.isfinite(expected):
            marks += (Rule(expected, "predicted", vertical=True),)
        rules = tuple(
            line(own.kl.isel(strategy=i), f"from the {name} rule", i)
            for i, name in enumerate(STRATEGIES)
        )
        lags = tuple(
            line(own.v.isel(lag=i), f"distance {i}", i) for i in range(min(5, own.v.sizes["lag"]))
        )
        return [
            Figure(
                "play-edelman2024",
                "First counts of states, then counts of pairs",
                "Left: how far the model is from answering with the uniform, the unigram and the "
                "bigram rule. Middle: how much layer 1 looks at the previous state, which the "
                f"bigram rule needs; the transition is where it passes {LOOKS_BACK}, and the rule "
                "marked predicted is where the unigram rule says it will be. Right: what layer 1 "
                "thinks of each distance.",
                (
                    Panel("rules", "time", "KL (nats)", (*rules, *marks), "log", "log"),
                    Panel(
                        "looking back",
                        "time",
                        "attention to the previous state",
                        (line(own.looks_back, "layer 1", 1), Rule(LOOKS_BACK), *marks),
                        "log",
                    ),
                    Panel("distances", "time", "v", (*lags, now), "log"),
                ),
            )
        ]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return the weights of layer 1 at the first positions."""
        weights = run.of("run").get("attention").isel(seed=0)
        reached = weights.notnull().all(["query", "key"]).to_numpy()
        count = weights.sizes["query"]
        names = tuple(f"state {i + 1}" for i in range(count))
        return AttentionOverTime(
            "Layer 1: where each position looks",
            "Rows look at columns, percent. The bigram rule needs the previous position, outlined.",
            weights["time"].to_numpy()[reached],
            "time",
            names,
            names,
            weights.to_numpy()[reached],
            (-1,) * count,
            tuple(i - 1 for i in range(count)),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say which rule the model ended with and when it changed."""
        last = final(run.of("run").kl).isel(seed=0)
        time, expected = float(self.measured(run)[0]), float(run.of("run").theory.transition[0])
        said = f"The model ended {_place(last)}"
        guess = f"predicted at time {expected:.3g}" if np.isfinite(expected) else "not predicted"
        if np.isfinite(time):
            return f"{said}; layer 1 looked back at time {time:.3g}, {guess}."
        return f"{said}; layer 1 has not looked back yet, {guess}."


def _place(kl: xr.DataArray) -> str:
    """Say which rule is closest and by how much, or that two are equally close."""
    first, second = (STRATEGIES[i] for i in kl.argsort().to_numpy()[:2])
    gap = float(lead(kl, "strategy"))
    if int(closest(kl, "strategy")) == TIED:
        return f"as close to the {first} rule as to the {second} rule ({gap:.2g} nats between them)"
    return f"closest to the {first} rule (the {second} rule is {gap:.2g} nats further off)"
