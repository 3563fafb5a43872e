"""With W^Q alone softmax has a heavy tail of bad runs, Gaussian attention has none (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Flow, Logarithmic, LossBelow, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.song2024 import (
    _query_only_claims,
    _query_only_figures,
    _query_only_tables,
)
from attnscope.studies.song2024._query_only_cases import CASES, STOP
from attnscope.studies.song2024._song import CITATION
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024


@dataclass(frozen=True)
class QueryOnly(Study):
    """Random regression with W^Q trained alone, from starts of four scales.

    Theorem 2 is not legible in the poster. That it is about M = {W^Q}, and says that Gaussian
    attention converges where softmax may stop at a point that is not optimal, is the likeliest
    reading and could not be verified. Runs are gradient flow in double precision: no step size has
    to be chosen, and none can be blamed. Time is divided by the square of the scale of W^V, so that
    starts of different scale share an axis.
    """

    seeds: int = 20
    lr: float = 0.01
    """Unit of time: a run ends at lr × epochs."""
    epochs: int = 100_000
    """Steps of gradient descent that a run stands for."""
    points: int = 81
    """Record points, evenly spaced on a logarithmic axis."""
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

    citation: ClassVar[str] = CITATION
    quick: ClassVar[dict[str, Any]] = {"seeds": 10, "epochs": 20_000, "points": 61}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}: expected 'flow' and False."
            )
        RandomRegression(self.sequences, self.length, self.width)

    def cases(self) -> tuple[str, ...]:
        """Return kernels and scales."""
        return tuple(CASES)

    def course(self) -> str:
        """Say how long runs are."""
        return f"gradient flow to time {self.time:g}, or to a relative loss of {STOP:g}"

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow; stability limits its steps here, not the tolerance."""
        return Flow(rtol=1e-4, atol=1e-5, max_steps=1_000_000)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed have the same data and directions."""
        kernel, start = CASES[case]
        x, y = RandomRegression(self.sequences, self.length, self.width).sample(seed)
        model = kernel_regression(
            self.width,
            self.heads,
            self.head_width,
            kernel=kernel,
            trained=("W_Q",),
            query_scale=start.query,
            value_scale=start.value,
            seed=seed,
        )
        loss = SquaredError(x, y, unit=start.value**2)

        def gradient(module: nn.Module) -> Tensor:
            return song2024.gradient_norms(cast(KernelAttention, module), loss)

        def jacobian(module: nn.Module) -> Tensor:
            weights = cast(KernelAttention, module).weights(x)
            return song2024.jacobian_norm(weights, kernel).mean()

        def saturated(module: nn.Module) -> Tensor:
            return song2024.saturated_share(cast(KernelAttention, module).weights(x), kernel)

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("gradient", gradient, ("matrix",), "", "‖∂f/∂W‖_F of W^Q, W^K, W^V, W^O"),
            Observable("jacobian", jacobian, (), "", "mean norm of ∂s/∂c over rows s of S"),
            Observable("saturated", saturated, (), "", "share of rows with that norm below 0.01"),
        )
        record = Record(curves, Logarithmic(self.points, 1e-5 * self.time))
        least = STOP * 0.5 * float(y.square().sum()) / loss.unit
        return Problem(model, loss, [record], stop=[LossBelow(least)])

    def truth(self) -> xr.Dataset:
        """Return the scales of each run."""
        starts = [CASES[case][1] for case, _ in self.runs()]
        return xr.Dataset(
            {
                "value_scale": ("run", [s.value for s in starts], {"meaning": "scale of W^V"}),
                "query_scale": ("run", [s.query for s in starts], {"meaning": "of W^Q and W^K"}),
            }
        )

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Bound what softmax can reach: its outputs are averages of fixed numbers.

        With W^Q alone u_h = X_i W_h^V W_h^O stays, and an output of softmax attention lies between
        Σ_h min_j u_hj and Σ_h max_j u_hj. A label outside leaves its distance, squared, for ever.
        """
        least = np.full(len(self.runs()), np.nan)
        for run, (case, seed) in enumerate(self.runs()):
            problem = self.build(case, seed)
            model, loss = cast(KernelAttention, problem.model), cast(SquaredError, problem.loss)
            if model.kernel != "softmax":
                continue
            u = (loss.x[:, None] @ (model.W_V @ model.W_O)).squeeze(-1).detach()
            low, high = u.amin(dim=2).sum(dim=1), u.amax(dim=2).sum(dim=1)
            beyond = (loss.y - high[:, None]).clamp(min=0) + (low[:, None] - loss.y).clamp(min=0)
            least[run] = float(beyond.square().sum() / loss.y.square().sum())
        return xr.Dataset(
            {
                "least_loss": (
                    "run",
                    least,
                    {"meaning": "relative loss that no softmax weights can get below"},
                )
            }
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what is said of the two kernels."""
        return _query_only_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw final losses, their course, and where gradients vanish."""
        return _query_only_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate outcomes and gradients by start."""
        return _query_only_tables.tables(self, tree)
