"""Attention and values trained together point to two machines, one in the other (joint case)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, above
from attnscope.experiment import Measurement, Pass, Quantity
from attnscope.report import Cell, Figure, Line, Panel, Table
from attnscope.studies.tarzanagh2023._choices import CITATION, correlation
from attnscope.theory.tarzanagh2023 import JointSvm, joint_descent, joint_svm
from attnscope.trajectory import Readings

PICTURES = {"third input on the margin": (0.5, 1.0), "third input off the margin": (0.5, 1.5)}
"""The chosen token of the third input, in the papers' two pictures."""
LABELS = np.array([1.0, -1.0, 1.0])
START = np.array([[0.0, -1.0], [-1.0, 0.0]])
"""p and v at the papers' start."""
ALIGNED = 0.999


@dataclass(frozen=True)
class JointStudy(Measurement):
    """Three inputs of two tokens in the plane, p and v by normalised gradient descent."""

    seeds: Count = 6
    steps: Several = 1000
    """Steps, each of which moves p and v by ``rate``."""
    rate: Positive = 0.1
    """Length of a step."""
    spread: Positive = 0.1
    """Standard deviation of starts around the papers' own, which is that of seed 0."""

    quick = {"seeds": 3}
    citation = CITATION
    cases = tuple(PICTURES)

    def machines(self, case: str) -> JointSvm:
        """Return where p and v should point to; the second token of every input is the origin."""
        return joint_svm(_tokens(case), LABELS, np.zeros(len(LABELS), dtype=int))

    def measure(self, case: str, seed: int) -> Pass:
        """Descend from one start, and read p and v at every step."""
        noise = np.random.default_rng(seed).normal(size=START.shape) if seed else np.zeros((2, 2))
        start = START + self.spread * noise

        def read(done: int) -> Iterator[Sequence[Sequence[Tensor]]]:
            path = joint_descent(_tokens(case), LABELS, start, self.steps, self.rate)
            yield [[torch.from_numpy(each)] for each in path[done:]]

        what = Quantity("weight", ("part", "entry"), (2, 2), "p and v")
        return Pass((what,), self.steps + 1, read, "iteration")

    def aligned(self, run: Readings, case: str, part: int, machine: np.ndarray) -> xr.DataArray:
        """Return the correlation of p or v with a machine over the iterations."""
        path = run.of(case).weight.isel(part=part)
        return path.isel(entry=0).copy(data=correlation(path.to_numpy(), machine))

    def claims(self) -> list[Claim]:
        """Return both directions, and what tells the picture off the margin."""

        def selects(run: Readings, name: str) -> np.ndarray:
            found = [
                self.aligned(run, case, 0, getattr(self.machines(case), name)).isel(iteration=-1)
                for case in self.cases
            ]
            return np.asarray(np.min(found, axis=0))

        def values(run: Readings, when: int) -> np.ndarray:
            found = [
                self.aligned(run, case, 1, self.machines(case).values).isel(iteration=when)
                for case in self.cases
            ]
            return np.asarray(np.min(found, axis=0))

        measure = f"correlation after {self.steps:,} steps, least over both pictures"
        return [
            Claim(
                "selector",
                "p points to the machine that asks for a margin only of inputs on the margin of v.",
                selects,
                "selector",
                above(ALIGNED),
                ("strict", "a margin of 1 for every input, as with a fixed v"),
                "2306.13596, joint training of p and v",
                "1 as t → ∞",
                measure,
            ),
            Claim(
                "values",
                "v points to the support vector machine of the chosen tokens.",
                values,
                -1,
                above(ALIGNED),
                (0, "v at the start"),
                "2306.13596, joint training of p and v",
                "1 as t → ∞",
                measure,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the paths of p and v with the machines of both."""
        panels = []
        for case in self.cases:
            found = self.machines(case)
            for part, name, rays in (
                (0, "p", {"machine": found.selector, "margin 1 for all": found.strict}),
                (1, "v", {"machine": found.values}),
            ):
                paths = run.of(case).weight.isel(part=part).to_numpy()
                reach = float(np.abs(paths).max())
                marks = [
                    Line(path[:, 0], path[:, 1], "" if seed else f"{name}, seeds", 0, thin=seed > 0)
                    for seed, path in enumerate(paths)
                ]
                for i, (label, ray) in enumerate(rays.items()):
                    line = np.outer([0, reach / np.linalg.norm(ray)], ray)
                    marks.append(Line(line[:, 0], line[:, 1], label, i + 1, theory=not i))
                panels.append(Panel(f"{name}: {case}", f"{name}₁", f"{name}₂", tuple(marks)))
        return [
            Figure(
                "joint",
                "Attention and values find their machines together",
                "Paths of p and v, each moved by its own normalised gradient. Where the third "
                "input is off the margin of v, p needs no margin for it.",
                tuple(panels),
                columns=2,
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the correlations at the end."""
        rows: list[tuple[Cell, ...]] = []
        for case in self.cases:
            found = self.machines(case)
            parts = ((0, found.selector), (0, found.strict), (1, found.values))
            ends = (self.aligned(run, case, part, to).isel(iteration=-1) for part, to in parts)
            size = float((found.selector**2).sum() / 2)
            rows.append((case, *(float(each.mean()) for each in ends), size))
        head = ("picture", "p with its machine", "margin 1 for all", "v with its machine", "‖p‖²/2")
        return [Table("joint", "Correlations at the end, mean over seeds", head, tuple(rows))]


def _tokens(case: str) -> np.ndarray:
    tokens = np.zeros((3, 2, 2))
    tokens[:, 0] = [(1.0, 1.0), (1.0, -1.0), PICTURES[case]]
    return tokens
