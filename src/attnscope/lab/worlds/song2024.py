"""Regression with softmax or Gaussian attention, and its certificate of convergence (Song 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import xarray as xr
from torch import Tensor, nn

from attnscope.claims import Finding
from attnscope.studies.old import Claim
from attnscope.engines import Flow, Logarithmic, LossBelow, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.lab.worlds import _song2024_claims
from attnscope.lab.worlds.base import NOW, PlayStudy
from attnscope.lab.worlds.scene import Attention
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.report.figure import Figure, Line, Mark, Panel, Rule
from attnscope.experiment import Problem
from attnscope.studies.song2024._song import CITATION
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024

MOST_LABELS = 60
"""N n, so that no setting takes long."""
FLOOR = 1e-8
"""Relative loss at which a run ends; below it the solver's tolerance speaks."""
TIME = "time"


@dataclass(frozen=True)
class RegressionPlay(PlayStudy):
    """One run of random regression with kernel attention, and what Theorem 1 certifies of it."""

    lr: float = 0.01
    """Unit of the record points."""
    epochs: int = 2000
    """Steps of gradient descent that a run stands for."""
    points: int = 81
    """Record points, evenly spaced on a logarithmic axis."""
    kernel: Literal["softmax", "gaussian"] = "softmax"
    """How queries and keys become weights."""
    trained: Literal["all", "query"] = "all"
    """W^Q, W^K and W^V learn, or W^Q alone."""
    sequences: int = 6
    """N."""
    length: int = 4
    """n, tokens of a sequence."""
    width: int = 16
    """D, entries of a token."""
    heads: int = 2
    """H."""
    head_width: int = 8
    """d."""
    query_scale: float = 1.0
    """Size of W^Q and W^K at the start."""
    value_scale: float = 1.0
    """Size of W^V at the start."""
    output_scale: float = 1.0
    """Size of W^O, which does not learn."""

    citation = CITATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(f"engine = '{self.engine}': expected 'flow', and correct False.")
        if self.sequences * self.length > MOST_LABELS:
            raise AttnscopeError(
                f"sequences = {self.sequences} of length = {self.length} make "
                f"{self.sequences * self.length} labels: expected {MOST_LABELS} or fewer."
            )
        if self.trained == "query" and self.value_scale == 0:
            raise AttnscopeError(
                "value_scale = 0 with W^Q trained alone: expected a W^V above 0, or the output "
                "stays 0 whatever attention does."
            )

    def cases(self) -> tuple[str, ...]:
        """Return the kernel."""
        return (self.kernel,)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow; a large W^O makes what W^V has to say small."""
        if self.trained == "query":
            return Flow(rtol=1e-4, atol=1e-5)
        return Flow(rtol=1e-4, atol=1e-5 / max(1.0, self.output_scale))

    def start(self) -> tuple[KernelAttention, SquaredError]:
        """Return model and loss at time 0; time is counted so that scales share an axis."""
        x, y = RandomRegression(self.sequences, self.length, self.width).sample(self.draw)
        model = kernel_regression(
            self.width,
            self.heads,
            self.head_width,
            kernel=self.kernel,
            trained=("W_Q", "W_K", "W_V") if self.trained == "all" else ("W_Q",),
            query_scale=self.query_scale,
            value_scale=self.value_scale,
            output_scale=self.output_scale,
            seed=self.draw,
        )
        scale = self.output_scale * (self.value_scale if self.trained == "query" else 1.0)
        return model, SquaredError(x, y, unit=scale**2)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run."""
        model, loss = self.start()

        def pl(module: nn.Module) -> Tensor:
            value = song2024.pl_constant(song2024.layer_state(_own(module), loss.x))
            return loss.x.new_tensor(value / loss.unit)

        def saturated(module: nn.Module) -> Tensor:
            return song2024.saturated_share(_own(module).weights(loss.x), self.kernel)

        def sharp(module: nn.Module) -> Tensor:
            return _own(module).weights(loss.x).amax(dim=-1).mean()

        def weights(module: nn.Module) -> Tensor:
            return _own(module).weights(loss.x[:1])[0, 0]

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("pl", pl, (), "1/time", "μ, the PL constant that W^V gives"),
            Observable("saturated", saturated, (), "", "share of rows that hardly react"),
            Observable("sharp", sharp, (), "", "mean of the largest weight of a row"),
            Observable("attention", weights, ("query", "key"), "", "first sequence, first head"),
        )
        record = Record(curves, Logarithmic(self.points, 1e-3 * self.time))
        least = FLOOR * 0.5 * float(loss.y.square().sum()) / loss.unit
        return Problem(model, loss, [record], stop=[LossBelow(least)])

    def truth(self) -> xr.Dataset:
        """Return the number of labels, and of numbers to fit them with."""
        return xr.Dataset(
            {"labels": self.sequences * self.length, "columns": self.heads * self.width}
        )

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Compute the certificate of the start, follow it, and what softmax cannot get below."""
        model, loss = self.start()
        times = tree["observables/time"].to_numpy()
        curve = tree["observables/relative_loss"].to_numpy()
        pl = tree["observables/pl"].to_numpy()
        certificate = song2024.certify(model, loss.x, loss.y)
        beta = certificate.beta / loss.unit
        norm = float(np.linalg.norm(song2024.layer_state(model, loss.x).features, 2))
        largest = (certificate.strength * norm) ** 2 / loss.unit
        follow = song2024.along(times, curve, pl, np.array([beta]))
        known = self.trained == "all"
        nothing = np.full(curve.shape, np.nan)
        dims = ("run", "step")
        return xr.Dataset(
            {
                "beta": ((), beta, {"meaning": "β of Theorem 1, per unit of time"}),
                "largest": ((), largest, {"meaning": "β with the largest singular value of B_0"}),
                "forever": ((), float(known and certificate.for_all_time)),
                "certified": (dims, follow.certified.astype(float) if known else nothing),
                "rate_bound": (dims, follow.rate_bound if known else nothing),
                "path_bound": (dims, follow.path_bound if known else nothing),
                "least_loss": ((), self._least_loss(model, loss)),
            },
            coords={"time": ("step", times)},
        )

    def _least_loss(self, model: KernelAttention, loss: SquaredError) -> float:
        """Return what averages of fixed numbers leave: a label outside of them is never met."""
        if self.trained == "all" or self.kernel != "softmax":
            return 0.0
        u = (loss.x[:, None] @ (model.W_V @ model.W_O)).squeeze(-1).detach()
        low, high = u.amin(dim=2).sum(dim=1), u.amax(dim=2).sum(dim=1)
        beyond = (loss.y - high[:, None]).clamp(min=0) + (low[:, None] - loss.y).clamp(min=0)
        return float(beyond.square().sum() / loss.y.square().sum())

    def claims(self) -> tuple[Claim, ...]:
        """Return what Theorem 1 says, or what is said of W^Q alone."""
        return _song2024_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw the loss with its bounds, and the constant that drives it."""
        seen = tree["observables"].to_dataset().isel(run=0)
        known = tree["theory"].to_dataset().isel(run=0)
        times = seen["time"].to_numpy()
        now = Rule(float(times[-1]), NOW, vertical=True)
        fall: list[Mark] = [Line(times, seen["relative_loss"].to_numpy(), "relative loss", 0)]
        if self.trained == "all":
            for name in ("rate_bound", "path_bound"):
                bound = known[name].to_numpy()
                fall.append(
                    Line(times, np.where(bound > FLOOR, bound, np.nan), "theory", theory=True)
                )
        else:
            least = float(known["least_loss"])
            fall.append(Line(times, np.full(len(times), least or np.nan), "theory", theory=True))
        half = np.full(len(times), float(known["beta"]) / 2)
        if self.trained == "all":
            caption = (
                "Left: the squared error over that of an output of 0. Dashed: the bounds "
                "f(0) exp(-βt), from the start alone, and f(0) exp(-2∫μ), from the path. Middle: "
                "μ, how steep the loss is at least; above β/2, dashed, the first bound is proven. "
            )
        else:
            caption = (
                "Left: the squared error over that of an output of 0, with W^Q trained alone. "
                "Dashed: what no softmax weights can get below, since they average fixed numbers. "
                "Middle: how steep the loss would be if W^V learned too. "
            )
        return [
            Figure(
                "play-song2024",
                "The loss, and what is certain about it before training",
                caption + "Right: the largest weight of a row of attention, mean over all rows.",
                (
                    Panel("loss", TIME, "relative loss", (*fall, now), "log", "log"),
                    Panel(
                        "steepness",
                        TIME,
                        "PL constant (1/time)",
                        (
                            Line(times, seen["pl"].to_numpy(), "μ along the run", 2),
                            Line(times, half, "theory", theory=True),
                            now,
                        ),
                        "log",
                        "log",
                    ),
                    Panel(
                        "how sharp attention is",
                        TIME,
                        "largest weight of a row",
                        (
                            Line(times, seen["sharp"].to_numpy(), "mean over rows", 1),
                            Line(
                                times, np.full(len(times), 1 / self.length), "uniform attention", 4
                            ),
                            now,
                        ),
                        "log",
                    ),
                ),
            )
        ]

    def attention(self, tree: xr.DataTree) -> Attention:
        """Return the weights of the first head on the first sequence."""
        seen = tree["observables"].to_dataset().isel(run=0)
        reached = np.isfinite(seen["relative_loss"].to_numpy())
        names = tuple(f"token {i + 1}" for i in range(self.length))
        rows = "rows sum to 100" if self.kernel == "softmax" else "rows need not sum to 100"
        return Attention(
            "Attention within one sequence, first head",
            f"Rows look at columns; numbers are percent, and {rows}.",
            seen["time"].to_numpy()[reached],
            TIME,
            names,
            names,
            seen["attention"].to_numpy()[reached],
            (-1,) * self.length,
            (-1,) * self.length,
        )

    def outcome(self, tree: xr.DataTree, found: Sequence[Finding]) -> str:
        """Say what is left of the loss."""
        final = _song2024_claims.final(tree)
        labels, columns = self.sequences * self.length, self.heads * self.width
        sign = "≥" if columns >= labels else "<"
        return f"Relative loss {final:.2g}; HD = {columns} {sign} Nn = {labels}."


def _own(module: nn.Module) -> KernelAttention:
    return cast(KernelAttention, module)
