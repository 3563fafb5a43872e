"""How many gradients a flow takes: as it chooses its method, against Dormand and Prince's pair."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from attnscope.catalogue import load
from attnscope.engines import Flow, Solution
from attnscope.engines.parameters import Loss
from harness import Measured, Row
from stiffness import Encoder

CONDITION = 1e6

Start = Callable[[], tuple[nn.Module, Loss]]


class Quadratic(nn.Module):
    """½ Σ λ θ², with eigenvalues λ from 1 down to 1/κ in constant ratio, all θ = 1 at the start."""

    def __init__(self, dimension: int = 64) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.ones(dimension, dtype=torch.float64))
        eigenvalues = torch.logspace(0, -torch.log10(torch.tensor(CONDITION)), dimension)
        self.register_buffer("eigenvalues", eigenvalues.double())

    def forward(self) -> Tensor:
        """Return the loss."""
        assert isinstance(self.eigenvalues, Tensor)
        return 0.5 * (self.eigenvalues * self.theta.square()).sum()


def call(model: nn.Module) -> Tensor:
    """Return the loss that a model computes by itself."""
    loss: Tensor = model()
    return loss


def counted(start: Start, engine: Flow, until: float) -> tuple[Solution, float]:
    """Run a flow; return its solution and its processor time."""
    model, loss = start()
    began = time.process_time()
    solution = engine.run(model, loss, time=until, record=[])
    return solution, time.process_time() - began


def compare(start: Start, engine: Flow, until: float, explicit_until: float = 0.0) -> Measured:
    """Count gradients of the flow as it is, and of Dormand and Prince's pair alone.

    Where the pair would take hours it is followed to ``explicit_until``: there its steps have been
    as long as they ever get, so its count grows in proportion to time.
    """
    pair = replace(engine, method="dormand-prince")
    ours, seconds = counted(start, engine, until)
    stop = explicit_until or until
    theirs, others = counted(start, pair, stop)
    reference = theirs.evaluations * until / stop
    how = (
        f"{ours.evaluations:,} gradients in {seconds:.2f} s, loss {ours.loss:.6g}; the pair "
        f"{theirs.evaluations:,} to time {stop:g} in {others:.2f} s, loss {theirs.loss:.6g}"
    )
    if ours.failed or theirs.failed:
        how += f"; {ours.status}; {theirs.status}"
    return Measured(reference, ours.evaluations, how)


def study(name: str, case: str = "") -> Measured:
    """Follow a run of a study at its quick scale, of the first case unless it is given."""
    chosen = load(name).at("quick")
    case = case or chosen.cases[0]
    engine = chosen.engine(case, 0)

    def start() -> tuple[nn.Module, Loss]:
        problem = chosen.build(case, 0)
        return problem.model, problem.loss

    return compare(start, engine, chosen.end)


def made(kind: type[nn.Module]) -> tuple[nn.Module, Loss]:
    return kind(), call


COUNT = "number of gradients"
PAIR = "Dormand-Prince alone"


def row(name: str, what: str, measure: Callable[[], Measured]) -> Row:
    return Row(f"flow_gradients.{name}", what, PAIR, COUNT, measure, "gradients")


ROWS = (
    row(
        "song2024_convergence",
        "song2024.convergence, quick",
        partial(study, "song2024.convergence"),
    ),
    row("li2023_value", "li2023.value, quick", partial(study, "li2023.value")),
    row("song2024_query_only", "song2024.query_only, quick", partial(study, "song2024.query_only")),
    row("lu2021_fc", "lu2021.sen, quick, Attn-FC", partial(study, "lu2021.sen", "FC")),
    row("lu2021_tc", "lu2021.sen, quick, Attn-TC", partial(study, "lu2021.sen", "TC")),
    row(
        "encoder",
        "nn.TransformerEncoder, GELU, to time 50",
        lambda: compare(partial(made, Encoder), Flow(), 50.0),
    ),
    row(
        "quadratic",
        "quadratic of condition 1e6, to time 1e6",
        lambda: compare(partial(made, Quadratic), Flow(), CONDITION, 3000.0),
    ),
)
