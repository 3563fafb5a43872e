"""With all weights trained both kernels fit every label, at the certified rate (Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Descent, Flow, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.old import Claim, Study
from attnscope.studies.song2024 import (
    _convergence_claims,
    _convergence_figures,
    _convergence_tables,
)
from attnscope.studies.song2024._convergence_cases import SETTINGS
from attnscope.studies.song2024._song import CITATION
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024


@dataclass(frozen=True)
class Convergence(Study):
    """Random regression with W^Q, W^K and W^V trained, above and below HD = Nn.

    The poster gives a theorem and no experiment on regression: sizes, data and starts are this
    package's own. Every run carries its certificate: the constant of Theorem 1 from the start, the
    constant of the inequality of Polyak and Łojasiewicz along the run, and how far B has moved.
    """

    seeds: int = 10
    lr: float = 0.01
    """Step of gradient descent, and unit of the record points."""
    epochs: int = 6000
    """Steps of gradient descent that a run stands for."""
    points: int = 161
    """Record points, evenly spaced on a logarithmic axis."""
    length: int = 4
    """n, tokens of a sequence."""
    sequences: int = 6
    """N where H D >= N n."""
    many_sequences: int = 12
    """N where H D < N n."""
    width: int = 16
    """D, entries of a token."""
    wide: int = 64
    """D of the certified start; a wider B is better conditioned, which saves steps."""
    heads: int = 2
    """H."""
    head_width: int = 8
    """d."""

    citation: ClassVar[str] = CITATION
    quick: ClassVar[dict[str, Any]] = {"seeds": 3, "epochs": 3000, "points": 101}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}: expected 'flow' and False; "
                "cases by gradient descent are there besides."
            )
        for name in ("length", "sequences", "many_sequences", "width", "wide", "heads"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        few, many = self.sequences * self.length, self.many_sequences * self.length
        columns = self.heads * min(self.width, self.wide)
        if not few <= columns or not self.heads * self.width < many:
            raise AttnscopeError(
                f"sequences = {self.sequences}, many_sequences = {self.many_sequences}, length = "
                f"{self.length}, heads = {self.heads}, width = {self.width}: expected heads × "
                "width at or above sequences × length and below many_sequences × length."
            )

    def cases(self) -> tuple[str, ...]:
        """Return the settings."""
        return tuple(SETTINGS)

    def course(self) -> str:
        """Say how long runs are."""
        return f"time {self.time:g}, by gradient flow or {self.epochs:,} steps of descent"

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return gradient flow, or descent for the cases that say so."""
        if case and SETTINGS[case].descent:
            return Descent(lr=self.lr)
        if case and SETTINGS[case].start == "certified":
            # W^V is as small as W^O is large; and here the bound is nearly reached.
            return Flow(rtol=1e-7, atol=1e-14)
        return Flow(rtol=1e-5, atol=1e-6)

    def start(self, case: str, seed: int) -> tuple[KernelAttention, SquaredError]:
        """Return model and loss of a run as they are at time 0."""
        setting = SETTINGS[case]
        width = self.wide if setting.start == "certified" else self.width
        count = self.sequences if setting.above else self.many_sequences
        x, y = RandomRegression(count, self.length, width).sample(seed)
        scale, value_scale = 1.0, 0.0 if setting.start == "certified" else 1.0
        while True:
            model = kernel_regression(
                width,
                self.heads,
                self.head_width,
                kernel=setting.kernel,
                output_scale=scale,
                seed=seed,
                value_scale=value_scale,
            )
            if setting.start == "usual" or song2024.certify(model, x, y).for_all_time:
                return model, SquaredError(x, y, unit=scale**2)
            if scale > 1e12:
                raise AttnscopeError(
                    f"case '{case}', seed {seed}: no W^O up to 1e12 is certified for all time; "
                    "expected a B_0 of full rank, with wide × heads well above sequences × length."
                )
            scale *= 2

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed and a size see the same data."""
        model, loss = self.start(case, seed)
        begin = [matrix.detach().clone() for matrix in _matrices(model)]
        features = model.features(loss.x).detach()

        def moved(module: nn.Module) -> Tensor:
            pairs = zip(_matrices(module), begin, strict=True)
            return torch.stack([(matrix - first).norm() for matrix, first in pairs])

        def spectrum(module: nn.Module) -> Tensor:
            b = _own(module).features(loss.x)
            return b.new_tensor(song2024.smallest_singular_value(b))

        def shifted(module: nn.Module) -> Tensor:
            return torch.linalg.matrix_norm(_own(module).features(loss.x) - features, ord=2)

        def pl(module: nn.Module) -> Tensor:
            value = song2024.pl_constant(song2024.layer_state(_own(module), loss.x))
            return features.new_tensor(value / loss.unit)

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("pl", pl, (), "1/time", "μ, the PL constant that W^V gives"),
            Observable("sigma_min", spectrum, (), "", "σ_Nn(B)"),
            Observable("feature_move", shifted, (), "", "‖B - B_0‖₂"),
            Observable("moved", moved, ("matrix",), "", "‖W - W(0)‖_F of W^Q, W^K, W^V"),
        )
        return Problem(model, loss, [Record(curves, Given(self._times()))])

    def _times(self) -> tuple[float, ...]:
        steps = np.unique(np.round(np.geomspace(1, self.epochs, self.points - 1)))
        return tuple(float(time) for time in self.lr * steps)

    def truth(self) -> xr.Dataset:
        """Return the number of labels of each run."""
        sizes = [
            self.length * (self.sequences if SETTINGS[case].above else self.many_sequences)
            for case, _ in self.runs()
        ]
        return xr.Dataset({"labels": ("run", sizes, {"meaning": "N n"})})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Compute the certificate of every start, and follow it along its run."""
        times = tree["observables/time"].to_numpy()
        names = ("beta", "printed_beta", "largest", "reach", "shift", "room", "value_residual")
        found = {name: np.empty(len(self.runs())) for name in names}
        for run, (case, seed) in enumerate(self.runs()):
            model, loss = self.start(case, seed)
            state = song2024.layer_state(model, loss.x)
            certificate = song2024.certify(model, loss.x, loss.y)
            b = state.features
            whole = float(np.sum(state.w_o**2))
            for name, value in {
                "beta": certificate.beta / loss.unit,
                "printed_beta": whole * certificate.sigma_min**2 / loss.unit,
                "largest": (certificate.strength * float(np.linalg.norm(b, 2))) ** 2 / loss.unit,
                "reach": certificate.reach,
                "shift": certificate.shift,
                "room": certificate.room,
                "value_residual": song2024.value_only(b, loss.y).residual,
            }.items():
                found[name][run] = value
        loss_curve = tree["observables/relative_loss"].to_numpy()
        along = song2024.along(times, loss_curve, tree["observables/pl"].to_numpy(), found["beta"])
        meanings = {
            "beta": "β of Theorem 1 with min_h ‖W_h^O‖, per unit of time",
            "printed_beta": "β with ‖W^O‖ of all heads, per unit of time",
            "largest": "β with the largest singular value of B_0 in place of the smallest",
            "reach": "longest path of the weights while the rate holds",
            "shift": "bound of ‖B - B_0‖ within that reach",
            "room": "(1 - 1/√2) σ_min(B_0)",
            "value_residual": "smallest relative loss that W^V alone can reach from the start",
        }
        curves = {
            "certified": (along.certified.astype(float), "1 while μ >= β/2 from the start on"),
            "rate_bound": (along.rate_bound, "f(0) exp(-βt), relative"),
            "path_bound": (along.path_bound, "f(0) exp(-2∫μ), relative"),
        }
        return xr.Dataset(
            {name: ("run", values, {"meaning": meanings[name]}) for name, values in found.items()}
            | {
                name: (("run", "step"), values, {"meaning": meaning})
                for name, (values, meaning) in curves.items()
            },
            coords={"time": ("step", times)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what Theorem 1 says, and what it does not."""
        return _convergence_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw losses with their bounds, and the constants along the runs."""
        return _convergence_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate certificates, and W^V alone."""
        return _convergence_tables.tables(self, tree)


def _own(module: nn.Module) -> KernelAttention:
    return cast(KernelAttention, module)


def _matrices(module: nn.Module) -> list[Tensor]:
    model = _own(module)
    return [model.W_Q, model.W_K, model.W_V]
