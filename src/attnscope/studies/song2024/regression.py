"""Random regression with one kernel at a setting of your choice; the lab plays it (Theorem 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Positive, Several
from attnscope.claims import Claim, Finding, below
from attnscope.engines import Flow, Logarithmic, LossBelow, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import NOW, AttentionOverTime, Playable, Problem
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.report import Figure, Line, Mark, Panel, Rule
from attnscope.studies.song2024._song import (
    CITATION,
    CUT,
    SLACK,
    SOLVED,
    layer,
    least_loss,
)
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024
from attnscope.trajectory import Readings, carried, final, initial

MOST_LABELS = 60
"""N n, so that no setting takes long."""
FLOOR = 1e-8
"""Relative loss at which a run ends."""
REACH = 1e-7
"""Relative loss below which what is left is not compared with what must be left."""


@dataclass(frozen=True)
class RegressionRun(Playable):
    """One run of random regression with kernel attention, and what Theorem 1 certifies of it."""

    training: Flow = Flow(until=20.0, rtol=1e-5, atol=1e-6)
    points: Several = 81
    """Record points, evenly spaced on a logarithmic axis."""
    kernel: Literal["softmax", "gaussian"] = "softmax"
    """How queries and keys become weights."""
    trained: Literal["all", "query"] = "all"
    """W^Q, W^K and W^V learn, or W^Q alone."""
    sequences: Count = 6
    """N."""
    length: Count = 4
    """n, tokens of a sequence."""
    width: Count = 16
    """D, entries of a token."""
    heads: Count = 2
    """H."""
    head_width: Count = 8
    """d."""
    query_scale: Positive = 1.0
    """Size of W^Q and W^K at the start."""
    value_scale: Annotated[float, Bounds(0)] = 1.0
    """Size of W^V at the start."""
    output_scale: Positive = 1.0
    """Size of W^O, which does not learn."""

    citation = CITATION

    def check(self) -> None:
        """Check that no run takes long, and that something can be learned."""
        labels = self.sequences * self.length
        if labels > MOST_LABELS:
            raise AttnscopeError(
                f"sequences = {self.sequences} of length = {self.length} make {labels} labels: "
                f"expected {MOST_LABELS} or fewer."
            )
        if self.trained == "query" and self.value_scale == 0:
            raise AttnscopeError(
                "value_scale = 0 with W^Q trained alone: expected a W^V above 0, or the output "
                "stays 0 whatever attention does."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """The kernel."""
        return (self.kernel,)

    def engine(self, case: str, seed: int) -> Flow:
        """Return gradient flow; a large W^O makes what W^V has to say small."""
        if self.trained == "query":
            return self.training
        return replace(self.training, atol=self.training.atol / max(1.0, self.output_scale))

    def start(self, seed: int, **scales: float) -> tuple[KernelAttention, SquaredError]:
        """Return model and loss at time 0, of this size or another one.

        Time is counted so that scales share an axis.
        """
        x, y = RandomRegression(self.sequences, self.length, self.width).sample(seed)
        names = ("query_scale", "value_scale", "output_scale")
        sizes: dict[str, Any] = {name: scales.get(name, getattr(self, name)) for name in names}
        trained = ("W_Q", "W_K", "W_V") if self.trained == "all" else ("W_Q",)
        shape = (self.width, self.heads, self.head_width)
        model = kernel_regression(*shape, kernel=self.kernel, trained=trained, seed=seed, **sizes)
        scale = sizes["output_scale"] * (sizes["value_scale"] if self.trained == "query" else 1.0)
        return model, SquaredError(x, y, unit=scale**2)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run."""
        model, loss = self.start(seed)

        def pl(module: nn.Module) -> Tensor:
            value = song2024.pl_constant(song2024.layer_state(layer(module), loss.x))
            return loss.x.new_tensor(value / loss.unit)

        def saturated(module: nn.Module) -> Tensor:
            return song2024.saturated_share(layer(module).weights(loss.x), self.kernel)

        def sharp(module: nn.Module) -> Tensor:
            return layer(module).weights(loss.x).amax(dim=-1).mean()

        def weights(module: nn.Module) -> Tensor:
            return layer(module).weights(loss.x[:1])[0, 0]

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("pl", pl, (), "1/time", "μ, the PL constant that W^V gives"),
            Observable("saturated", saturated, (), "", "share of rows that hardly react"),
            Observable("sharp", sharp, (), "", "mean of the largest weight of a row"),
            Observable("attention", weights, ("query", "key"), "", "first sequence, first head"),
        )
        record = Record(curves, Logarithmic(self.points, 1e-3 * self.end))
        least = FLOOR * 0.5 * float(loss.y.square().sum()) / loss.unit
        return Problem(model, loss, [record], stop=[LossBelow(least)])

    def truth(self) -> xr.Dataset:
        """Return the number of labels, and of numbers to fit them with."""
        return xr.Dataset(
            {"labels": self.sequences * self.length, "columns": self.heads * self.width}
        )

    def theory(self, run: Readings) -> xr.Dataset:
        """Compute the certificate of the start, follow it, and what softmax cannot get below."""
        loss, pl = run.relative_loss, run.pl
        found: dict[str, list[float]] = {}
        for seed in map(int, loss["seed"]):
            model, objective = self.start(seed)
            certificate = song2024.certify(model, objective.x, objective.y)
            usual = song2024.certify(*_given(self.start(seed, value_scale=1, output_scale=1)))
            large, _ = self.start(seed, query_scale=10 * self.query_scale)
            saturated = song2024.saturated_share(large.weights(objective.x), self.kernel)
            for name, value in {
                "beta": certificate.beta / objective.unit,
                "fastest": song2024.fastest_rate(model, objective),
                "allowed": certificate.used,
                "allowed_usual": usual.used,
                "saturated_large": float(saturated),
                "least_loss": 0.0 if self.trained == "all" else least_loss(model, objective),
            }.items():
                found.setdefault(name, []).append(float(np.nan_to_num(value, posinf=1e300)))
        beta = np.array(found["beta"])
        follow = song2024.along(loss["time"].to_numpy(), loss[0].to_numpy(), pl[0].to_numpy(), beta)
        meanings = {
            "beta": "β of Theorem 1, per unit of time",
            "fastest": "2λ_max of the tangent kernel at the start, per unit of time",
            "allowed": "how far B might move over how far it may",
            "allowed_usual": "the same from a start with W^V and W^O of size one",
            "saturated_large": "saturated rows of W^Q and W^K ten times as large, at the start",
            "least_loss": "relative loss that no softmax weights can get below",
        }
        curves = {
            "certified": follow.certified.astype(float),
            "rate_bound": follow.rate_bound,
            "path_bound": follow.path_bound,
        }
        known = 1.0 if self.trained == "all" else np.nan
        return xr.Dataset(
            {name: ("run", each, {"meaning": meanings[name]}) for name, each in found.items()}
            | {name: (("run", "step"), known * each) for name, each in curves.items()}
        )

    def claims(self) -> list[Claim]:
        """Return what Theorem 1 says, or what is said of W^Q alone."""

        def fitted(run: Readings, when: Any) -> xr.DataArray:
            return np.log10(when(self.loss(run)))

        def excess(run: Readings, bound: str) -> xr.DataArray:
            """Return the largest log(f/bound), where it is certified if it is the rate's."""
            own = run.of(self.kernel)
            loss, theory = own.relative_loss, own.theory
            if bound == "fastest":
                limit = loss.isel(step=0) * np.exp(-theory.fastest * loss["time"])
            else:
                limit = theory.get(bound)
            over: xr.DataArray = np.log(loss.clip(CUT) / limit.clip(CUT))  # type: ignore[assignment]
            return (over.where(theory.certified > 0) if bound == "rate_bound" else over).max("step")

        def of_theory(run: Readings, name: str) -> xr.DataArray:
            return run.of(self.kernel).theory.get(name)

        def saturated(run: Readings, name: str) -> xr.DataArray:
            own = run.of(self.kernel)
            return final(carried(own.saturated)) if name == "end" else own.theory.get(name)

        def above_least(run: Readings, when: Any) -> xr.DataArray:
            least = run.of(self.kernel).theory.least_loss.fillna(0.0).clip(REACH)
            return np.log(when(self.loss(run)).clip(REACH) / least)

        # Of B_0 alone the largest singular value would not do: W^Q and W^K help, and with few
        # labels a loss falls faster than it allows.
        fastest = ("fastest", "the fastest that any label can be learned at the start")
        over = "largest log(f/bound) along a run"
        fits = Claim(
            "fits",
            "Training fits every label.",
            fitted,
            final,
            below(SOLVED),
            (initial, "before training"),
            "Theorem 1",
            "global optimum if HD ≥ Nn",
            "log10 of the relative loss at the end",
        )
        awake = Claim(
            "awake",
            "Attention stays able to learn: few rows saturate.",
            saturated,
            "end",
            below(0.1),
            ("saturated_large", "W^Q and W^K ten times as large, at the start"),
            "on softmax",
            "softmax saturates",
            "share of saturated rows at the end",
        )
        reach = Claim(
            "reach",
            "The loss ends close to the least that these weights can reach.",
            above_least,
            final,
            below(0.7),
            (initial, "before training"),
            "Theorem 2 (softmax may stop early)",
            "Gaussian: yes; softmax: not always",
            "log of the final loss over the least",
        )
        if self.trained == "query":
            return [fits, reach, awake]
        return [
            fits,
            Claim(
                "rate",
                "As long as the certificate holds, the loss stays below f(0) exp(-βt).",
                excess,
                "rate_bound",
                below(SLACK),
                fastest,
                "Theorem 1",
                "(1 - ηβ)^t",
                over,
            ),
            Claim(
                "path",
                "The loss stays below f(0) exp(-2∫μ) at all times.",
                excess,
                "path_bound",
                below(SLACK),
                fastest,
                "inequality of Polyak and Łojasiewicz",
                "not stated",
                over,
            ),
            Claim(
                "certificate",
                "It is certain before training that the rate holds for all time.",
                of_theory,
                "allowed",
                below(1.0),
                ("allowed_usual", "W^V and W^O of size one"),
                "Theorem 1",
                "for wide layers and a suitable start",
                "how far B might move over how far it may",
                reason="features may move further than the certificate allows. That proves nothing "
                "against convergence.",
            ),
            awake,
        ]

    def margins(self) -> dict[str, tuple[float, str]]:
        """Return by how much HD exceeds Nn, which Theorem 1 asks for."""
        over = self.heads * self.width - self.sequences * self.length
        return dict.fromkeys(("fits", "certificate"), (float(over), "HD = Nn"))

    def loss(self, run: Readings) -> xr.DataArray:
        """Return the relative loss; a run that ended at the floor keeps it."""
        own = run.of(self.kernel)
        reached = own.stats.outcome != "stopped"
        # A run that stopped fell below the floor between two record points.
        return carried(own.relative_loss.where(own.relative_loss.notnull() | reached, FLOOR))

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the loss with its bounds, and the constant that drives it, of the first seed."""
        own, theory = run.of(self.kernel), run.of(self.kernel).theory
        times = own.pl["time"].to_numpy()
        now = Rule(float(times[-1]), NOW, vertical=True)

        def line(values: Any, label: str, color: int = 0, theory: bool = False) -> Line:
            return Line(times, np.broadcast_to(values, times.shape), label, color, theory=theory)

        def of(reading: xr.DataArray) -> np.ndarray:
            return reading.isel(seed=0).to_numpy()

        bounds = [of(theory.get(name)) for name in ("rate_bound", "path_bound")]
        if self.trained == "query":
            bounds = [np.asarray(float(of(theory.least_loss)) or np.nan)]
        drawn = (line(np.where(b > FLOOR, b, np.nan), "theory", theory=True) for b in bounds)
        fall: tuple[Mark, ...] = (line(of(own.relative_loss), "relative loss"), *drawn, now)
        half = line(of(theory.beta) / 2, "theory", theory=True)
        steep: tuple[Mark, ...] = (line(of(own.pl), "μ along the run", 2), half, now)
        uniform = line(1 / self.length, "uniform attention", 4)
        caption = (
            "Left: the squared error over that of an output of 0. Dashed: the bounds f(0) exp(-βt),"
            " from the start alone, and f(0) exp(-2∫μ), from the path. Middle: μ, how steep the "
            "loss is at least; above β/2, dashed, the first bound is proven. "
            if self.trained == "all"
            else "Left: the squared error over that of an output of 0, with W^Q trained alone. "
            "Dashed: what no softmax weights can get below, since they average fixed numbers. "
            "Middle: how steep the loss would be if W^V learned too. "
        )
        sharp: tuple[Mark, ...] = (line(of(own.sharp), "mean over rows", 1), uniform, now)
        return [
            Figure(
                "play-song2024",
                "The loss, and what is certain about it before training",
                caption + "Right: the largest weight of a row of attention, mean over all rows.",
                (
                    Panel("loss", "time", "relative loss", fall, "log", "log"),
                    Panel("steepness", "time", "PL constant (1/time)", steep, "log", "log"),
                    Panel(
                        "how sharp attention is", "time", "largest weight of a row", sharp, "log"
                    ),
                ),
            )
        ]

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return the weights of the first head on the first sequence."""
        own = run.of(self.kernel)
        reached = own.relative_loss.isel(seed=0).notnull().to_numpy()
        weights = own.get("attention").isel(seed=0)
        names = tuple(f"token {i + 1}" for i in range(self.length))
        rows = "rows sum to 100" if self.kernel == "softmax" else "rows need not sum to 100"
        return AttentionOverTime(
            "Attention within one sequence, first head",
            f"Rows look at columns; numbers are percent, and {rows}.",
            weights["time"].to_numpy()[reached],
            "time",
            names,
            names,
            weights.to_numpy()[reached],
            (-1,) * self.length,
            (-1,) * self.length,
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say what is left of the loss."""
        left = float(final(self.loss(run))[0])
        labels, columns = self.sequences * self.length, self.heads * self.width
        sign = "≥" if columns >= labels else "<"
        return f"Relative loss {left:.2g}; HD = {columns} {sign} Nn = {labels}."


def _given(
    start: tuple[KernelAttention, SquaredError],
) -> tuple[KernelAttention, Tensor, Tensor]:
    return start[0], start[1].x, start[1].y
