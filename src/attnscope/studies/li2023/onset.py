"""Attention starts when a run without any attention says it will (beyond the paper, Fig 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _onset_claims, _onset_figures, _onset_tables
from attnscope.studies.li2023._onset_model import (
    UniformGradient,
    leading_part,
    near_zero,
    score_norm,
)
from attnscope.studies.li2023._onset_readings import UNIFORM, case_name, uniform_readings
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.theory import li2023


@dataclass(frozen=True)
class Onset(TopicDocumentsStudy):
    """Predicted against measured onset of attention, over noises and learning rates.

    Around W^K = W^Q = 0 keys and queries obey a linear system driven by G(t) = ∂L/∂(W^Kᵀ W^Q) at
    uniform attention, so ‖W^Kᵀ W^Q‖₂ grows as exp(2∫σ dt), σ the largest singular value of G(t).
    G(t) is read off one run whose attention is frozen at uniform. The other runs start at several
    noises, by gradient flow and by full-batch gradient descent at several learning rates.
    """

    lr: float = 1.0
    """Unit of time; the learning rates of the runs are ``rates``."""
    epochs: int = 10_000
    """Units of time in a run."""
    points: int = 101
    """Record points, evenly spaced; every rate divides the time between two of them."""
    tau: int = 3
    """τ, distinct topics of a document."""
    documents: int = 200
    """Documents; all of them make every step."""
    length: int = 128
    """N, positions of a document."""
    noises: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5)
    """ε, standard deviations of the initial entries of W^K and W^Q."""
    loud: float = 0.1
    """A noise so large that attention is not near uniform from the start."""
    value_noise: float = 1e-2
    """Standard deviation of the initial entries of W^V."""
    rates: tuple[float, ...] = (5.0, 20.0, 100.0)
    """Learning rates of gradient descent."""
    rtol: float = 1e-5
    """Relative tolerance of the flow; its absolute one is a thousandth of it, or of the smallest
    noise if that is less."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 2, "rates": (100.0,)}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task(tau=self.tau, length=self.length)
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}: expected 'flow' and False; "
                "the runs by gradient descent are those of rates."
            )
        for name, values in (("noises", self.noises), ("rates", self.rates)):
            if not values or not all(0 < value < math.inf for value in values):
                raise AttnscopeError(f"{name} = {values}: expected one or more numbers above 0.")
        for name in ("loud", "value_noise", "rtol"):
            if not 0 < getattr(self, name) < math.inf:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected a number above 0.")
        if self.loud in self.noises:
            raise AttnscopeError(f"loud = {self.loud}: expected a noise that is not in noises.")
        apart = self.time / (self.points - 1)
        for rate in self.rates:
            if not math.isclose(apart / rate, max(1, round(apart / rate)), rel_tol=1e-9):
                raise AttnscopeError(
                    f"rates = {self.rates} with record points {apart:g} apart: expected rates that "
                    f"divide {apart:g}; {rate:g} does not."
                )

    def settings(self) -> dict[str, tuple[float | None, float]]:
        """Return learning rate and noise of every case that learns attention; None is the flow."""
        flows = {case_name(None, noise): (None, noise) for noise in (self.loud, *self.noises)}
        return flows | {
            case_name(rate, noise): (rate, noise) for rate in self.rates for noise in self.noises
        }

    def cases(self) -> tuple[str, ...]:
        """Return the run without attention, then every learning rate and noise."""
        return (UNIFORM, *self.settings())

    def course(self) -> str:
        """Say how long runs are."""
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        return f"{self.time:,.0f} units of time by flow and by descent at learning rates {rates}"

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return gradient flow, or gradient descent at the learning rate of the case."""
        rate = None if case == UNIFORM else self.settings()[case][0]
        if rate is not None:
            return Descent(lr=rate)
        # Keys and queries as small as the noise must be followed to some digits too.
        return Flow(rtol=self.rtol, atol=1e-3 * min(self.rtol, *self.noises))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed share documents and start."""
        task = self.task(tau=self.tau, length=self.length)
        documents = task.sample(self.documents, seed)
        uniform = case == UNIFORM
        model = near_zero(
            task.vocabulary,
            "uniform" if uniform else "learned",
            1.0 if uniform else self.settings()[case][1],
            self.value_noise,
            seed,
            torch.float64,
        )
        loss = TopicObjective(documents)
        curves = (
            Observable("loss", loss, (), "nats", "cross-entropy of the training documents"),  # type: ignore[arg-type]
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
            Observable("value_norm", lambda m: m.W_V.norm(), (), "", "‖W^V‖_F"),  # type: ignore[operator]
        )
        records = [Record(curves, Linear(self.points))]
        if uniform:
            readings = UniformGradient(documents, torch.float64).observables()
            records.append(Record(readings, Linear(self.points), dim="probe"))
        return Problem(model, loss, records)

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict ‖W^Kᵀ W^Q‖₂ and its onset for every run from the uniform run of its seed alone.

        ``closed`` knows σ(t), ε and d_a: (ε² d_a/2) exp(2∫σ dt), σ → log(1 + ησ)/η at rate η.
        ``ahead`` lets the linear system act on the actual initial W^K and W^Q, step by step for
        gradient descent, with G(t) = σ u wᵀ. ``constant`` holds σ at its value at time 0.
        """
        times = tree["observables/time"].to_numpy()
        runs = self.runs()
        curves = {name: np.full((len(runs), len(times)), np.nan) for name in ("closed", "ahead")}
        onsets = {name: np.full(len(runs), np.nan) for name in ("closed", "ahead", "constant")}
        linear: dict[tuple[int, float | None], np.ndarray] = {}
        for run, (case, seed) in enumerate(runs):
            if case == UNIFORM:
                continue
            rate, noise = self.settings()[case]
            sigma, left, right = uniform_readings(tree, seed)
            if (seed, rate) not in linear:
                part = leading_part(sigma, left, right)
                linear[seed, rate] = self._linear_norms(times, part, seed, rate)
            # A linear system: ten times the noise is a hundred times the product, at all times.
            ahead = linear[seed, rate] * (noise / min(self.noises)) ** 2
            curves["ahead"][run] = ahead
            known = np.isfinite(ahead)
            onsets["ahead"][run] = li2023.measured_onset(times[known], ahead[known]).time
            d_a = self.task().vocabulary
            curves["closed"][run] = li2023.predicted_norms(times, sigma, noise, d_a, rate)
            onsets["closed"][run] = li2023.predicted_onset(
                times, sigma, noise, d_a, rate, initial_norm=float(ahead[0])
            ).time
            onsets["constant"][run] = math.log(2 / (noise**2 * d_a)) / (2 * sigma[0])
        meanings = {
            "closed": "(ε² d_a/2) exp(2∫σ dt)",
            "ahead": "the linear system from the actual start",
            "constant": "the closed form with σ held at its value at time 0",
        }
        norms = {
            f"score_norm_{name}": (("run", "step"), values, {"meaning": meanings[name]})
            for name, values in curves.items()
        }
        starts = {
            f"onset_{name}": ("run", values, {"meaning": meanings[name]})
            for name, values in onsets.items()
        }
        return xr.Dataset(norms | starts, coords={"time": ("step", times)})

    def _linear_norms(
        self, times: np.ndarray, gradients: np.ndarray, seed: int, rate: float | None
    ) -> np.ndarray:
        """Return ‖W^Kᵀ W^Q‖₂ of the linear system from the smallest noise, NaN after its end."""
        vocabulary, noise = self.task().vocabulary, min(self.noises)
        start = near_zero(
            vocabulary, "learned", noise, self.value_noise, seed, torch.float64
        ).keys_and_queries()
        keys, queries = (side.detach().numpy() for side in start)
        linear = li2023.propagate(keys, queries, times, gradients, rate)
        norms = np.full(len(times), np.nan)
        norms[: len(linear.norms)] = linear.norms
        return norms

    def claims(self) -> tuple[Claim, ...]:
        """Return the statements about the onset."""
        return _onset_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw norms over time, predicted against measured onset, and G."""
        return _onset_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate predicted and measured onset by noise and learning rate."""
        return _onset_tables.tables(self, tree)
