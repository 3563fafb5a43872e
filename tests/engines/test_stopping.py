"""Conditions that end a run: where they fire, and what the model holds afterwards."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from toys import Perceptron, Point, flat, quadratic, regression, theta

from attnscope.engines import (
    Attempts,
    Descent,
    Final,
    Flow,
    Linear,
    LossBelow,
    Memory,
    Observable,
    Outcome,
    Patience,
    Reached,
    Record,
)
from attnscope.errors import AttnscopeError

pytestmark = pytest.mark.usefixtures("float64")
ENGINES = pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow()], ids=["descent", "flow"])


def valley(model: nn.Module) -> float:
    """|x - ½|: falls until the flow from 1 passes ½ at time log 2, then rises."""
    return abs(model.get_parameter("x").item() - 0.5)


def test_the_flow_stops_where_the_loss_crosses() -> None:
    sink, model = Memory(), Point(1.0)
    engine = Flow(rtol=1e-9, atol=1e-10)
    # ½ exp(-2t) = 0.1 at t = log(5) / 2.
    solution = engine.run(
        model, quadratic, time=50.0, record=[theta(501)], sink=sink, stop=[LossBelow(0.1)]
    )
    assert solution.outcome is Outcome.STOPPED
    assert quadratic(model).item() == pytest.approx(0.1, abs=1e-6)
    assert solution.time == pytest.approx(math.log(5) / 2, abs=1e-6)
    assert solution.loss == pytest.approx(0.1, abs=1e-6)
    assert f"time {math.log(5) / 2:g}" in solution.status
    assert "fell below 0.1" in solution.status
    reached = np.isfinite(sink.arrays[0]["theta"][:, 0])
    np.testing.assert_array_equal(reached, sink.times[0] <= math.log(5) / 2)


@pytest.mark.parametrize("engine", [Flow(), Flow(lr=0.2, correct=True)], ids=["plain", "correct"])
def test_the_crossing_of_any_loss_is_located(engine: Flow) -> None:
    model = Perceptron()
    value = 0.4 * regression(model).item()
    solution = engine.run(model, regression, time=500.0, record=[], stop=[LossBelow(value)])
    assert solution.outcome is Outcome.STOPPED
    assert regression(model).item() == pytest.approx(value, abs=1e-6)
    assert solution.loss == pytest.approx(value, abs=1e-6)
    again = Perceptron()
    tight = Flow(rtol=1e-9, atol=1e-10, lr=engine.lr, correct=engine.correct)
    finer = tight.run(again, regression, time=500.0, record=[], stop=[LossBelow(value)])
    assert solution.time == pytest.approx(finer.time, rel=1e-4)
    torch.testing.assert_close(flat(model), flat(again), rtol=0, atol=1e-4)
    if not engine.correct:
        at_time = Perceptron()
        tight.run(at_time, regression, time=finer.time, record=[])
        torch.testing.assert_close(flat(again), flat(at_time), rtol=0, atol=1e-7)


def test_descent_stops_at_the_first_step_below() -> None:
    model = Point(1.0)
    # ½ 0.81^k < 0.1 first at k = 8.
    solution = Descent(lr=0.1).run(
        model, quadratic, time=50.0, record=[], stop=[LossBelow(0.1), LossBelow(0.01)]
    )
    assert (solution.outcome, solution.steps) == (Outcome.STOPPED, 8)
    assert solution.loss == pytest.approx(0.5 * 0.81**8)
    assert solution.time == pytest.approx(0.8)
    assert "step 8" in solution.status
    assert model.x.item() == pytest.approx(0.9**8)


@ENGINES
def test_a_loss_below_at_the_start_stops_at_once(engine: Descent | Flow) -> None:
    sink, model = Memory(), Point(1.0)
    solution = engine.run(
        model, quadratic, time=5.0, record=[theta(3)], sink=sink, stop=[LossBelow(0.6)]
    )
    assert (solution.outcome, solution.time, solution.steps) == (Outcome.STOPPED, 0.0, 0)
    assert model.x.item() == 1.0
    assert sink.arrays[0]["theta"][0, 0] == 1.0


@ENGINES
def test_a_loss_never_below_does_not_stop(engine: Descent | Flow) -> None:
    solution = engine.run(
        Point(1.0), quadratic, time=1.0, record=[], stop=[LossBelow(0.0), LossBelow(-1.0)]
    )
    assert solution.outcome is Outcome.FINISHED


@ENGINES
def test_patience_stops_and_restores_the_best(engine: Descent | Flow) -> None:
    model, sink = Point(1.0), Memory()
    patience = Patience(valley, patience=1.0, every=0.1)
    record = Record((Observable("valley", lambda m: torch.tensor(valley(m))),), Linear(201))
    solution = engine.run(model, quadratic, time=20.0, record=[record], sink=sink, stop=[patience])
    looks = np.arange(0, 201) * 0.1
    path = 0.9 ** np.arange(201) if isinstance(engine, Descent) else np.exp(-looks)
    best = int(np.abs(path - 0.5).argmin())
    assert solution.outcome is Outcome.STOPPED
    assert patience.best_time == pytest.approx(looks[best])
    assert patience.best == pytest.approx(abs(path[best] - 0.5), abs=1e-5)
    assert solution.time == pytest.approx(looks[best] + 1.0)
    assert model.x.item() == pytest.approx(path[best], abs=1e-5)
    assert f"time {looks[best] + 1.0:g}" in solution.status
    assert f"reached at time {looks[best]:g}" in solution.status
    reached = np.isfinite(sink.arrays[0]["valley"])
    assert reached.sum() == best + 10 + 1
    assert reached[: best + 11].all()


@ENGINES
def test_without_restoring_the_model_stays_where_it_stopped(engine: Descent | Flow) -> None:
    model = Point(1.0)
    patience = Patience(valley, patience=1.0, every=0.1, restore=False)
    solution = engine.run(model, quadratic, time=20.0, record=[], stop=[patience])
    path = 0.9 ** (solution.time * 10) if isinstance(engine, Descent) else math.exp(-solution.time)
    assert solution.time == pytest.approx(patience.best_time + 1.0)
    assert model.x.item() == pytest.approx(path, abs=1e-5)
    assert solution.loss == pytest.approx(path**2 / 2, abs=1e-5)


@ENGINES
def test_a_measure_that_keeps_falling_does_not_stop(engine: Descent | Flow) -> None:
    model, other = Point(1.0), Point(1.0)
    patience = Patience(quadratic, patience=0.5, every=0.5)
    solution = engine.run(model, quadratic, time=3.0, record=[], stop=[patience])
    engine.run(other, quadratic, time=3.0, record=[])
    assert solution.outcome is Outcome.FINISHED
    assert patience.best_time == pytest.approx(3.0)
    torch.testing.assert_close(flat(model), flat(other), rtol=1e-13, atol=0)


@ENGINES
def test_standing_still_is_not_falling(engine: Descent | Flow) -> None:
    model, patience = Point(1.0), Patience(lambda m: 2.0, patience=0.6, every=0.2)
    solution = engine.run(model, quadratic, time=3.0, record=[], stop=[patience])
    assert solution.outcome is Outcome.STOPPED
    assert solution.time == pytest.approx(0.6)
    assert (patience.best, patience.best_time) == (2.0, 0.0)
    assert model.x.item() == 1.0


@ENGINES
def test_a_condition_can_be_used_again(engine: Descent | Flow) -> None:
    used = Patience(valley, patience=1.0, every=0.1)
    engine.run(Point(0.52), quadratic, time=20.0, record=[], stop=[used])
    ends = []
    for patience in (used, Patience(valley, patience=1.0, every=0.1)):
        model = Point(3.0)
        solution = engine.run(model, quadratic, time=20.0, record=[], stop=[patience])
        ends.append((solution.time, solution.status, model.x.item()))
    assert ends[0] == ends[1]


@ENGINES
def test_the_first_of_two_conditions_ends_the_run(engine: Descent | Flow) -> None:
    conditions = [Patience(valley, patience=1.0, every=0.1), LossBelow(0.4)]
    solution = engine.run(Point(1.0), quadratic, time=20.0, record=[], stop=conditions)
    assert "fell below 0.4" in solution.status
    conditions = [Patience(valley, patience=1.0, every=0.1), LossBelow(1e-3)]
    solution = engine.run(Point(1.0), quadratic, time=20.0, record=[], stop=conditions)
    assert "the measure had not fallen" in solution.status


def test_looks_closer_than_the_learning_rate_are_one_a_step() -> None:
    times = []

    def measure(model: nn.Module) -> float:
        times.append(model.get_parameter("x").item())
        return -len(times)

    Descent(lr=0.1).run(
        Point(1.0), quadratic, time=1.0, record=[], stop=[Patience(measure, 1.0, 0.03)]
    )
    np.testing.assert_allclose(sorted(set(times), reverse=True), 0.9 ** np.arange(11))


@pytest.mark.parametrize(("patience", "every"), [(1.0, 0.0), (1.0, -1.0), (0.5, 1.0)])
def test_patience_must_span_a_look(patience: float, every: float) -> None:
    with pytest.raises(AttnscopeError, match=rf"patience={patience}, every={every}\): expected"):
        Patience(valley, patience=patience, every=every)


@ENGINES
def test_the_final_reading_is_of_the_best_parameters(engine: Descent | Flow) -> None:
    sink, model = Memory(), Point(1.0)
    at = Observable("x", lambda m: m.get_parameter("x"), ("parameter",))
    stop = Patience(valley, patience=0.5, every=0.1)
    best = Observable("best", lambda _: torch.tensor(stop.best_time))
    solution = engine.run(
        model,
        quadratic,
        time=50.0,
        record=[Record((at, best), Final(), dim="end")],
        stop=[stop],
        sink=sink,
    )
    assert solution.outcome is Outcome.STOPPED
    np.testing.assert_array_equal(sink.times[0], [0.0, 50.0])
    start, end = sink.arrays[0]["x"][:, 0]
    assert start == 1.0
    assert end == model.x.item()
    assert end == pytest.approx(0.5, abs=0.03)
    assert sink.arrays[0]["best"][1] == stop.best_time == pytest.approx(0.7, abs=0.11)


@ENGINES
def test_the_final_reading_of_a_run_that_is_not_stopped_is_its_end(engine: Descent | Flow) -> None:
    sink, model = Memory(), Point(1.0)
    at = Observable("x", lambda m: m.get_parameter("x"), ("parameter",))
    record = [Record((at,), Final(), dim="end"), theta(3)]
    engine.run(model, quadratic, time=2.0, record=record, sink=sink)
    assert sink.arrays[0]["x"][1, 0] == model.x.item()
    assert sink.arrays[1]["theta"][2, 0] == pytest.approx(model.x.item(), rel=1e-12)


def test_a_flow_that_would_go_on_for_ever_is_stopped_as_a_result() -> None:
    model = torch.nn.ParameterDict({"x": torch.tensor(1.0, dtype=torch.float64)})
    solution = Flow(method="dormand-prince").run(
        model,
        lambda m: 50 * m.x**2,
        time=1e9,
        record=[],
        stop=[Attempts(40, "it came to rest")],
    )
    assert solution.outcome is Outcome.STOPPED
    assert solution.status.endswith("after 40 attempted steps: it came to rest")
    assert solution.steps + solution.rejected == 40
    assert abs(model.x.item()) < 1


def test_attempts_below_one() -> None:
    with pytest.raises(AttnscopeError, match="expected 1 step or more"):
        Attempts(0)


def both(model: nn.Module) -> torch.Tensor:
    """The quadratic's value and the norm of its gradient."""
    with torch.enable_grad():
        value = quadratic(model)
        (slope,) = torch.autograd.grad(value, [model.get_parameter("x")])
    return torch.stack([value.detach(), slope.norm()])


@ENGINES
def test_a_run_ends_when_all_targets_are_reached(engine: Descent | Flow) -> None:
    model = Point(1.0)
    # ½ x² <= 0.02 at x = 0.2, but the gradient x <= 0.1 is later.
    stop = Reached(both, {"loss": 0.02, "gradient norm": 0.1}, every=0.1)
    solution = engine.run(model, quadratic, time=50.0, record=[], stop=[stop])
    assert solution.outcome is Outcome.STOPPED
    assert 0.08 < model.x.item() <= 0.1
    assert "loss 0.00" in solution.status
    assert "(target 0.02), gradient norm 0.09" in solution.status


@ENGINES
def test_targets_that_are_never_reached_are_said(engine: Descent | Flow) -> None:
    model = Point(1.0)
    stop = Reached(both, {"loss": 1e-9, "gradient norm": 0.5}, every=0.1)
    solution = engine.run(model, quadratic, time=1.0, record=[], stop=[stop])
    assert solution.outcome is Outcome.FINISHED
    assert not solution.failed
    assert "before its targets were reached: loss 0.06" in solution.status
    assert "(target 1e-09)" in solution.status


def test_looks_before_the_second_stage_do_not_count() -> None:
    model = Point(0.01)
    stop = Reached(both, {"loss": 1.0, "gradient norm": 1.0}, every=0.1, after=0.5)
    solution = Descent(lr=0.1).run(model, quadratic, time=2.0, record=[], stop=[stop])
    assert solution.time == pytest.approx(0.5)


def test_what_is_not_a_number_reaches_nothing() -> None:
    stop = Reached(lambda _: torch.tensor([math.nan, 0.0]), {"loss": 1.0, "norm": 1.0}, every=0.1)
    assert stop.evaluate(0.0, Point(1.0)) is None


@pytest.mark.parametrize("targets", [{}, {"loss": 0.0}, {"loss": math.nan}, {"loss": math.inf}])
def test_targets_that_are_none_get_a_sentence(targets: dict[str, float]) -> None:
    with pytest.raises(AttnscopeError, match=r"Reached\(targets=.*expected finite numbers above 0"):
        Reached(both, targets, every=1.0)
    with pytest.raises(AttnscopeError, match=r"Reached\(every=0\.0\)"):
        Reached(both, {"loss": 1.0}, every=0.0)
