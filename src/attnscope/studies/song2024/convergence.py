"""With all weights trained both kernels fit every label, at the certified rate (Theorem 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, below
from attnscope.engines import Descent, Flow, Given, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.report import Band, Cell, Figure, Line, Mark, Panel, Table
from attnscope.studies.song2024._song import CITATION, CUT, KERNELS, SLACK, SOLVED, layer
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024
from attnscope.trajectory import Readings, final, initial

KINDS = ("HD > Nn", "HD < Nn", "HD > Nn, descent", "certified start")
ABOVE, BELOW, DESCENT, CERTIFIED = KINDS
"""The usual start, by flow, with too few columns, and by descent; W^V = 0 and W^O large."""
CASES = {f"{kernel}, {kind}": (kernel, kind) for kernel in KERNELS for kind in KINDS}
SHOWN = 1e-10
"""Relative loss at which figures cut curves."""
MEANINGS = {
    "beta": "β of Theorem 1 with min_h ‖W_h^O‖, per unit of time",
    "printed_beta": "β with ‖W^O‖ of all heads, per unit of time",
    "largest": "β with the largest singular value of B_0 in place of the smallest",
    "reach": "longest path of the weights while the rate holds",
    "shift": "bound of ‖B - B_0‖ within that reach",
    "room": "(1 - 1/√2) σ_min(B_0)",
    "value_residual": "smallest relative loss that W^V alone can reach from the start",
}


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
        scale = 1.0
        while scale <= 2e12:
            model = kernel_regression(
                width,
                self.heads,
                self.head_width,
                kernel=kernel,
                output_scale=scale,
                seed=seed,
                value_scale=0.0 if certified else 1.0,
            )
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

        begin = [matrix.detach().clone() for matrix in matrices(model)]
        features = model.features(loss.x).detach()

        def moved(module: nn.Module) -> Tensor:
            pairs = zip(matrices(module), begin, strict=True)
            return torch.stack([(matrix - first).norm() for matrix, first in pairs])

        def spectrum(module: nn.Module) -> Tensor:
            b = layer(module).features(loss.x)
            return b.new_tensor(song2024.smallest_singular_value(b))

        def shifted(module: nn.Module) -> Tensor:
            return torch.linalg.matrix_norm(layer(module).features(loss.x) - features, ord=2)

        def pl(module: nn.Module) -> Tensor:
            value = song2024.pl_constant(song2024.layer_state(layer(module), loss.x))
            return features.new_tensor(value / loss.unit)

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("pl", pl, (), "1/time", "μ, the PL constant that W^V gives"),
            Observable("sigma_min", spectrum, (), "", "σ_Nn(B)"),
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
        found = {name: np.array([start[name] for start in starts]) for name in MEANINGS}
        loss, pl = run["observables/relative_loss"], run["observables/pl"]
        along = song2024.along(loss["time"].to_numpy(), loss.to_numpy(), pl.to_numpy(), found["beta"])
        curves = {
            "certified": (along.certified.astype(float), "1 while μ >= β/2 from the start on"),
            "rate_bound": (along.rate_bound, "f(0) exp(-βt), relative"),
            "path_bound": (along.path_bound, "f(0) exp(-2∫μ), relative"),
        }
        return {n: ("run", values, {"meaning": MEANINGS[n]}) for n, values in found.items()} | {
            n: (("run", "step"), values, {"meaning": text}) for n, (values, text) in curves.items()
        }

    def certificate(self, case: str, seed: int) -> dict[str, float]:
        """Return the constants of a start."""
        model, loss = self.start(case, seed)
        state = song2024.layer_state(model, loss.x)
        found = song2024.certify(model, loss.x, loss.y)
        largest = found.strength * float(np.linalg.norm(state.features, 2))
        return {
            "beta": found.beta / loss.unit,
            "printed_beta": float(np.sum(state.w_o**2)) * found.sigma_min**2 / loss.unit,
            "largest": largest**2 / loss.unit,
            "reach": found.reach,
            "shift": found.shift,
            "room": found.room,
            "value_residual": song2024.value_only(state.features, loss.y).residual,
        }

    def claims(self) -> list[Claim]:
        """Return what Theorem 1 says, and what it does not."""
        flows, covered = (ABOVE, CERTIFIED), (ABOVE, DESCENT, CERTIFIED)

        def reached(run: Readings, given: tuple[str, ...]) -> xr.DataArray:
            """Return log10 of the loss of some kinds that all weights reach, or W^V alone."""
            weights, *kinds = given
            loss = final(run.relative_loss) if weights == "all" else run.theory.value_residual
            return np.log10(of(loss, *kinds).clip(1e-40))

        def excess(run: Readings, given: tuple[str, tuple[str, ...]]) -> xr.DataArray:
            """Return the largest log(f/bound) of each run; rates are judged while certified."""
            name, kinds = given
            loss, theory = of(run.relative_loss, *kinds), run.theory
            steps, proven = loss["time"] / self.step, name in ("rate_bound", "descent")
            if name == "largest":
                bound = initial(loss) * np.exp(-of(theory.largest, *kinds) * loss["time"])
            elif name == "descent":
                bound = initial(loss) * (1 - self.step * of(theory.beta, *kinds)) ** steps
            else:
                bound = of(theory.get(name), *kinds)
            over = np.log(loss.clip(CUT)) - np.log(bound.clip(CUT))
            certified = of(theory.certified, *kinds) > 0
            return (over.where(certified, -np.inf) if proven else over).max("step")

        def allowed(run: Readings, kind: str) -> xr.DataArray:
            return of(run.theory.shift, kind) / of(run.theory.room, kind)

        def moved(run: Readings, kind: str) -> xr.DataArray:
            return of(run.feature_move, kind).max("step") / of(run.theory.shift, CERTIFIED)

        bounded = partial(Claim, of=excess, holds=below(SLACK), source="Theorem 1")
        too_fast = "the largest singular value of B_0 in place of the smallest"
        along = "largest log(f/bound) along the certified part of a run"
        solved = partial(
            Claim,
            of=reached,
            holds=below(SOLVED),
            control=(("W^V", BELOW), "the best that W^V alone can do with HD < Nn"),
            measure="log10 of the relative loss at the end",
        )
        return [
            solved(
                "global-optimum",
                "With HD >= Nn and W^Q, W^K, W^V trained, both kernels reach the optimum.",
                given=("all", ABOVE, DESCENT),
                source="Theorem 1",
                paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
            ),
            bounded(
                "rate",
                "The loss stays below f(0) exp(-βt) for as long as the certificate covers.",
                given=("rate_bound", covered),
                control=(("largest", covered), too_fast),
                paper="(1 - ηβ)^t, β = σ²_min(W^O) σ²_min(B_0)",
                measure=along,
            ),
            bounded(
                "printed-bound",
                "Gradient descent stays below (1 - ηβ)^t f(M_0), as printed.",
                given=("descent", (DESCENT,)),
                control=(("largest", (DESCENT,)), too_fast),
                paper="f(M_t) <= (1 - ηβ)^t f(M_0)",
                measure=along,
            ),
            bounded(
                "path-bound",
                "Gradient flow stays below f(0) exp(-2∫μ) all the way, certified or not.",
                given=("path_bound", flows),
                control=(("largest", flows), too_fast),
                source="derived from Theorem 1's inequality",
                paper="none",
                measure="largest log(f/bound) along a run",
            ),
            Claim(
                "start-exists",
                "There is a start from which convergence is certain for all time: W^V = 0 and "
                "W^O large.",
                allowed,
                CERTIFIED,
                below(1.0),
                (ABOVE, "the usual start, with entries of size one"),
                "Theorem 1, 'there exists initialization'",
                "no start given",
                "how far B might move over how far it may",
            ),
            Claim(
                "near-start",
                "From the certified start B moves by no more than the bound allows.",
                moved,
                CERTIFIED,
                below(1.0),
                (ABOVE, "the move of B from the usual start, over the same bound"),
                "Theorem 1, remark 'weights need to move a bit'",
                "'a bit'",
                "largest ‖B - B_0‖₂ of a run over the bound of its start",
            ),
            solved(
                "not-necessary",
                "HD >= Nn is sufficient, not necessary: with HD < Nn training also reaches "
                "the optimum.",
                given=("all", BELOW),
                source="Theorem 1, 'Suppose HD >= Nn'",
                paper="nothing said of HD < Nn",
            ),
            solved(
                "value-alone",
                "W^V alone fits every label exactly if HD >= Nn.",
                given=("W^V", ABOVE, DESCENT),
                holds=below(-10.0),
                control=(("W^V", BELOW), "HD < Nn"),
                source="derived from Theorem 1: B has full row rank",
                paper="none",
                measure="log10 of the least-squares residual",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw losses with their bounds, and the constants along the runs."""
        return [self.losses(run), self.constants(run)]

    def losses(self, run: Readings) -> Figure:
        """Draw the loss of every kind of start, with the largest bound of any seed."""
        panels = []
        for kind in (ABOVE, BELOW, CERTIFIED):
            marks: list[Mark] = []
            for color, kernel in enumerate(KERNELS):
                own = run.of(f"{kernel}, {kind}")
                marks += spread(own.relative_loss, kernel, color)
                if kind != BELOW:
                    bound = own.theory.rate_bound
                    worst = bound.isel(seed=int(final(bound).argmax()), step=slice(1, None))
                    label = "" if color else "f(0) exp(-βt)"
                    marks.append(Line(worst["time"], worst, label, color, theory=True))
            title = "HD = {}, Nn = {}".format(*self.sizes(kind))
            title += ", certified" if kind == CERTIFIED else ""
            panels.append(Panel(title, "time", "loss / ½‖y‖²", tuple(marks), "log", "log"))
        return Figure(
            "losses",
            "All weights trained: every label is fitted, above and below HD = Nn",
            f"Loss relative to ½‖y‖² along gradient flow, median and range of {self.seeds} seeds, "
            f"cut at {SHOWN:g}. Dashed: f(0) exp(-βt), the bound of Theorem 1, for the seed of "
            "each kernel with the smallest β. Left: the usual start. Middle: too few columns for "
            "Theorem 1, no bound, and the labels are fitted all the same. Right: W^V = 0 and W^O "
            "so large that it is certain for all time; time is divided by the square of that size.",
            tuple(panels),
        )

    def constants(self, run: Readings) -> Figure:
        """Draw μ over β, and how far B has moved."""
        ratio: list[Mark] = []
        move: list[Mark] = []
        for color, kernel in enumerate(KERNELS):
            for offset, kind, name in ((0, ABOVE, "usual start"), (2, CERTIFIED, CERTIFIED)):
                own, label = run.of(f"{kernel}, {kind}"), f"{kernel}, {name}"
                ratio += spread(own.pl / own.theory.beta, label, color + offset)
                shift = own.feature_move / initial(own.sigma_min)
                move += spread(shift, label, color + offset)
        times = run.pl["time"].to_numpy()[1:]
        room = np.full(len(times), 1 - np.sqrt(0.5))
        ratio.append(Line(times, np.full(len(times), 0.5), "certified above", theory=True))
        move.append(Line(times, room, "certain below", theory=True))
        moved = "‖B - B_0‖₂ / σ_min(B_0)"
        return Figure(
            "constants",
            "How long the constant of the start stays good",
            "Left: the PL constant μ that W^V gives, over β of Theorem 1; the rate of the start is "
            "proven while it is above ½. Right: how far B has moved, over σ_min(B_0); below 0.29 "
            f"Weyl's inequality makes it certain. Median and range of {self.seeds} seeds. From the "
            "usual start B leaves that region early, and the labels are fitted nevertheless.",
            (
                Panel("PL constant", "time", "μ / β", tuple(ratio), "log", "log"),
                Panel("move of B", "time", moved, tuple(move), "log", "log"),
            ),
            columns=2,
        )

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the certificate of the median start and how it fared, and W^V alone."""
        certificates: list[tuple[Cell, ...]] = []
        alone: list[tuple[Cell, ...]] = []
        for case, (_, kind) in CASES.items():
            own, theory = run.of(case), run.of(case).theory
            loss, beta, certified = own.relative_loss, theory.beta, theory.certified > 0
            sigma, residual = initial(own.sigma_min), theory.value_residual
            proven: tuple[Cell, ...] = (None,) * 5
            if (beta > 0).all():
                broken = ((loss > theory.rate_bound * (1 + 1e-6)) & certified).any("step")
                until = loss["time"].where(certified, 0.0).max("step")
                proven = (
                    middle(beta),
                    middle(until),
                    int(broken.sum()),
                    float(np.exp(-middle(beta) * self.end)),
                    middle(own.feature_move.max("step") / sigma),
                )
            moved = final(own.moved).median("seed").to_numpy().tolist()
            last = final(loss)
            certificates.append(
                (case, *self.sizes(kind), *proven, middle(last), float(last.max()), *moved)
            )
            if kind != DESCENT:
                ends = (float(residual.min()), float(residual.max()))
                fitted = int((residual < 1e-10).sum())
                alone.append(
                    (case, middle(sigma), middle(residual), *ends, fitted, len(residual))
                )
        return [
            Table(
                "certificates",
                f"Certificates: medians over {self.seeds} seeds, runs to time {self.end:g}; empty "
                "where Theorem 1 does not apply",
                (
                    "case",
                    "HD",
                    "Nn",
                    "β (1/time)",
                    "certified up to time",
                    "runs above the bound while certified",
                    "bound at the end / f(0)",
                    "largest ‖B - B_0‖₂ / σ_min(B_0)",
                    "relative loss at the end",
                    "worst of any seed",
                    "‖ΔW^Q‖",
                    "‖ΔW^K‖",
                    "‖ΔW^V‖",
                ),
                tuple(certificates),
            ),
            Table(
                "value-alone",
                "W^V alone: smallest relative loss over all W^V at the W^Q, W^K and W^O of the "
                "start",
                (
                    "case",
                    "σ_Nn(B_0)",
                    "residual, median",
                    "smallest",
                    "largest",
                    "seeds below 1e-10",
                    "seeds",
                ),
                tuple(alone),
            ),
        ]


def of(reading: xr.DataArray, *kinds: str) -> xr.DataArray:
    """Return a reading of some kinds of runs with either kernel, case by case."""
    cases = [case for case, (_, kind) in CASES.items() if kind in kinds]
    return reading.sel(case=cases).drop_vars("case")


def middle(values: xr.DataArray) -> float:
    """Return the median over seeds."""
    return float(values.median())


def spread(reading: xr.DataArray, label: str, color: int) -> list[Mark]:
    """Draw the median over seeds and the range of all, after the start."""
    shown = reading.isel(step=slice(1, None)).clip(SHOWN)
    times = shown["time"].to_numpy()
    return [
        Band(times, shown.min("seed").to_numpy(), shown.max("seed").to_numpy(), color=color),
        Line(times, shown.median("seed").to_numpy(), label, color),
    ]
