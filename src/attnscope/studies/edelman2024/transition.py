"""When the minimal model leaves the unigram rule, predicted from that rule alone (section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, above, below
from attnscope.engines import Flow, Linear, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.minimal_induction import ExpectedLoss, MinimalInduction
from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, Table, each_seed
from attnscope.studies.edelman2024._minimal_readings import observables
from attnscope.tasks.markov_chains import Chains, MarkovChains, Rows
from attnscope.theory.edelman2024 import (
    LOOKS_BACK,
    Transition,
    lag_push,
    predict_transition,
)
from attnscope.trajectory import Readings, crossing

DOUBLY = "doubly stochastic"


class ScaledLoss:
    """A loss times a constant: the flow goes the same way, so many times as fast."""

    def __init__(self, chains: Chains, scale: float) -> None:
        self.loss, self.scale = ExpectedLoss(chains), scale

    def __call__(self, model: nn.Module) -> Tensor:
        """Return the loss times the constant."""
        return self.scale * self.loss(model)


@dataclass(frozen=True)
class TransitionTimes(Study):
    """Flows of the minimal model at rates of v over W that differ by a factor of 100.

    Time is counted in predicted transition times, so that all rates share an axis and every
    transition should be at 1. The last case has doubly stochastic chains, at the middle rate.
    """

    seeds: Count = 5
    training: Flow = Flow(until=2.5, rtol=1e-4, atol=1e-8)
    rates: tuple[Positive, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0)
    """How much faster v moves than W."""
    states: Several = 2
    """k."""
    length: Several = 32
    """T, states in a sequence."""
    sequences: Count = 96
    """Sequences that are learned from, all at every moment."""
    points: Several = 201
    """Record points."""

    quick = {"seeds": 3, "rates": (10.0, 100.0, 1000.0)}
    citation = "Edelman et al. 2024, arXiv 2402.11004"

    def check(self) -> None:
        """Check that there are rates to compare."""
        if len(set(self.rates)) < 2:
            raise AttnscopeError(f"rates = {self.rates}: expected two or more numbers above 0.")
        MarkovChains(self.states, self.length)

    @property
    def cases(self) -> tuple[str, ...]:
        """The rates, and doubly stochastic chains."""
        return (*(_name(rate) for rate in self.rates), DOUBLY)

    @property
    def middle(self) -> float:
        """The rate at which the two kinds of chains are compared."""
        return sorted(self.rates)[len(self.rates) // 2]

    def chains(self, case: str, seed: int) -> Chains:
        """Return the sequences of a run; all rates of a seed have the same."""
        return _chains(self.states, self.length, self.sequences, case, seed)

    def rate(self, case: str) -> float:
        """Return the rate of a case."""
        return self.middle if case == DOUBLY else float(case.removeprefix("rate "))

    def predicted(self, case: str, seed: int) -> Transition:
        """Return when the transition should be."""
        return _predicted(self.states, self.length, self.sequences, case, self.rate(case), seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run in predicted transition times."""
        chains = self.chains(case, seed)
        model = MinimalInduction(self.states, self.length, rate=self.rate(case))
        record = Record(observables(chains), Linear(self.points))
        return Problem(model, ScaledLoss(chains, self.predicted(case, seed).time), [record])

    def theory(self, run: Readings) -> dict[str, object]:
        """Return the predictions, and the push on v at the unigram point and near it."""
        found = [self.predicted(case, seed) for case, seed in self.runs()]
        first = self.chains(self.cases[0], 0)
        at, near = (
            MinimalInduction(self.states, self.length, unigram=0.1, rate=1.0) for _ in range(2)
        )
        with torch.no_grad():
            near.W.data += 0.02 * torch.eye(self.states)
        return {
            "time": ("run", [each.time for each in found], {"meaning": "by the expansion"}),
            "linear": ("run", [each.linear for each in found], {"meaning": "by the linear flow"}),
            "push_at_unigram": ("lag", lag_push(at, first)),
            "push": ("lag", lag_push(near, first)),
        }

    def measured(self, run: Readings, case: str) -> xr.DataArray:
        """Return when layer 1 looked back, in the flow's own time."""
        own = run.of(case)
        return crossing(own.looks_back, LOOKS_BACK) * own.theory.time

    def claims(self) -> list[Claim]:
        """Return the prediction, its mechanism, and the delay by the unigram rule."""
        known = tuple(_name(rate) for rate in self.rates)

        def off(run: Readings, how: str) -> xr.DataArray:
            """Return the largest relative error over the rates."""
            errors = []
            for case in known:
                own = run.of(case).theory
                guess = own.linear if how == "linear" else own.time
                if how == "inverse":
                    slow = run.of(_name(min(self.rates))).theory.time
                    guess = slow * min(self.rates) / self.rate(case)
                errors.append(abs(guess / self.measured(run, case) - 1))
            return xr.concat(errors, "case").max("case", skipna=False)

        def pushed(run: Readings, where: str) -> float:
            push = run.theory.get(where).to_numpy()
            return float(np.log10(np.abs(push).max() + 1e-300))

        def odd_less_even(run: Readings, shift: int) -> xr.DataArray:
            """Return v at distances 1, 3 less its mean at 0, 2, 4, when layer 1 looks back."""
            v = run.of(_name(self.middle)).v
            late = run.of(_name(self.middle)).looks_back > LOOKS_BACK
            at = v.isel(step=late.argmax("step"))
            odd = at.isel(lag=[1 + shift, 3 + shift]).mean("lag")
            return odd - at.isel(lag=[0 + shift, 2 + shift, 4 + shift]).mean("lag")

        def delay(run: Readings, cases: tuple[str, str]) -> xr.DataArray:
            late, early = (self.measured(run, case) for case in cases)
            return xr.DataArray(np.log(late / early))

        both = (_name(self.middle), DOUBLY)
        return [
            Claim(
                "predicted",
                "The time at which layer 1 begins to look back follows from the unigram rule: from "
                "its residual and curvature, at every rate.",
                off,
                "expansion",
                below(0.15),
                ("inverse", "the slowest rate's time, in inverse proportion to the rate"),
                "section 4 has the two steps, no time",
                "not stated",
                "largest relative error over the rates",
            ),
            Claim(
                "layer-2-first",
                "At the unigram rule v gets no gradient at all: layer 2 has to learn first.",
                pushed,
                "push_at_unigram",
                below(-12.0),
                ("push", "W with 0.02 added to its diagonal"),
                "section 4",
                "layer 2 first",
                "log10 of the largest entry of the gradient by v",
            ),
            Claim(
                "odd-lags",
                "Layer 1 learns odd distances against even ones while the transition goes on.",
                odd_less_even,
                0,
                above(0.0),
                (1, "distances moved by one"),
                "section 4",
                "even-odd pattern",
                f"v at 1, 3 less v at 0, 2, 4, when layer 1 looks back ({LOOKS_BACK})",
            ),
            Claim(
                "delay",
                "The unigram rule is in the way: with doubly stochastic chains, where it says "
                "nothing, the transition comes earlier.",
                delay,
                both,
                above(0.2),
                (both[::-1], "the two kinds of chains exchanged"),
                "section 3.2",
                "the unigram solution delays the bigram one",
                "log of the quotient of transition times, the same rate",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw predicted and measured times over the rate, and all courses on one axis."""
        known = tuple(_name(rate) for rate in self.rates)
        x = np.array(self.rates)
        times = np.stack([self.measured(run, case).to_numpy() for case in known], axis=1)
        courses: list[Mark] = []
        for i, case in enumerate(known):
            courses += each_seed(run.of(case).looks_back, case, i, x="time")
        marks: list[Mark] = []
        for seed, own in enumerate(times):
            marks.append(Dots(x, own, label="" if seed else "measured, a seed each", color=0))
        for how, label in (("time", "expansion at the unigram rule"), ("linear", "linear flow")):
            mean = [float(run.of(case).theory.get(how).mean()) for case in known]
            marks.append(Line(x, np.array(mean), label, 3, theory=how == "time"))
        rates = f"{min(self.rates):g} to {max(self.rates):g}"
        v = run.of(_name(self.middle)).v.isel(seed=0)
        lags: list[Mark] = [
            Line(v["time"].to_numpy(), v.isel(lag=i).to_numpy(), f"distance {i}", i)
            for i in range(min(5, v.sizes["lag"]))
        ]
        return [
            Figure(
                "transition",
                "The end of the unigram phase is known at its beginning",
                f"Gradient flow of the minimal model, {self.seeds} seeds, v moving {rates} times "
                "as fast as W. Left: when attention of layer 1 to the previous state passes "
                f"{LOOKS_BACK}, with the prediction from the unigram rule (dashed) and that of the "
                "linear flow there, which lacks the feedback of layer 1's softmax. Right: all "
                "courses in predicted transition times.",
                (
                    Panel("transition", "rate of v over W", "time", tuple(marks), "log", "log"),
                    Panel(
                        "layer 1 looks back",
                        "time over the predicted one",
                        "attention to the previous state",
                        (*courses, Rule(1.0, "predicted", vertical=True), Rule(LOOKS_BACK)),
                    ),
                ),
                columns=2,
            ),
            Figure(
                "distances",
                "Layer 1 learns odd distances against even ones",
                f"Logits v of layer 1 by distance, rate {self.middle:g}, first seed: the previous "
                "state rises, the state itself and even distances fall.",
                (Panel("distances", "time over the predicted one", "v", tuple(lags)),),
            ),
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate measured and predicted times."""
        rows = []
        for case in self.cases:
            own = run.of(case).theory
            real = self.measured(run, case)
            rows.append(
                (
                    case,
                    float(real.mean()),
                    float(own.time.mean()),
                    float(100 * (own.time / real - 1).mean()),
                    float(own.linear.mean()),
                    float(100 * (own.linear / real - 1).mean()),
                )
            )
        head = ("case", "measured", "predicted", "error (%)", "linear flow", "error (%)")
        return [Table("transition", "Transition times, mean over seeds", head, tuple(rows))]


def _name(rate: float) -> str:
    return f"rate {rate:g}"


@cache
def _predicted(
    states: int, length: int, sequences: int, case: str, rate: float, seed: int
) -> Transition:
    return predict_transition(_chains(states, length, sequences, case, seed), rate)


def _chains(states: int, length: int, sequences: int, case: str, seed: int) -> Chains:
    rows: Rows = "doubly stochastic" if case == DOUBLY else "dirichlet"
    return MarkovChains(states, length, rows).sample(sequences, seed)
