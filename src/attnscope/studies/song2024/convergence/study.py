"""The spec of ``song2024.convergence``, its runs, and the certificates of their starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.engines import Descent, Flow, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.studies.song2024._song import CITATION, layer
from attnscope.studies.song2024.convergence.claims import (
    BELOW,
    CASES,
    CERTIFIED,
    DESCENT,
    claims_of,
)
from attnscope.studies.song2024.convergence.figures import figures_of, tables_of
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024
from attnscope.trajectory import Readings


@dataclass(frozen=True)
class Convergence(Study):
    """Random regression with W^Q, W^K and W^V trained, above and below HD = Nn.

    The poster gives a theorem and no experiment on regression: sizes, data and starts are this
    package's own. Every run carries its certificate: the constant of Theorem 1 from the start, the
    constant of the inequality of Polyak and Łojasiewicz along the run, and how far B has moved.
    """

    seeds: Count = 10
    training: Flow = Flow(until=60.0, rtol=1e-5, atol=1e-6)
    step: Positive = 0.01
    """Step of gradient descent, and unit of the record points."""
    points: Several = 161
    """Record points, evenly spaced on a logarithmic axis."""
    length: Count = 4
    """n, tokens of a sequence."""
    sequences: Count = 6
    """N where H D >= N n."""
    many_sequences: Count = 12
    """N where H D < N n."""
    width: Count = 16
    """D, entries of a token."""
    wide: Count = 64
    """D of the certified start; a wider B is better conditioned, which saves steps."""
    heads: Count = 2
    """H."""
    head_width: Count = 8
    """d."""

    citation = CITATION
    quick = {"seeds": 3, "until": 30.0, "points": 101}
    labels = {"matrix": ("Q", "K", "V")}
    cases = tuple(CASES)
    claims, figures, tables = claims_of, figures_of, tables_of

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Rebuild a spec; the learning rate of an older one was the step of descent."""
        return super().from_json(spec if "lr" not in spec else {"step": spec["lr"], **spec})

    def check(self) -> None:
        """Check that runs end after a whole step, and the two sides of HD = Nn."""
        if self.training.lr is not None or not math.isclose(self.steps * self.step, self.end):
            raise AttnscopeError(
                f"until = {self.training.until}, lr = {self.training.lr}, step = {self.step}: "
                "expected a whole number of steps, and a flow without a learning rate."
            )
        few, many = self.sequences * self.length, self.many_sequences * self.length
        columns = self.heads * min(self.width, self.wide)
        if not few <= columns or not self.heads * self.width < many:
            raise AttnscopeError(
                f"sequences = {self.sequences}, many_sequences = {self.many_sequences}, length = "
                f"{self.length}, heads = {self.heads}, width = {self.width}: expected heads × "
                "width at or above sequences × length and below many_sequences × length."
            )

    @property
    def steps(self) -> int:
        """Steps of gradient descent that a run stands for."""
        return round(self.end / self.step)

    @property
    def unit(self) -> float:
        """Time of a step of gradient descent."""
        return self.step

    def describe(self) -> str:
        """Say how long runs are."""
        return f"time {self.end:g}, by gradient flow or {self.steps:,} steps of descent"

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient flow, or descent for the cases that say so."""
        if CASES[case][1] == DESCENT:
            return Descent(lr=self.step)
        if CASES[case][1] == CERTIFIED:
            # W^V is as small as W^O is large; and here the bound is nearly reached.
            return replace(self.training, rtol=1e-7, atol=1e-14)
        return self.training

    def sizes(self, kind: str) -> tuple[int, int]:
        """Return HD and Nn."""
        count = self.many_sequences if kind == BELOW else self.sequences
        return self.heads * (self.wide if kind == CERTIFIED else self.width), self.length * count

    def start(self, case: str, seed: int) -> tuple[KernelAttention, SquaredError]:
        """Return model and loss at time 0; all cases of a seed and a size have the same data."""
        kernel, kind = CASES[case]
        columns, labels = self.sizes(kind)
        width, certified = columns // self.heads, kind == CERTIFIED
        x, y = RandomRegression(labels // self.length, self.length, width).sample(seed)
        made = partial(kernel_regression, width, self.heads, self.head_width, kernel=kernel)
        scale, value_scale = 1.0, 0.0 if certified else 1.0
        while scale <= 2e12:
            model = made(seed=seed, output_scale=scale, value_scale=value_scale)
            if not certified or song2024.certify(model, x, y).for_all_time:
                return model, SquaredError(x, y, unit=scale**2)
            scale *= 2
        raise AttnscopeError(
            f"case '{case}', seed {seed}: no W^O up to 1e12 is certified for all time; "
            "expected a B_0 of full rank, with wide × heads well above sequences × length."
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case."""
        model, loss = self.start(case, seed)

        def matrices(module: nn.Module) -> list[Tensor]:
            return [layer(module).W_Q, layer(module).W_K, layer(module).W_V]

        def features(module: nn.Module) -> Tensor:
            return layer(module).features(loss.x)

        def moved(module: nn.Module) -> Tensor:
            pairs = zip(matrices(module), begin, strict=True)
            return torch.stack([(matrix - first).norm() for matrix, first in pairs])

        def pl(module: nn.Module) -> Tensor:
            value = song2024.pl_constant(song2024.layer_state(layer(module), loss.x))
            return b_0.new_tensor(value / loss.unit)

        def smallest(module: nn.Module) -> Tensor:
            return b_0.new_tensor(song2024.smallest_singular_value(features(module)))

        def shifted(module: nn.Module) -> Tensor:
            return torch.linalg.matrix_norm(features(module) - b_0, ord=2)

        begin, b_0 = [each.detach().clone() for each in matrices(model)], features(model).detach()
        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("pl", pl, (), "1/time", "μ, the PL constant that W^V gives"),
            Observable("sigma_min", smallest, (), "", "σ_Nn(B)"),
            Observable("feature_move", shifted, (), "", "‖B - B_0‖₂"),
            Observable("moved", moved, ("matrix",), "", "‖W - W(0)‖_F of W^Q, W^K, W^V"),
        )
        steps = np.unique(np.round(np.geomspace(1, self.steps, self.points - 1)))
        return Problem(model, loss, [Record(curves, Given(tuple(self.step * steps)))])

    def truth(self) -> dict[str, object]:
        """Return the number of labels of each run."""
        labels = [self.sizes(CASES[case][1])[1] for case, _ in self.runs()]
        return {"labels": ("run", labels, {"meaning": "N n"})}

    def theory(self, run: Readings) -> dict[str, object]:
        """Compute the certificate of every start, and follow it along its run."""
        starts = [self.certificate(case, seed) for case, seed in self.runs()]
        beta = np.array([start["beta"][0] for start in starts])
        loss, pl = run["observables/relative_loss"], run["observables/pl"]
        along = song2024.along(loss["time"].to_numpy(), loss.to_numpy(), pl.to_numpy(), beta)
        curves = {
            "certified": (along.certified.astype(float), "1 while μ >= β/2 from the start on"),
            "rate_bound": (along.rate_bound, "f(0) exp(-βt), relative"),
            "path_bound": (along.path_bound, "f(0) exp(-2∫μ), relative"),
        }
        constants = {
            name: ("run", [start[name][0] for start in starts], {"meaning": meaning})
            for name, (_, meaning) in starts[0].items()
        }
        return constants | {
            name: (("run", "step"), values, {"meaning": meaning})
            for name, (values, meaning) in curves.items()
        }

    def certificate(self, case: str, seed: int) -> dict[str, tuple[float, str]]:
        """Return the constants of a start, with what they mean."""
        model, loss = self.start(case, seed)
        state, found = song2024.layer_state(model, loss.x), song2024.certify(model, loss.x, loss.y)
        largest = found.strength * float(np.linalg.norm(state.features, 2))
        printed = float(np.sum(state.w_o**2)) * found.sigma_min**2
        alone = song2024.value_only(state.features, loss.y).residual
        return {
            "beta": (found.beta / loss.unit, "β of Theorem 1 with min_h ‖W_h^O‖, per unit of time"),
            "printed_beta": (printed / loss.unit, "β with ‖W^O‖ of all heads, per unit of time"),
            "largest": (
                largest**2 / loss.unit,
                "β with the largest singular value of B_0 in place of the smallest",
            ),
            "reach": (found.reach, "longest path of the weights while the rate holds"),
            "shift": (found.shift, "bound of ‖B - B_0‖ within that reach"),
            "room": (found.room, "(1 - 1/√2) σ_min(B_0)"),
            "value_residual": (
                alone,
                "smallest relative loss that W^V alone can reach from the start",
            ),
        }
