"""A study of one's own: two quadratic bowls, small enough to know everything about."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.claims import Claim, below
from attnscope.engines import Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure, Line, Panel
from attnscope.experiment import Problem
from attnscope.experiment import Study

CASES = {"steep": 1.0, "flat": 0.25}


class Point(nn.Module):
    """A vector of double-precision numbers."""

    def __init__(self, at: tuple[float, ...]) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor(at, dtype=torch.float64))


@dataclass(frozen=True)
class Bowl(Study):
    """Descent into ½ c ‖x‖², which is x₀ exp(-c t)."""

    seeds: int = 2
    epochs: int = 300
    points: int = 31
    start: tuple[float, ...] = (1.0, -2.0)
    """Where it begins."""
    talkative: bool = False
    """Print a lot while it is built."""
    weight: float = 0.0
    """Nothing uses it; it may be negative."""
    fault: str = ""
    """What goes wrong: 'sentence', 'bug', or nothing."""

    def cases(self) -> tuple[str, ...]:
        return tuple(CASES)

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
            return 0.5 * CASES[case] * model.get_parameter("x").square().sum()

        x = Observable("x", lambda m: m.get_parameter("x"), ("coordinate",))
        return Problem(model, loss, [Record((x, Observable("loss", loss)), Linear(self.points))])

    def truth(self) -> xr.Dataset:
        return xr.Dataset({"start": ("coordinate", np.asarray(self.start))})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        x = tree["observables/x"]
        rate = xr.DataArray([CASES[c] for c in x["case"].to_numpy()], dims="run")
        predicted = (x.isel(step=0) * np.exp(-rate * x["time"])).transpose(*x.dims)
        return xr.Dataset({"x": (x.dims, predicted.to_numpy())}, coords={"time": x["time"]})

    def claims(self) -> tuple[Claim, ...]:
        def deviation(tree: xr.DataTree, factor: float) -> np.ndarray:
            found = tree["observables/x"] - factor * tree["theory/x"]
            worst = abs(found).max(("step", "coordinate")).to_numpy()
            return np.asarray(worst.reshape(self.seeds, -1).max(axis=1))

        return (
            Claim(
                key="decay",
                sentence="x decays exponentially.",
                source="calculus",
                paper="exactly",
                statistic=lambda tree: deviation(tree, 1.0),
                criterion=below(0.1),
                control_sentence="twice as far",
                control=lambda tree: deviation(tree, 2.0),
            ),
        )

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        x = tree["observables/x"].isel(run=0, coordinate=0)
        line = Line(x["time"].to_numpy(), x.to_numpy(), "x")
        return [Figure("decay", "Decay", "x over time.", (Panel("x", "time", "x", (line,)),))]


@dataclass(frozen=True)
class Relay(Bowl):
    """The flat bowl begins where the steep one ended, so it comes in a second round."""

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        numbers = range(len(self.runs()))
        return tuple(tuple(i for i in numbers if i % 2 == parity) for parity in (0, 1))

    def build_after(self, case: str, seed: int, tree: xr.DataTree) -> Problem:
        problem = self.build(case, seed)
        x = tree["observables/x"]
        last = x[(x["case"] == "steep") & (x["seed"] == seed)].isel(run=0, step=-1).to_numpy()
        with torch.no_grad():
            problem.model.get_parameter("x").copy_(torch.from_numpy(last))
        return problem
