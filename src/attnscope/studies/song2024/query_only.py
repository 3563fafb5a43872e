"""With W^Q alone softmax has a heavy tail of bad runs, Gaussian attention has none (Theorem 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.claims import Claim, above, below
from attnscope.engines import Flow, Logarithmic, LossBelow, Observable, Record
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.probes.shares import share_interval
from attnscope.report import Band, Cell, Dots, Figure, Line, Mark, Panel, Rule, Table
from attnscope.report.figure import Scale
from attnscope.studies.song2024._song import CITATION, KERNELS, layer, least_loss, tabulate
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024
from attnscope.trajectory import Readings, carried, final, initial

SCALES = ((1, 1), (5, 1), (20, 1), (20, 3))
"""Of W^V, and of W^Q and W^K, at the start."""
STARTS = {f"W^V {value}, W^Q {query}": (value, query) for value, query in SCALES}
UNIT, FIVE, TWENTY, SATURATED = STARTS
CASES = {f"{kernel}, {start}": (kernel, start) for start in STARTS for kernel in KERNELS}
SOLVED = 1e-4
"""Relative loss below which a run counts as solved."""
STOP = 1e-8
"""Relative loss at which a run ends."""
THEOREM = "Theorem 2 [reading not verified]"
VANISHING = "conclusion, 'vanishing gradient issue in Softmax attention'"


@dataclass(frozen=True)
class QueryOnly(Study):
    """Random regression with W^Q trained alone, from starts of four scales.

    Theorem 2 is not legible in the poster. That it is about M = {W^Q}, and says that Gaussian
    attention converges where softmax may stop at a point that is not optimal, is the likeliest
    reading and could not be verified. Runs are gradient flow in double precision: no step size has
    to be chosen, and none can be blamed. Time is divided by the square of the scale of W^V, so that
    starts of different scale share an axis. Stability limits the steps here, not the tolerance.
    """

    seeds: Count = 20
    training: Flow = Flow(until=1000.0, rtol=1e-4, atol=1e-5, max_steps=1_000_000)
    points: Several = 81
    """Record points, evenly spaced on a logarithmic axis."""
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

    citation = CITATION
    quick = {"seeds": 10, "until": 200.0, "points": 61}
    labels = {"matrix": ("Q", "K", "V", "O")}
    cases = tuple(CASES)

    def describe(self) -> str:
        """Say how long runs are."""
        return f"gradient flow to time {self.end:g}, or to a relative loss of {STOP:g}"

    def start(self, case: str, seed: int) -> tuple[KernelAttention, SquaredError]:
        """Return model and loss at time 0; all cases of a seed have the same data."""
        kernel, start = CASES[case]
        value_scale, query_scale = STARTS[start]
        x, y = RandomRegression(self.sequences, self.length, self.width).sample(seed)
        made = partial(kernel_regression, self.width, self.heads, self.head_width, kernel=kernel)
        scaled = partial(made, query_scale=query_scale, value_scale=value_scale)
        return scaled(trained=("W_Q",), seed=seed), SquaredError(x, y, unit=value_scale**2)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case."""
        (model, loss), kernel = self.start(case, seed), CASES[case][0]

        def gradient(module: nn.Module) -> Tensor:
            return song2024.gradient_norms(layer(module), loss)

        def jacobian(module: nn.Module) -> Tensor:
            return song2024.jacobian_norm(layer(module).weights(loss.x), kernel).mean()

        def saturated(module: nn.Module) -> Tensor:
            return song2024.saturated_share(layer(module).weights(loss.x), kernel)

        curves = (
            Observable("relative_loss", loss.relative, (), "", "f over ½‖y‖²"),
            Observable("gradient", gradient, ("matrix",), "", "‖∂f/∂W‖_F of W^Q, W^K, W^V, W^O"),
            Observable("jacobian", jacobian, (), "", "mean norm of ∂s/∂c over rows s of S"),
            Observable("saturated", saturated, (), "", "share of rows with that norm below 0.01"),
        )
        record = Record(curves, Logarithmic(self.points, 1e-5 * self.end))
        least = STOP * 0.5 * float(loss.y.square().sum()) / loss.unit
        return Problem(model, loss, [record], stop=[LossBelow(least)])

    def truth(self) -> dict[str, object]:
        """Return the scales of each run."""
        value, query = zip(*(STARTS[CASES[case][1]] for case, _ in self.runs()), strict=True)
        return {
            "value_scale": ("run", list(value), {"meaning": "scale of W^V"}),
            "query_scale": ("run", list(query), {"meaning": "of W^Q and W^K"}),
        }

    def theory(self, run: Readings) -> dict[str, object]:
        """Bound what softmax can reach: its outputs are averages of fixed numbers."""
        least = [least_loss(*self.start(case, seed)) for case, seed in self.runs()]
        meaning = "relative loss that no softmax weights can get below"
        return {"least_loss": ("run", least, {"meaning": meaning})}

    def claims(self) -> list[Claim]:
        """Return what is said of the two kernels."""

        def ratio(run: Readings, given: tuple[str, Callable[[xr.DataArray], Any]]) -> list[float]:
            start, summary = given
            softmax, gaussian = (summary(final_loss(run, kernel, start)) for kernel in KERNELS)
            return [float(softmax / gaussian)]

        def saturated(run: Readings, start: str) -> xr.DataArray:
            return final(curve(run, "saturated", "softmax", start))

        def less_saturated(run: Readings, kernel: str) -> xr.DataArray:
            pair = (curve(run, "saturated", each, SATURATED) for each in (kernel, "gaussian"))
            return initial(next(pair)) - initial(next(pair))

        def worst(run: Readings, kernel: str) -> list[float]:
            return [max(float(final_loss(run, kernel, start).max()) for start in STARTS)]

        def worse(run: Readings, kernel: str) -> np.ndarray:
            return np.log10(final_loss(run, kernel, UNIT) / final_loss(run, "gaussian", UNIT))

        def above_bound(run: Readings, bound: str) -> xr.DataArray:
            own = run.of(f"softmax, {UNIT}")
            least = own.theory.least_loss if bound == "least" else initial(own.relative_loss)
            return final_loss(run, "softmax", UNIT) - least

        tail = partial(
            Claim,
            of=ratio,
            holds=above(5.0),
            source=THEOREM,
            paper="'may sometimes lead to suboptimal local solutions'",
            measure="worst relative loss of softmax over that of Gaussian attention",
        )
        against_itself = ("gaussian", "Gaussian attention against itself")
        return [
            tail(
                "heavy-tail",
                "W^V at scale 5: the worst softmax run is far worse than the worst Gaussian run.",
                given=(FIVE, np.max),
                control=((FIVE, np.median), "the same ratio for the median run"),
                reason="The tail is there, see the figure of outcomes, but the worst of a few "
                "seeds is a noisy number: at this scale groups of ten seeds give ratios on both "
                "sides of five. At scale 20 it is longer.",
            ),
            tail(
                "heavy-tail-20",
                "W^V at scale 20: the worst softmax run is far worse than the worst Gaussian run.",
                given=(TWENTY, np.max),
                control=((UNIT, np.max), "W^V at scale 1"),
            ),
            tail(
                "saturated-start",
                "From a saturated start the typical softmax run is stuck far above the typical "
                "Gaussian run.",
                given=(SATURATED, np.median),
                control=((UNIT, np.median), "W^V and W^Q at scale 1"),
                source=f"Theorem 2 and {VANISHING}",
                paper="vanishing gradient",
                measure="median relative loss of softmax over that of Gaussian attention",
            ),
            Claim(
                "vanishing",
                "From the saturated start most rows of softmax have no gradient left.",
                saturated,
                SATURATED,
                above(0.5),
                (UNIT, "softmax with W^V and W^Q at scale 1"),
                VANISHING,
                "vanishing gradient",
                "share of rows of S with ‖diag(s) - ssᵀ‖ below 0.01 at the end",
                each=False,
            ),
            Claim(
                "vanishing-less",
                "From the saturated start Gaussian attention keeps more of its gradient than "
                "softmax.",
                less_saturated,
                "softmax",
                above(0.0),
                against_itself,
                VANISHING,
                "the difference between the kernels",
                "share of rows with a derivative below 0.01 at the start, softmax - Gaussian",
                each=False,
                reason="It is the other way round: with large W^Q and W^K every query is far from "
                "every key, and all Gaussian weights vanish with their derivatives. What saves "
                "the loss is that the output vanishes too; see the table of gradients.",
            ),
            Claim(
                "bounded",
                "Gaussian attention never ends above the loss of an output of zero.",
                worst,
                "gaussian",
                below(1.0),
                ("softmax", "softmax"),
                THEOREM,
                "global convergence",
                "worst relative loss of any seed and start",
                reason="From the saturated start nearly all Gaussian weights are 0 and stay so: "
                "the output is small but not 0, and a small wrong output costs a little more than "
                "none.",
            ),
            Claim(
                "better-on-average",
                "On random regression Gaussian attention fits better than softmax on average.",
                worse,
                "softmax",
                above(0.0),
                against_itself,
                "conclusion, 'training with Gaussian kernel is easier in some cases'",
                "easier in some cases",
                "log10 of softmax's loss over Gaussian's, W^V and W^Q at scale 1",
                each=False,
                reason="At scale 1 no row is without a gradient at the start, with either kernel, "
                "so softmax has no vanishing gradient to suffer from; see the table of gradients.",
            ),
            Claim(
                "out-of-range",
                "No softmax run gets below what labels outside the range of its values leave.",
                above_bound,
                "least",
                above(-1e-9),
                ("start", "the loss of the start in place of the bound"),
                "derived: outputs are averages of fixed numbers",
                "none",
                "loss minus its lower bound, W^V and W^Q at scale 1",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw final losses, their course, and where gradients vanish."""
        return [self.outcomes(run), self.courses(run), self.anatomy(run)]

    def outcomes(self, run: Readings) -> Figure:
        """Draw every run's final loss by start."""
        marks: list[Mark] = []
        for color, kernel in enumerate(KERNELS):
            x = [np.full(self.seeds, i + 0.3 * color - 0.15) for i in range(len(STARTS))]
            y = [np.maximum(final_loss(run, kernel, start), STOP) for start in STARTS]
            marks.append(Dots(np.concatenate(x), np.concatenate(y), label=kernel, color=color))
        panel = Panel(
            "W^Q trained alone",
            "scale of W^V, of W^Q and W^K",
            "loss / ½‖y‖² at the end",
            (*marks, Rule(1.0, "output of zero")),
            yscale="log",
            xticks=tuple((float(i), f"{v}, {q}") for i, (v, q) in enumerate(SCALES)),
        )
        return Figure(
            "outcomes",
            "Softmax has a heavy tail of bad runs, Gaussian attention is bounded",
            f"Relative loss at the end of gradient flow of W^Q alone, a point for each of "
            f"{self.seeds} seeds; runs stop at {STOP:g}. Both kernels of a seed have the same "
            "data and start. Softmax runs may end far above the loss of an output of zero; "
            "Gaussian ones do not, since a query that is far from every key gives an output of "
            "zero.",
            (panel,),
            columns=1,
        )

    def courses(self, run: Readings) -> Figure:
        """Draw the loss of every run over time."""
        panels = []
        for start in (FIVE, TWENTY, SATURATED):
            marks: list[Mark] = []
            for color, kernel in enumerate(KERNELS):
                loss = curve(run, "relative_loss", kernel, start)[:, 1:].clip(STOP)
                for seed, y in enumerate(loss.to_numpy()):
                    label = "" if seed else kernel
                    marks.append(Line(loss["time"].to_numpy(), y, label, color, thin=True))
            panels.append(Panel(start, "time", "loss / ½‖y‖²", tuple(marks), "log", "log"))
        return Figure(
            "courses",
            "How runs get stuck",
            f"Relative loss along gradient flow of W^Q alone, {self.seeds} seeds, one line each. "
            "Time is divided by the square of the scale of W^V.",
            tuple(panels),
        )

    def anatomy(self, run: Readings) -> Figure:
        """Draw where the gradient of W^Q is lost, for a small and a saturated start."""
        panels = []
        for name, title, ylabel in (
            ("speed", "speed of W^Q", "‖∂f/∂W^Q‖² / f (1/time)"),
            ("jacobian", "Jacobian of the weights", "mean ‖∂s/∂c‖"),
            ("saturated", "rows without a gradient", "share of rows with ‖∂s/∂c‖ < 0.01"),
        ):
            marks: list[Mark] = []
            for offset, start in ((0, FIVE), (2, SATURATED)):
                for color, kernel in enumerate(KERNELS, offset):
                    values = self.reading(run, name, kernel, start)[:, 1:]
                    times = values["time"].to_numpy()
                    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
                    marks += [
                        Band(times, low, high, color=color),
                        Line(times, middle, f"{kernel}, {start}", color),
                    ]
            yscale: Scale = "linear" if name == "saturated" else "log"
            panels.append(Panel(title, "time", ylabel, tuple(marks), "log", yscale))
        return Figure(
            "anatomy",
            "Where the gradient of W^Q vanishes",
            "Left: the rate at which the gradient of W^Q shrinks the loss. Middle: mean Frobenius "
            "norm of the derivative of a row s of S by its exponents c, diag(s) - ssᵀ for softmax "
            "and diag(s) for Gaussian weights. Right: share of rows where it is below 0.01. Median "
            f"and quartiles of {self.seeds} seeds. From the saturated start both "
            "kernels lose their gradient, Gaussian attention more of it; it is stuck at an output "
            "of zero, softmax at outputs as large as W^V.",
            tuple(panels),
        )

    def reading(self, run: Readings, name: str, kernel: str, start: str) -> xr.DataArray:
        """Return a reading, or ``speed``: ‖∂f/∂W^Q‖²/f, at which gradient flow shrinks the loss."""
        if name != "speed":
            return curve(run, name, kernel, start)
        task = RandomRegression(self.sequences, self.length, self.width)
        sizes = [0.5 * float(task.sample(seed)[1].square().sum()) for seed in range(self.seeds)]
        loss = curve(run, "relative_loss", kernel, start) * xr.DataArray(sizes, dims="seed")
        gradient = curve(run, "gradient", kernel, start).sel(matrix="Q")
        return gradient**2 / (loss / STARTS[start][0] ** 2)

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate outcomes, and gradients at both ends of the runs, by start."""
        outcomes: list[dict[str, Cell]] = []
        gradients: list[dict[str, Cell]] = []
        for case, (kernel, start) in CASES.items():
            names: dict[str, Cell] = {"scale of the start": start, "kernel": kernel}
            loss = final_loss(run, kernel, start)
            share = share_interval(int((loss < SOLVED).sum()), len(loss))
            least = float(run.of(case).theory.least_loss.max(skipna=False))
            outcomes.append(
                {
                    **names,
                    f"share below {SOLVED:g}": share.share,
                    "from": share.low,
                    "to (95 %)": share.high,
                    "median relative loss": float(loss.median()),
                    "worst": float(loss.max()),
                    "largest lower bound of any seed": None if np.isnan(least) else least,
                }
            )
            gradients.append(
                names
                | {
                    f"{what}, {when}": float(end(self.reading(run, name, kernel, start)).median())
                    for when, end in (("start", initial), ("end", final))
                    for name, what in (
                        ("speed", "‖∂f/∂W^Q‖²/f (1/time)"),
                        ("jacobian", "mean ‖∂s/∂c‖"),
                        ("saturated", "rows with ‖∂s/∂c‖ < 0.01"),
                    )
                }
            )
        return [
            tabulate(
                "outcomes",
                f"W^Q trained alone: relative loss after gradient flow to time {self.end:g}, "
                f"{self.seeds} seeds",
                outcomes,
            ),
            tabulate(
                "gradients",
                f"Where the gradient of W^Q gets lost, medians over {self.seeds} seeds",
                gradients,
            ),
        ]


def curve(run: Readings, name: str, kernel: str, start: str) -> xr.DataArray:
    """Return a reading of a case; a run that ended early keeps its last values."""
    return carried(run.of(f"{kernel}, {start}").get(name))


def final_loss(run: Readings, kernel: str, start: str) -> xr.DataArray:
    """Return the relative loss at the end of each run."""
    return final(curve(run, "relative_loss", kernel, start))
