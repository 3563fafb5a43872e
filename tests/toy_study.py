"""A study of one's own: two quadratic bowls, small enough to know everything about."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Several
from attnscope.claims import Claim, below
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.report import Figure, Line, Panel
from attnscope.trajectory import Readings, final

STEEPNESS = {"steep": 1.0, "flat": 0.25}


class Point(nn.Module):
    """A vector of double-precision numbers."""

    def __init__(self, at: tuple[float, ...]) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor(at, dtype=torch.float64))


@dataclass(frozen=True)
class Bowl(Study):
    """Descent into ½ c ‖x‖², which is x₀ exp(-c t)."""

    seeds: int = 2
    training: Flow | Descent = Flow(lr=0.1, epochs=300)
    points: Several = 31
    start: tuple[float, ...] = (1.0, -2.0)
    """Where it begins."""
    talkative: bool = False
    """Print a lot while it is built."""
    weight: float = 0.0
    """Nothing uses it; it may be negative."""
    fault: str = ""
    """What goes wrong: 'sentence', 'bug', or nothing."""

    cases = tuple(STEEPNESS)

    def build(self, case: str, seed: int) -> Problem:
        if self.talkative:
            print("a study may print" + "." * 200_000)
            sys.stderr.write("and complain" + "!" * 200_000)
        if self.fault and seed == 1:
            raise (
                AttnscopeError("seed 1 is not to be")
                if self.fault == "sentence"
                else ValueError("a bug of seed 1")
            )
        model = Point(tuple(value + seed for value in self.start))

        def loss(model: nn.Module) -> Tensor:
            return 0.5 * STEEPNESS[case] * model.get_parameter("x").square().sum()

        x = Observable("x", lambda m: m.get_parameter("x"), ("coordinate",))
        return Problem(model, loss, [Record((x, Observable("loss", loss)), Linear(self.points))])

    def truth(self) -> xr.Dataset:
        return xr.Dataset({"start": ("coordinate", np.asarray(self.start))})

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        rate = xr.DataArray(list(STEEPNESS.values()), dims="case")
        return {"x": (run.x.isel(step=0) * np.exp(-rate * run.x["time"])).transpose(*run.x.dims)}

    def claims(self) -> list[Claim]:
        def deviation(run: Readings, factor: float) -> xr.DataArray:
            return abs(run.x - factor * run.theory.x).max(("step", "coordinate", "case"))

        return [
            Claim(
                "decay",
                "x decays exponentially.",
                deviation,
                1.0,
                below(0.1),
                (2.0, "twice as far"),
                source="calculus",
                paper="exactly",
            )
        ]

    def figures(self, run: Readings) -> list[Figure]:
        x = run.of("steep").x.isel(seed=0, coordinate=0)
        line = Line(x["time"].to_numpy(), x.to_numpy(), "x")
        return [Figure("decay", "Decay", "x over time.", (Panel("x", "time", "x", (line,)),))]


@dataclass(frozen=True)
class Relay(Bowl):
    """The flat bowl begins where the steep one ended, so it comes in a second round."""

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        numbers = range(len(self.runs()))
        return tuple(tuple(i for i in numbers if i % 2 == parity) for parity in (0, 1))

    def build_after(self, case: str, seed: int, earlier: Readings) -> Problem:
        problem = self.build(case, seed)
        last = final(earlier.of("steep").x.sel(seed=seed)).to_numpy()
        with torch.no_grad():
            problem.model.get_parameter("x").copy_(torch.from_numpy(last))
        return problem
