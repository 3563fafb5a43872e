"""Count the gradients of flows where the loss is sharp, and measure their errors.

    python benchmarks/stiffness.py [name ...]

Each problem is solved by Dormand and Prince's method alone, by the Chebyshev method alone, and as
:class:`Flow` chooses. The error is the largest of any parameter at 50 times, and at the end,
against the same flow at a tolerance of 1e-9 in double precision; for a quadratic, against its
closed form. A name ending in ``-double`` is that problem in double precision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from attnscope.catalogue import load
from attnscope.engines import Flow, Given, Memory, Observable, Record, Solution
from attnscope.experiment import Study

TIGHT = 1e-9


class Problem(NamedTuple):
    """A model with its loss, made anew at every call, and how it flows."""

    make: Callable[[], tuple[nn.Module, Callable[[nn.Module], Tensor]]]
    engine: Flow
    exact: Callable[[np.ndarray], np.ndarray] | None = None
    plain: bool = True
    """Whether Dormand and Prince's method alone ends in reasonable time."""
    hessian: np.ndarray | None = None
    """Where it is the same everywhere."""


class Encoder(nn.Module):
    """A small transformer that learns random labels of random sentences by heart."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(20, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.readout = nn.Linear(32, 4)
        self.words = torch.randint(0, 20, (128, 10))
        self.labels = torch.randint(0, 4, (128,))

    def forward(self) -> Tensor:
        """Return the full-batch loss."""
        read = self.readout(self.encoder(self.embedding(self.words)).mean(1))
        return F.cross_entropy(read, self.labels)


class Point(nn.Module):
    """Parameters and nothing else."""

    def __init__(self, at: Tensor) -> None:
        super().__init__()
        self.x = nn.Parameter(at.clone())


def quadratic(condition: float, rotated: bool, count: int = 120) -> Problem:
    """Return ½ xᵀHx to time condition/λ_max, eigenvalues in constant ratio up to 1."""
    source = torch.Generator().manual_seed(0)
    values = torch.logspace(-np.log10(condition), 0, count, dtype=torch.float64)
    basis = torch.eye(count, dtype=torch.float64)
    if rotated:
        mixed = torch.randn(count, count, dtype=torch.float64, generator=source)
        basis = torch.linalg.qr(mixed)[0]
    hessian = basis @ torch.diag(values) @ basis.T if rotated else values
    start = torch.ones(count, dtype=torch.float64)

    def loss(model: nn.Module) -> Tensor:
        x = model.get_parameter("x")
        return 0.5 * x @ (hessian @ x) if rotated else 0.5 * (hessian * x * x).sum()

    def exact(times: np.ndarray) -> np.ndarray:
        decay = torch.exp(-values * torch.from_numpy(times)[:, None])
        return ((decay * (basis.T @ start)) @ basis.T).numpy()

    engine = Flow(until=condition, max_steps=10**7)
    matrix = (hessian if rotated else torch.diag(hessian)).numpy()
    return Problem(lambda: (Point(start), loss), engine, exact, condition < 1e5, matrix)


def study(name: str, case: str) -> Problem:
    """Return one case of a study at its quick scale."""
    spec = load(name).at("quick")
    assert isinstance(spec, Study)

    def make() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
        problem = spec.build(case, 0)
        return problem.model, problem.loss

    own = spec.engine(case, 0)
    assert isinstance(own, Flow)
    return Problem(make, replace(own, lr=None, epochs=None, until=spec.end))


def problems() -> dict[str, Callable[[], Problem]]:
    """Return all of them by name."""
    return {
        "song2024.convergence": lambda: study("song2024.convergence", "softmax, HD > Nn"),
        "li2023.value": lambda: study("li2023.value", "population, λ = 0.01"),
        "song2024.query_only": lambda: study("song2024.query_only", "softmax, W^V 1, W^Q 1"),
        "lu2021.sen-TC": lambda: study("lu2021.sen", "TC"),
        "lu2021.sen-FC": lambda: study("lu2021.sen", "FC"),
        "encoder": lambda: Problem(lambda: (Encoder(), lambda m: m()), Flow(until=50.0)),
        "quadratic-1e4": lambda: quadratic(1e4, False),
        "quadratic-1e4-rotated": lambda: quadratic(1e4, True),
        "quadratic-1e6": lambda: quadratic(1e6, False),
        "quadratic-1e6-rotated": lambda: quadratic(1e6, True),
    }


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters() if p.requires_grad])


def times_of(engine: Flow) -> np.ndarray:
    """Return 50 times of a run: half in constant ratio, half evenly spaced."""
    end = engine.end or 1.0
    return np.union1d(np.geomspace(1e-4 * end, end, 25), np.linspace(0, end, 26)[1:])


def solve(problem: Problem, engine: Flow, double: bool) -> tuple[Solution, np.ndarray, np.ndarray]:
    """Return how it ended, the times, and the parameters there."""
    model, loss = problem.make()
    model, sink = model.double() if double else model, Memory()
    record = Record(
        (Observable("theta", parameters, ("parameter",)),), Given(tuple(times_of(engine)))
    )
    solution = engine.run(model, loss, record=[record], sink=sink)
    return solution, sink.times[0], sink.arrays[0]["theta"]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    known = problems()
    table = Table("problem", "method", "gradients", "of them Chebyshev", "refused", "error", "end")
    for name in sys.argv[1:] or list(known):
        problem, double = known[name.removesuffix("-double")](), name.endswith("-double")
        exact = None
        for method in ("dormand-prince", "chebyshev", None):
            if method == "dormand-prince" and not problem.plain:
                continue
            found = solve(problem, replace(problem.engine, method=method), double)
            solution, times, values = found
            if exact is None and problem.exact is None:
                tight = replace(problem.engine, rtol=TIGHT, atol=TIGHT, max_steps=10**6)
                exact = solve(problem, tight, double=True)[2]
            elif exact is None and problem.exact is not None:
                exact = problem.exact(times)
            error = np.abs(values - exact).max(axis=1)
            table.add_row(
                name,
                method or "chosen",
                f"{solution.evaluations:,}",
                f"{solution.gradients.get('chebyshev', 0):,}",
                f"{solution.rejected}",
                f"{error.max():.1e}",
                f"{error[-1]:.1e}",
            )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
