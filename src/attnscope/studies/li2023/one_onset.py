"""One onset of attention at a setting of your choice, and when it should come (Fig 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, cast

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Amount, Count, Positive, Several
from attnscope.claims import Claim, below
from attnscope.engines import Descent, Flow, Linear, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.models.topic_transformer import AttentionMode
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023.onset.claims import AHEAD, BEYOND, ONE_ONSET
from attnscope.studies.li2023.onset.readings import UNIFORM, onset
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import UniformGradient, near_zero, score_norm
from attnscope.trajectory import Readings, initial

LEARNED = "learned"
ERROR = "relative error of the onset"


@dataclass(frozen=True)
class OneOnset(TopicDocumentsStudy):
    """A run that learns attention, and one without any that says when it will start.

    ``li2023.onset`` compares noises and learning rates of one set of topics. Here each of them is a
    field, so that a sweep over noise, learning rate and topics has one prediction and one onset at
    every point.
    """

    seeds: Count = 1
    training: Flow = Flow(until=4000.0, rtol=1e-5, atol=1e-8)
    points: Several = 101
    """Record points, evenly spaced; the rate divides the time between two of them."""
    topics: Count = 5
    """T, number of topics."""
    words: Count = 5
    """v, words of each topic."""
    tau: Count = 2
    """τ, distinct topics of a document."""
    documents: Count = 100
    """Documents; all of them make every step."""
    length: Count = 64
    """N, positions of a document."""
    noise: Positive = 1e-3
    """ε, standard deviation of the initial entries of W^K and W^Q."""
    value_noise: Positive = 1e-2
    """Standard deviation of the initial entries of W^V."""
    rate: Amount = 0.0
    """Learning rate of gradient descent; 0 is its limit, gradient flow."""

    cases = (UNIFORM, LEARNED)
    quick: ClassVar = {"until": 2000.0, "points": 51}

    def check(self) -> None:
        """Check documents, and that descent has a step at every record point."""
        if self.tau >= self.topics:
            raise AttnscopeError(
                f"tau = {self.tau} topics in a document, of topics = {self.topics}: expected fewer "
                "than there are, or documents do not differ."
            )
        self.task(tau=self.tau, length=self.length)
        if self.training.lr is not None:
            raise AttnscopeError(
                f"lr = {self.training.lr:g}: expected a flow without a learning rate, until a "
                "time; the rate of gradient descent is `rate`."
            )
        apart = self.end / (self.points - 1)
        if self.rate:
            steps = max(1, round(apart / self.rate))
            if not math.isclose(steps * self.rate, apart, rel_tol=1e-9):
                raise AttnscopeError(
                    f"rate = {self.rate:g} with record points {apart:g} apart: expected a rate "
                    f"that divides {apart:g}."
                )

    def describe(self) -> str:
        """Say how long runs are."""
        how = f"descent at learning rate {self.rate:g}" if self.rate else "gradient flow"
        return f"{self.end:,.0f} units of time by {how}"

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient flow, or descent at the rate; the run without attention is a flow."""
        if case == LEARNED and self.rate:
            return Descent(lr=self.rate)
        # Keys and queries as small as the noise must be followed to some digits too.
        return replace(self.training, atol=min(self.training.atol, 1e-3 * self.noise))

    def start(self, case: str, seed: int) -> TopicTransformer:
        """Return the model at time 0."""
        vocabulary = self.task(tau=self.tau, length=self.length).vocabulary
        mode = cast(AttentionMode, case)
        return near_zero(vocabulary, mode, self.noise, self.value_noise, seed, torch.float64)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; both see the same documents from the same W^V."""
        task = self.task(tau=self.tau, length=self.length)
        documents = task.sample(self.documents, seed)
        loss = TopicObjective(documents)
        curves = (
            Observable("loss", loss, (), "nats", "cross-entropy"),  # type: ignore[arg-type]
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
        )
        records = [Record(curves, Linear(self.points))]
        if case == UNIFORM:
            known = UniformGradient(documents, torch.float64).observables()
            needed = tuple(each for each in known if each.name in ("sigma", "gradient"))
            records.append(Record(needed, Linear(self.points), dim="probe"))
        return Problem(self.start(case, seed), loss, records)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Predict the onset from the run without attention alone.

        ``onset_ahead`` lets the linear system act on the actual initial W^K and W^Q.
        ``onset_expected`` knows G(t), ε and d_a: the norm of the average over starts.
        ``onset_closed`` knows σ(t), ε and d_a: (ε² d_a/2) exp(2∫σ dt) = 1, with σ → log(1 + ησ)/η
        at learning rate η. ``onset_constant`` holds σ at its value at time 0. ``onset_came`` is
        when it came.
        """
        norms, uniform = run.score_norm, run.of(UNIFORM)
        times, rate = norms["time"].to_numpy(), self.rate or None
        ahead, mean = (xr.full_like(norms, np.nan, dtype=float) for _ in range(2))
        nothing = ahead.isel(step=0, drop=True)
        onsets = {kind: nothing.copy() for kind in ("closed", "constant")}
        for seed in map(int, norms["seed"].to_numpy()):
            sigma = uniform.sigma.sel(seed=seed).isel(rank=0).to_numpy()
            gradients = uniform.gradient.sel(seed=seed).to_numpy()
            model = self.start(LEARNED, seed)
            keys, queries = (side.detach().numpy() for side in model.keys_and_queries())
            d_a = keys.shape[0]
            found = li2023.propagate(keys, queries, times, gradients, rate).norms
            ahead.loc[LEARNED, seed][: len(found)] = found
            average = li2023.expected_norms(times, gradients, self.noise, d_a, rate)
            mean.loc[LEARNED, seed][: len(average)] = average
            known = (times, sigma, self.noise, d_a, rate)
            closed = li2023.predicted_onset(*known, initial_norm=float(found[0])).time
            onsets["closed"].loc[LEARNED, seed] = closed
            early = math.log(2 / (self.noise**2 * d_a)) / (2 * sigma[0])
            onsets["constant"].loc[LEARNED, seed] = early
        asleep = ahead.isel(step=0, drop=True) < 1
        onsets |= {"ahead": onset(ahead), "came": onset(norms)}
        onsets["expected"] = onset(mean).where(asleep)
        return {
            "score_norm": ahead.assign_attrs(meaning="‖W^Kᵀ W^Q‖₂ of the linear system"),
            **{f"onset_{kind}": values for kind, values in onsets.items()},
        }

    def margins(self) -> dict[str, tuple[float, str]]:
        """Return log((ε² d_a/2) exp(2∫σ dt)) at the end: above 0 attention starts within the run.

        σ(t) has no closed form for the cross-entropy, so it is that of a run without attention with
        seed 0, less than a second; noises and rates share it. Nothing can be said of an onset that
        does not come, so beyond this boundary the claims on it do not hold.
        """
        times, sigma, d_a = _unattended(self.but(noise=OneOnset.noise, rate=0.0, seeds=1))
        exponent = li2023.growth_exponent(times, sigma, self.rate or None)[-1]
        log_norm = math.log(self.noise**2 * d_a / 2) + 2 * float(exponent)
        named = (log_norm, "predicted onset = end of the run")
        return dict.fromkeys(("onset", "expected", "closed"), named)

    def claims(self) -> list[Claim]:
        """Return what can be said of one onset."""

        def error(run: Readings, given: tuple[str, float]) -> xr.DataArray:
            kind, factor = given
            own = run.of(LEARNED)
            predicted: xr.DataArray = own.theory.get(f"onset_{kind}")
            if factor < 1:
                # A linear system: a tenth of the noise is a hundredth of the product, always.
                predicted = onset(own.theory.score_norm * factor**2).fillna(self.end)
            return abs(predicted / own.theory.onset_came - 1)

        def asleep(run: Readings, when: Callable[[xr.DataArray], xr.DataArray]) -> xr.DataArray:
            return when(run.of(LEARNED).score_norm)

        return [
            Claim(
                "onset",
                "A run without any attention says when attention starts.",
                error,
                ("ahead", 1.0),
                AHEAD,
                (("ahead", 0.1), "the prediction for a tenth of the noise"),
                BEYOND,
                ONE_ONSET,
                ERROR,
            ),
            Claim(
                "expected",
                "The onset is where the average over starts reaches 1, without knowing the initial "
                "matrices.",
                error,
                ("expected", 1.0),
                AHEAD,
                (("constant", 1.0), "σ held at its value at time 0"),
                BEYOND,
                ONE_ONSET,
                ERROR,
            ),
            Claim(
                "closed",
                "The onset is where (ε² d_a/2) exp(2∫σ dt) reaches 1, without knowing the initial "
                "matrices.",
                error,
                ("closed", 1.0),
                AHEAD,
                (("constant", 1.0), "σ held at its value at time 0"),
                BEYOND,
                ONE_ONSET,
                ERROR,
                reason="the formula follows the leading singular value alone; the average with the "
                "whole of G is the claim expected.",
            ),
            Claim(
                "asleep",
                "Attention begins near uniform: there is an onset to wait for.",
                asleep,
                initial,
                below(1.0),
                (_last, "the end of training"),
                BEYOND,
                ONE_ONSET,
                "‖W^Kᵀ W^Q‖₂ at the start, where 1 counts as awake",
            ),
        ]


@lru_cache(maxsize=64)
def _unattended(study: OneOnset) -> tuple[np.ndarray, np.ndarray, int]:
    """Return times, σ(t) and d_a of a run without attention."""
    kept = Memory()
    study.job(UNIFORM, 0).execute(kept, None)
    times = np.linspace(0.0, study.end, study.points)
    d_a = study.start(LEARNED, 0).keys_and_queries()[0].shape[0]
    return times, np.asarray(kept.arrays[1]["sigma"])[:, 0], d_a


def _last(reading: xr.DataArray) -> xr.DataArray:
    """Return the largest reading of a run."""
    return reading.max("step")
