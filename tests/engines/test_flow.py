"""Flow against SciPy's DOP853 and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from torch import Tensor, nn
from toys import (
    CURVATURE,
    Perceptron,
    Point,
    attention,
    flat,
    quadratic,
    regression,
    slope_of_exp,
    theta,
    theta_at,
    topic_loss,
)

from attnscope.engines import Descent, Flow, Memory, Observable, Outcome, Record
from attnscope.engines.observe import Linear
from attnscope.errors import AttnscopeError
from attnscope.tasks import Bags, TopicWordsData

pytestmark = pytest.mark.usefixtures("float64")


def reference(model: nn.Module, loss: object, times: np.ndarray) -> np.ndarray:
    """Solve the flow with DOP853 at 1e-10, through autograd and nothing of the engine."""
    trained = [p for p in model.parameters() if p.requires_grad]

    def slope(_: float, point: np.ndarray) -> np.ndarray:
        start = 0
        with torch.no_grad():
            for p in trained:
                p.copy_(torch.from_numpy(point[start : start + p.numel()]).view_as(p))
                start += p.numel()
        grads = torch.autograd.grad(loss(model), trained, allow_unused=True)  # type: ignore[operator]
        parts = [
            torch.zeros_like(p) if g is None else g for p, g in zip(trained, grads, strict=True)
        ]
        return -torch.cat([part.reshape(-1) for part in parts]).numpy()

    found = solve_ivp(
        slope,
        (0.0, times[-1]),
        flat(model).numpy(),
        method="DOP853",
        t_eval=times,
        rtol=1e-10,
        atol=1e-10,
    )
    assert found.success
    return np.asarray(found.y.T)


@pytest.mark.parametrize("kind", ["FC", "TC"])
@pytest.mark.parametrize(
    ("engine", "tolerance"), [(Flow(), 1e-4), (Flow(rtol=1e-9, atol=1e-10), 1e-7)]
)
def test_the_topic_task_flows_as_scipy_says(
    tiny: TopicWordsData, kind: str, engine: Flow, tolerance: float
) -> None:
    loss, sink = topic_loss(tiny.train), Memory()
    model = attention(tiny.train, kind)
    solution = engine.run(model, loss, time=60.0, record=[theta(41)], sink=sink)
    assert solution.outcome is Outcome.FINISHED
    expected = reference(attention(tiny.train, kind), loss, sink.times[0])
    found = sink.arrays[0]["theta"]
    assert np.abs(expected[-1] - expected[0]).max() > 1
    assert np.abs(found - expected).max() < tolerance
    np.testing.assert_allclose(flat(model).numpy(), found[-1], rtol=0, atol=1e-13)
    assert solution.loss == pytest.approx(loss(model).item(), rel=1e-12)


def test_any_module_flows_as_scipy_says() -> None:
    sink, model = Memory(), Perceptron()
    Flow(rtol=1e-9, atol=1e-10).run(model, regression, time=8.0, record=[theta(9)], sink=sink)
    expected = reference(Perceptron(), regression, sink.times[0])
    assert np.abs(sink.arrays[0]["theta"] - expected).max() < 1e-7
    assert torch.equal(model.unused.detach(), torch.ones(2))
    assert torch.equal(model.offset.detach(), torch.full((3,), 0.3))
    assert model.again.weight is model.first.weight


def test_record_points_lie_on_the_closed_form() -> None:
    sink, model = Memory(), Point(1.0, -2.0, 0.5)
    times = (0.01, 0.5, 1.0, 1.7, 10.0)
    Flow(rtol=1e-8, atol=1e-9).run(
        model, quadratic, time=10.0, record=[theta_at(*times)], sink=sink
    )
    at = torch.tensor((0.0, *times))[:, None]
    expected = torch.tensor([1.0, -2.0, 0.5]) * torch.exp(-CURVATURE * at)
    np.testing.assert_allclose(sink.arrays[0]["theta"], expected.numpy(), rtol=0, atol=1e-7)


def test_the_error_is_proportional_to_the_tolerance() -> None:
    tolerances, errors = [1e-4, 1e-6, 1e-8], []
    for tolerance in tolerances:
        sink = Memory()
        Flow(rtol=tolerance, atol=tolerance).run(
            Point(1.0, -2.0, 0.5), slope_of_exp, time=20.0, record=[theta(50)], sink=sink
        )
        at = torch.from_numpy(sink.times[0])[:, None]
        exact = torch.log(at + torch.exp(torch.tensor([1.0, -2.0, 0.5]))).numpy()
        errors.append(np.abs(sink.arrays[0]["theta"] - exact).max())
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert slope == pytest.approx(1, abs=0.25)
    assert all(error < 10 * tolerance for error, tolerance in zip(errors, tolerances, strict=True))


def test_readings_do_not_depend_on_which_others_are_taken() -> None:
    few, many = Memory(), Memory()
    engine = Flow()
    one, other = Perceptron(), Perceptron()
    engine.run(one, regression, time=5.0, record=[theta_at(2.5, 5.0)], sink=few)
    fine = Record((Observable("loss", regression),), Linear(333), dim="fine")
    engine.run(other, regression, time=5.0, record=[fine, theta(5)], sink=many)
    np.testing.assert_array_equal(few.arrays[0]["theta"][1:], many.arrays[1]["theta"][[2, 4]])
    assert torch.equal(flat(one), flat(other))


def test_the_loss_never_rises_along_the_flow(tiny: TopicWordsData) -> None:
    sink, loss = Memory(), topic_loss(tiny.train)
    record = Record((Observable("loss", loss),), Linear(200))
    Flow(rtol=1e-8, atol=1e-9).run(
        attention(tiny.train), loss, time=50.0, record=[record], sink=sink
    )
    assert (np.diff(sink.arrays[0]["loss"]) < 0).all()


@given(st.permutations(range(15)))
def test_renaming_words_renames_the_trajectory(tiny: TopicWordsData, order: list[int]) -> None:
    bags, new = tiny.train, torch.tensor(order)
    renamed = Bags(new[bags.ids], bags.labels, bags.vocabulary)
    one, other = attention(bags), attention(renamed)
    with torch.no_grad():
        other.embedding[new] = one.embedding.clone()
    record = Record((Observable("s", lambda m: m.scores().detach()),), Linear(6))  # type: ignore[operator]
    sinks = [Memory(), Memory()]
    for model, data, sink in zip((one, other), (bags, renamed), sinks, strict=True):
        Flow().run(model, topic_loss(data), time=20.0, record=[record], sink=sink)
    left, right = (sink.arrays[0]["s"] for sink in sinks)
    np.testing.assert_allclose(right[:, order], left, rtol=1e-9, atol=1e-11)


def test_single_precision_models_flow_too(tiny: TopicWordsData) -> None:
    loss = topic_loss(tiny.train)
    double, single = attention(tiny.train), attention(tiny.train).float()
    Flow().run(double, loss, time=30.0, record=[])
    Flow().run(single, loss, time=30.0, record=[])
    assert single.embedding.dtype == torch.float32
    torch.testing.assert_close(flat(single).double(), flat(double), rtol=0, atol=2e-4)


def test_a_loss_that_is_not_a_number_at_the_start_is_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"the loss is nan at time 0"):
        Flow().run(Point(1.0), lambda m: m.x.sum() * torch.nan, time=1.0, record=[])  # type: ignore[operator,union-attr]


def test_a_loss_that_breaks_down_on_the_way_keeps_the_readings_before() -> None:
    def loss(model: nn.Module) -> Tensor:
        x = model.get_parameter("x")
        return (x + torch.log(x - 0.5) * 0).sum()

    sink, model = Memory(), Point(1.0)
    solution = Flow().run(model, loss, time=2.0, record=[theta(21)], sink=sink)
    assert solution.outcome is Outcome.DIVERGED
    assert solution.failed
    assert solution.time == pytest.approx(0.5, abs=1e-6)
    assert f"{solution.time:g}" in solution.status
    assert "expected finite numbers" in solution.status
    readings = sink.arrays[0]["theta"][:, 0]
    np.testing.assert_allclose(readings[:5], 1 - sink.times[0][:5], rtol=0, atol=1e-9)
    assert np.isnan(readings[6:]).all()
    assert float(model.x.detach()) == pytest.approx(0.5, abs=1e-6)


def test_too_few_steps_exhaust_the_run() -> None:
    solution = Flow(max_steps=3).run(Perceptron(), regression, time=1e4, record=[])
    assert solution.outcome is Outcome.EXHAUSTED
    assert solution.failed
    assert solution.steps + solution.rejected == 3
    assert "max_steps = 3" in solution.status


def test_a_corrected_flow_without_a_learning_rate_is_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"correct = True without lr"):
        Flow(correct=True)


@pytest.mark.parametrize(("name", "value"), [("rtol", 0.0), ("atol", -1.0), ("lr", 0.0)])
def test_numbers_that_must_be_positive_are_checked(name: str, value: float) -> None:
    with pytest.raises(AttnscopeError, match=rf"{name} = {value}: expected"):
        Flow(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("time", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_must_last(time: float) -> None:
    with pytest.raises(AttnscopeError, match=rf"time = {time}"):
        Flow().run(Point(1.0), quadratic, time=time, record=[])


def test_far_fewer_gradients_than_descent(tiny: TopicWordsData) -> None:
    loss = topic_loss(tiny.train)
    flow = Flow().run(attention(tiny.train), loss, time=100.0, record=[])
    descent = Descent(lr=0.1).run(attention(tiny.train), loss, time=100.0, record=[])
    assert flow.evaluations < descent.evaluations / 2
    assert flow.loss == pytest.approx(descent.loss, rel=0.02)
