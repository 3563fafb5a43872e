"""Flows at the default tolerance against SciPy's solvers at 1e-10 in double precision.

    python benchmarks/run.py --only flow_accuracy    a row a problem: 1e-4 over the largest error
    python benchmarks/flow_accuracy.py               what SciPy's solvers need on two of them

The error is the largest of any parameter at a few dozen times of the run. The reference shares the
model and its gradient with the flow, and nothing of the solver: DOP853, or Radau with the exact
Jacobian for the quadratics, where DOP853 would take two million gradients. SciPy's tolerance is of
the root mean square over all parameters, the flow's of the largest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

import sst
from attnscope.engines import Flow, Given, Memory, Observable, Record
from attnscope.engines.parameters import flattened
from attnscope.models.objective import BagObjective
from harness import Measured, Row
from stiffness import Problem, parameters, problems, times_of

TIGHT, ALLOWED = 1e-10, 1e-4
SST_TIMES = 8
"""Times of SST-2: all of its 3.5 million parameters are kept at each."""


@dataclass
class Solved:
    """What a solver of SciPy's found.

    Args:
        values: parameters by time.
        gradients: that it asked for, those of Jacobians not counted.
        jacobians: that it formed.
        seconds: of the processor.
    """

    values: np.ndarray
    gradients: int
    jacobians: int
    seconds: float


def by_scipy(problem: Problem, solver: str, times: np.ndarray, tolerance: float) -> Solved:
    """Solve dθ/dt = -∇L(θ) in double precision from the problem's own start."""
    model, loss = problem.make()
    model = model.double()
    began = time.process_time()
    with flattened(model) as flat:
        out = torch.empty_like(flat.vector)

        def field(_: float, point: np.ndarray) -> np.ndarray:
            flat.vector.copy_(torch.from_numpy(point))
            flat.value_and_gradient(loss, model, out)
            return -out.numpy()

        options: dict[str, Any] = {}
        if solver == "Radau" and problem.hessian is not None:
            options["jac"] = -problem.hessian
        found = solve_ivp(
            field,
            (0.0, float(times[-1])),
            flat.vector.numpy().copy(),
            solver,
            times,
            rtol=tolerance,
            atol=tolerance,
            **options,
        )
        if not found.success:
            raise RuntimeError(f"{solver} at {tolerance:g}: {found.message}")
        values = []
        for point in found.y.T:
            # The flat vector keeps tall matrices by columns.
            flat.vector.copy_(torch.from_numpy(point))
            values.append(parameters(model).numpy())
    return Solved(np.stack(values), found.nfev, found.njev, time.process_time() - began)


def by_flow(problem: Problem, engine: Flow, times: np.ndarray) -> Solved:
    """Solve it as the model is, in its own precision."""
    (model, loss), sink = problem.make(), Memory()
    record = Record((Observable("theta", parameters, ("parameter",)),), Given(tuple(times)))
    began = time.process_time()
    solution = engine.run(model, loss, time=float(times[-1]), record=[record], sink=sink)
    spent = time.process_time() - began
    if solution.failed:
        raise RuntimeError(solution.status)
    # Time 0 is always read.
    return Solved(sink.arrays[0]["theta"][1:], solution.evaluations, 0, spent)


def text() -> Problem:
    """Return Attn-TC on SST-2, 20,000 epochs."""
    words = sst.data()
    objective = BagObjective(words.train)
    return Problem(lambda: (sst.model(words), objective), Flow(until=sst.EPOCHS * sst.LR))


def measure(make: Callable[[], Problem], solver: str, most: int | None = None) -> Measured:
    """Compare a flow at the default tolerance with a solver of SciPy's at 1e-10."""
    problem = make()
    times = times_of(problem.engine)
    if most is not None:
        times = times[np.unique(np.linspace(0, len(times) - 1, most).astype(int))]
    default = Flow(max_steps=problem.engine.max_steps)
    ours = by_flow(problem, default, times)
    exact = by_scipy(problem, solver, times, TIGHT)
    error = np.abs(ours.values - exact.values).max(axis=1)
    jacobians = f", {exact.jacobians} Jacobians" if exact.jacobians else ""
    how = (
        f"largest of {exact.values.shape[1]:,} parameters at {len(times)} times, {error[-1]:.1e} "
        f"at the end; {ours.gradients:,} gradients in {ours.seconds:.1f} s, {solver} "
        f"{exact.gradients:,}{jacobians} in {exact.seconds:.1f} s"
    )
    return Measured(ALLOWED, float(error.max()), how)


def main() -> None:
    """Print what SciPy's solvers need on two sharp problems, and their errors."""
    torch.set_num_threads(1)
    table = Table("problem", "solver", "tolerance", "gradients", "Jacobians", "error")
    for name in sys.argv[1:] or ("song2024.query_only", "song2024.convergence"):
        problem = problems()[name]()
        times = times_of(problem.engine)
        exact = by_scipy(problem, "DOP853", times, TIGHT).values
        solved = [("this flow", "the study's", by_flow(problem, problem.engine, times))]
        solved.append(("this flow", "default", by_flow(problem, Flow(), times)))
        for solver, tolerance in SOLVERS:
            found = by_scipy(problem, solver, times, tolerance)
            solved.append((solver, f"{tolerance:g}", found))
        for solver, said, found in solved:
            error = float(np.abs(found.values - exact).max())
            counts = f"{found.gradients:,}", f"{found.jacobians:,}"
            table.add_row(name, solver, said, *counts, f"{error:.1e}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


SOLVERS = (("RK45", 1e-6), ("DOP853", 1e-6), ("LSODA", 1e-6), ("BDF", 1e-6), ("Radau", 1e-5))
NAMES = (
    ("song2024.convergence", "song2024.convergence, quick", "DOP853"),
    ("song2024.query_only", "song2024.query_only, quick", "DOP853"),
    ("li2023.value", "li2023.value, quick", "DOP853"),
    ("encoder", "nn.TransformerEncoder, GELU, to time 50", "DOP853"),
    ("lu2021.sen-TC", "lu2021.sen, quick, Attn-TC", "DOP853"),
    ("lu2021.sen-FC", "lu2021.sen, quick, Attn-FC", "DOP853"),
    ("quadratic-1e6", "quadratic of condition 1e6, to time 1e6", "Radau"),
)


def row(name: str, what: str, solver: str, work: Callable[[], Measured]) -> Row:
    label = f"flow_accuracy.{name.replace('.', '_').replace('-', '_')}"
    said = f"flow against {solver} at 1e-10, {what}"
    return Row(label, said, "1e-4", "tolerance", work, "parameter")


ROWS = (
    *(
        row(name, what, solver, partial(measure, problems()[name], solver))
        for name, what, solver in NAMES
    ),
    row("sst2", "Attn-TC on SST-2", "DOP853", partial(measure, text, "DOP853", SST_TIMES)),
)


if __name__ == "__main__":
    main()
