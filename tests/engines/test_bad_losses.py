"""Losses and models that no engine can follow are refused in a sentence, early."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import Point, flat

from attnscope import train
from attnscope.engines import Adam, Descent, Flow, Linear, Observable, Outcome, Record
from attnscope.engines import parameters as parameters_module
from attnscope.errors import AttnscopeError

pytestmark = pytest.mark.usefixtures("float64")

ENGINES = [Flow(), Flow(lr=0.1), Flow(method="chebyshev"), Descent(lr=0.1)]


def root(model: nn.Module) -> Tensor:
    """Finite everywhere, and its gradient is NaN where an entry is 0: 0·∞ of a masked root."""
    x = model.get_parameter("x")
    return torch.where(x > 0, x.sqrt(), torch.zeros_like(x)).sum()


@pytest.mark.parametrize("engine", [Flow(), Flow(lr=0.1), Flow(method="chebyshev")])
def test_a_gradient_that_is_not_finite_at_the_start_is_refused(engine: Flow) -> None:
    model = Point(1.0, 0.0)
    with pytest.raises(AttnscopeError, match=r"gradient by 'x' is not finite"):
        engine.run(model, root, time=1.0, record=[])
    assert torch.equal(model.x.detach(), torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize("engine", [Descent(lr=0.1), Adam(rate=0.1, steps=5)])
def test_descent_leaves_the_weights_as_they_were_before(engine: Descent | Adam) -> None:
    model = Point(1.0, 0.0)
    solution = engine.run(model, root, time=1.0, record=[])
    assert solution.outcome is Outcome.DIVERGED
    assert "gradient not finite" in solution.status
    assert torch.equal(model.x.detach(), torch.tensor([1.0, 0.0]))


def test_a_gradient_that_breaks_down_on_the_way_ends_the_run() -> None:
    def cliff(model: nn.Module) -> Tensor:
        x = model.get_parameter("x")
        return x.sum() if float(x.detach()) > 0.5 else (x + 0 * (x - x).sqrt()).sum()

    model = Point(1.0)
    solution = Flow(max_steps=500).run(model, cliff, time=2.0, record=[])
    assert solution.outcome is Outcome.DIVERGED
    assert "the gradient by 'x' was not finite" in solution.status
    assert float(model.x.detach()) == pytest.approx(0.5, abs=1e-6)


class Noisy(nn.Module):
    """A line behind dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.ones(50))
        self.drop = nn.Dropout(0.5)

    def forward(self) -> Tensor:
        return 0.5 * self.drop(self.x).square().sum()


@pytest.mark.parametrize("engine", [Flow(), Flow(lr=0.1), Flow(method="chebyshev")])
def test_dropout_is_said_at_the_second_evaluation_with_the_way_out(engine: Flow) -> None:
    calls = []

    def loss(model: nn.Module) -> Tensor:
        calls.append(1)
        out: Tensor = model()
        return out

    with pytest.raises(AttnscopeError, match=r"without randomness.*model\.eval\(\)"):
        engine.run(Noisy(), loss, time=1.0, record=[])
    assert len(calls) == 2
    assert not engine.run(Noisy().eval(), loss, time=1.0, record=[]).failed


@pytest.mark.parametrize("engine", [Flow(), Flow(lr=0.1)])
def test_randomness_of_other_sources_is_said_too(engine: Flow) -> None:
    dice = torch.Generator().manual_seed(0)

    def loss(model: nn.Module) -> Tensor:
        x = model.get_parameter("x")
        return 0.5 * (x * torch.randn(len(x), generator=dice)).square().sum()

    with pytest.raises(AttnscopeError, match="without randomness"):
        engine.run(Point(*([1.0] * 20)), loss, time=50.0, record=[])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision_is_refused(engine: Flow | Descent, kind: torch.dtype) -> None:
    with pytest.raises(AttnscopeError, match=rf"parameters of {kind}: expected torch\.float32"):
        engine.run(Point(1.0).to(kind), lambda m: m.x.sum(), time=1.0, record=[])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_for_a_tensor_and_a_record_for_a_list_are_refused(engine: Flow | Descent) -> None:
    number = Record((Observable("half", lambda m: 0.5),), Linear(3))  # type: ignore[arg-type,return-value]
    with pytest.raises(AttnscopeError, match=r"observable 'half' returned 0\.5: expected a tensor"):
        engine.run(Point(1.0), lambda m: m.x.square().sum(), time=1.0, record=[number])
    with pytest.raises(AttnscopeError, match="expected a list of records"):
        engine.run(Point(1.0), lambda m: m.x.square().sum(), time=1.0, record=number)  # type: ignore[arg-type]


def test_train_warns_of_a_run_that_broke_down() -> None:
    with pytest.warns(RuntimeWarning, match="diverged at step"):
        train(Point(1.0), lambda m: m.x.pow(4).sum(), Descent(lr=10.0), time=100.0, record=[])


class Normalised(nn.Module):
    """Batch normalisation, whose statistics move whenever it is called."""

    def __init__(self) -> None:
        super().__init__()
        source = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(20, 3, generator=source)
        self.line = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        nn.init.normal_(self.line.weight, generator=source)

    def forward(self) -> Tensor:
        out: Tensor = (self.norm(self.line(self.inputs)) - 1).square().mean()
        return out


@pytest.mark.parametrize("method", ["dormand-prince", "chebyshev"])
def test_statistics_of_batch_normalisation_count_points_that_were_kept(method: str) -> None:
    model = Normalised()
    solution = Flow(method=method).run(model, lambda m: m(), time=5.0, record=[])  # type: ignore[arg-type]
    assert model.norm.num_batches_tracked is not None
    assert int(model.norm.num_batches_tracked) == solution.steps + 1
    assert solution.evaluations > 4 * solution.steps


def test_a_flow_that_does_not_fit_in_memory_is_refused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parameters_module, "free_memory", lambda: 1e6)
    with pytest.raises(AttnscopeError, match=r"100,000 parameters .* GB are free"):
        Flow().run(Point(*([0.0] * 100_000)), lambda m: m.x.sum(), time=1.0, record=[])
    model = Point(1.0, 2.0)
    Flow().run(model, lambda m: m.x.square().sum(), time=1.0, record=[])
    assert flat(model)[0] < 1


def test_kinks_are_reported() -> None:
    def valley(model: nn.Module) -> Tensor:
        x, y = model.get_parameter("x")
        return x.abs() + y * y / 20

    solution = Flow(lr=0.05).run(Point(1.0, 2.0), valley, time=10.0, record=[])
    assert solution.kinks > 0
    # The slope along x jumps from 1 to -1: half of 0.05 times 2.
    assert solution.plain_error == pytest.approx(0.05)
    assert "plain steps of it at kinks, each within 0.05 of the flow" in solution.status
    creeping = Flow(max_steps=300).run(Point(1.0, 2.0), valley, time=10.0, record=[])
    assert "kinks of the loss; expected a smooth loss, or lr" in creeping.status


@pytest.mark.parametrize("method", ["dormand-prince", "chebyshev", None])
def test_negative_curvature_everywhere_gets_a_sentence(method: Any) -> None:
    def hill(model: nn.Module) -> Tensor:
        return -0.5 * model.get_parameter("x").square().sum()

    solution = Flow(method=method).run(Point(1e-3, 2e-3), hill, time=1e4, record=[])
    assert solution.outcome is Outcome.DIVERGED
    assert solution.status.startswith("broke down at time ")
    assert solution.status.endswith(
        "expected a loss that has a lower bound, and this one falls for ever"
    )
    top = Flow(method=method).run(Point(0.0, 0.0), hill, time=5.0, record=[])
    assert top.status.startswith("finished at time 5; the gradient is zero at the start")
    slope = Flow(method=method).run(Point(1.0), lambda m: m.x.square().sum(), time=1.0, record=[])
    assert slope.status == "finished at time 1"
    # A bottom that was reached is no start.
    down = Flow(method=method).run(Point(1.0), lambda m: m.x.square().sum(), time=1e3, record=[])
    assert down.status == "finished at time 1000"


def test_ten_million_parameters_are_weighed_before_anything_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parameters_module, "free_memory", lambda: 4e8)
    model = Point(0.0)
    # An expanded tensor has ten million entries and the memory of one.
    model.x = nn.Parameter(torch.zeros(1, dtype=torch.float32).expand(10**7))

    def loss(_: nn.Module) -> Tensor:
        raise AssertionError("the loss was evaluated")

    expected = r"10,000,000 parameters of Point holds 14 vectors .* 0\.56 GB, and 0\.4 GB are free"
    with pytest.raises(AttnscopeError, match=expected):
        Flow().run(model, loss, time=1.0, record=[])
