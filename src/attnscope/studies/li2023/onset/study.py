"""The runs of ``li2023.onset``, and what the one without attention says of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Count, Positive, Several
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.experiment.spec import product
from attnscope.models import TopicObjective
from attnscope.models.topic_transformer import AttentionMode
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023.onset.claims import claims
from attnscope.studies.li2023.onset.figures import figures, tables
from attnscope.studies.li2023.onset.readings import UNIFORM, case_name, onset
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import (
    UniformGradient,
    near_zero,
    score_norm,
)
from attnscope.trajectory import Readings

MEANINGS = {
    "closed": "(ε² d_a/2) exp(2∫σ dt)",
    "expected": "ε² d_a ‖(Φ Φᵀ)_{key, query}‖₂, Φ driven by the whole of G",
    "ahead": "the linear system from the actual start",
    "constant": "the closed form with σ held at its value at time 0",
}


@dataclass(frozen=True)
class OnsetStudy(TopicDocumentsStudy):
    """Predicted against measured onset of attention, over noises and learning rates.

    Around W^K = W^Q = 0 keys and queries obey a linear system driven by G(t) = ∂L/∂(W^Kᵀ W^Q) at
    uniform attention, so ‖W^Kᵀ W^Q‖₂ grows as exp(2∫σ dt), σ the largest singular value of G(t).
    G(t) is read off one run whose attention is frozen at uniform. The other runs start at several
    noises, by gradient flow and by full-batch gradient descent at several learning rates.
    """

    training: Flow = Flow(until=10_000.0, rtol=1e-5, atol=1e-8)
    points: Several = 101
    """Record points, evenly spaced; every rate divides the time between two of them."""
    tau: Count = 3
    """τ, distinct topics of a document."""
    documents: Count = 200
    """Documents; all of them make every step."""
    length: Count = 128
    """N, positions of a document."""
    noises: tuple[Positive, ...] = (1e-2, 1e-3, 1e-4, 1e-5)
    """ε, standard deviations of the initial entries of W^K and W^Q."""
    loud: Positive = 0.1
    """A noise so large that attention is not near uniform from the start."""
    value_noise: Positive = 1e-2
    """Standard deviation of the initial entries of W^V."""
    rates: tuple[Positive, ...] = (5.0, 20.0, 100.0)
    """Learning rates of gradient descent."""

    quick: ClassVar = {"seeds": 2, "rates": (100.0,)}
    labels: ClassVar = {"rank": ("largest", "second")}
    claims, figures, tables = claims, figures, tables

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Rebuild a spec; older ones had epochs of length ``lr``, and tied ``atol`` to ``rtol``."""
        new = dict(spec)
        if new.get("lr") is not None:
            new["until"] = product(new.pop("lr"), new.pop("epochs", None))
            new["atol"] = product(1e-3, new.get("rtol"))
        return super().from_json(new)

    def check(self) -> None:
        """Check documents and noises, and that descent has a step at every record point."""
        self.task(tau=self.tau, length=self.length)
        if self.training.lr is not None:
            raise AttnscopeError(
                f"lr = {self.training.lr:g}: expected a flow without a learning rate, until a "
                "time; the runs by gradient descent are those of rates."
            )
        for name in ("noises", "rates"):
            if not getattr(self, name):
                raise AttnscopeError(f"{name} = (): expected one or more numbers above 0.")
        if self.loud in self.noises:
            raise AttnscopeError(f"loud = {self.loud}: expected a noise that is not in noises.")
        apart = self.end / (self.points - 1)
        for rate in self.rates:
            if not math.isclose(apart / rate, max(1, round(apart / rate)), rel_tol=1e-9):
                raise AttnscopeError(
                    f"rates = {self.rates} with record points {apart:g} apart: expected rates that "
                    f"divide {apart:g}; {rate:g} does not."
                )

    def settings(self) -> dict[str, tuple[float | None, float]]:
        """Return learning rate and noise of every case that learns attention; None is the flow."""
        pairs: list[tuple[float | None, float]] = [(None, self.loud)]
        pairs += [(rate, noise) for rate in (None, *self.rates) for noise in self.noises]
        return {case_name(rate, noise): (rate, noise) for rate, noise in pairs}

    @property
    def cases(self) -> tuple[str, ...]:
        """The run without attention, then every learning rate and noise."""
        return (UNIFORM, *self.settings())

    def describe(self) -> str:
        """Say how long runs are."""
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        return f"{self.end:,.0f} units of time by flow and by descent at learning rates {rates}"

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient flow, or gradient descent at the learning rate of the case."""
        rate, _ = self.settings().get(case, (None, 0.0))
        if rate is not None:
            return Descent(lr=rate)
        # Keys and queries as small as the noise must be followed to some digits too.
        return replace(self.training, atol=min(self.training.atol, 1e-3 * min(self.noises)))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed share documents and start."""
        task = self.task(tau=self.tau, length=self.length)
        documents = task.sample(self.documents, seed)
        attention: AttentionMode = "uniform" if case == UNIFORM else "learned"
        _, noise = self.settings().get(case, (None, 1.0))
        model = near_zero(task.vocabulary, attention, noise, self.value_noise, seed, torch.float64)
        loss = TopicObjective(documents)
        curves = (
            Observable("loss", loss, (), "nats", "cross-entropy of the training documents"),  # type: ignore[arg-type]
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
            Observable("value_norm", lambda m: m.W_V.norm(), (), "", "‖W^V‖_F"),  # type: ignore[operator]
        )
        records = [Record(curves, Linear(self.points))]
        if case == UNIFORM:
            readings = UniformGradient(documents, torch.float64).observables()
            records.append(Record(readings, Linear(self.points), dim="probe"))
        return Problem(model, loss, records)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Predict ‖W^Kᵀ W^Q‖₂ and its onset for every run from the uniform run of its seed alone.

        ``closed`` knows σ(t), ε and d_a: (ε² d_a/2) exp(2∫σ dt), σ → log(1 + ησ)/η at rate η, the
        leading order. ``expected`` knows G(t), ε and d_a: the norm of the average over starts.
        ``ahead`` lets the linear system act on the actual initial W^K and W^Q, step by step for
        gradient descent, with the whole of G(t). ``constant`` holds σ at its value at time 0.
        """
        uniform, d_a, least = run.of(UNIFORM), self.task().vocabulary, min(self.noises)
        times = run.score_norm["time"].to_numpy()
        nothing = xr.full_like(run.score_norm, np.nan, dtype=float)
        norms = {kind: nothing.copy() for kind in ("closed", "expected", "ahead")}
        onsets = {kind: nothing.isel(step=0, drop=True).copy() for kind in ("closed", "constant")}
        for seed in range(self.seeds):
            sigma = uniform.sigma.sel(seed=seed, rank="largest").to_numpy()
            gradients = uniform.gradient.sel(seed=seed).to_numpy()
            model = near_zero(d_a, "learned", least, self.value_noise, seed, torch.float64)
            keys, queries = (side.detach().numpy() for side in model.keys_and_queries())
            rates = (None, *self.rates)
            driven = (times, gradients)
            linear = {rate: li2023.propagate(keys, queries, *driven, rate).norms for rate in rates}
            mean = {rate: li2023.expected_norms(*driven, least, d_a, rate) for rate in rates}
            for case, (rate, noise) in self.settings().items():
                # A linear system: ten times the noise is a hundred times the product, always.
                ahead, average = (each[rate] * (noise / least) ** 2 for each in (linear, mean))
                norms["ahead"].loc[case, seed][: len(ahead)] = ahead
                norms["expected"].loc[case, seed][: len(average)] = average
                known = (times, sigma, noise, d_a, rate)
                norms["closed"].loc[case, seed] = li2023.predicted_norms(*known)
                closed = li2023.predicted_onset(*known, initial_norm=float(ahead[0]))
                onsets["closed"].loc[case, seed] = closed.time
                constant = math.log(2 / (noise**2 * d_a)) / (2 * sigma[0])
                onsets["constant"].loc[case, seed] = constant
        for kind in ("ahead", "expected"):
            onsets[kind] = onset(norms[kind])
        onsets["expected"] = onsets["expected"].where(norms["ahead"].isel(step=0, drop=True) < 1)
        return {
            f"{name}_{kind}": values.assign_attrs(meaning=MEANINGS[kind])
            for name, found in (("score_norm", norms), ("onset", onsets))
            for kind, values in found.items()
        }
