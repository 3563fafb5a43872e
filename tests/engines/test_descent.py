"""Descent against plain PyTorch loops, and what happens when it goes wrong."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from toys import (
    CURVATURE,
    Perceptron,
    Point,
    attention,
    flat,
    quadratic,
    regression,
    theta,
    topic_loss,
)

from attnscope.engines import Descent, Linear, Memory, Observable, Outcome, Record
from attnscope.errors import AttnscopeError
from attnscope.tasks import Bags, TopicWordsData

pytestmark = pytest.mark.usefixtures("float64")


def by_hand(model: nn.Module, loss: Any, optimizer: torch.optim.Optimizer, steps: int) -> Tensor:
    """Return the parameters before every step and after the last."""
    path = [flat(model)]
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
        path.append(flat(model))
    return torch.stack(path)


def trained(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def test_gradient_descent_is_pytorchs(tiny: TopicWordsData) -> None:
    loss = topic_loss(tiny.train)
    model, other = attention(tiny.train, "TL"), attention(tiny.train, "TL")
    sink = Memory()
    solution = Descent(lr=0.3).run(model, loss, time=0.3 * 60, record=[theta(61)], sink=sink)
    expected = by_hand(other, loss, torch.optim.SGD(trained(other), lr=0.3), 60)
    assert solution.outcome is Outcome.FINISHED
    assert (solution.steps, solution.time) == (60, pytest.approx(18.0))
    assert solution.loss == pytest.approx(loss(other).item(), rel=1e-12)
    assert float((expected[-1] - expected[0]).abs().max()) > 0.1
    np.testing.assert_allclose(sink.arrays[0]["theta"], expected.numpy(), rtol=0, atol=1e-12)
    torch.testing.assert_close(flat(model), expected[-1], rtol=0, atol=1e-12)


def test_adam_is_pytorchs() -> None:
    model, other, sink = Perceptron(), Perceptron(), Memory()
    engine = Descent(lr=0.02, optimizer="adam")
    engine.run(model, regression, time=0.02 * 50, record=[theta(51)], sink=sink)
    expected = by_hand(other, regression, torch.optim.Adam(trained(other), lr=0.02), 50)
    np.testing.assert_allclose(sink.arrays[0]["theta"], expected.numpy(), rtol=0, atol=1e-14)
    assert float((expected[-1] - expected[0]).abs().max()) > 0.1


def test_gradient_descent_on_a_quadratic_is_a_geometric_sequence() -> None:
    sink = Memory()
    Descent(lr=0.5).run(Point(1.0, -2.0, 0.5), quadratic, time=10.0, record=[theta(21)], sink=sink)
    steps = torch.arange(21)[:, None]
    expected = torch.tensor([1.0, -2.0, 0.5]) * (1 - 0.5 * CURVATURE) ** steps
    np.testing.assert_allclose(sink.arrays[0]["theta"], expected.numpy(), rtol=1e-13)


def test_the_users_module_gets_its_parameters_back() -> None:
    model = Perceptron()
    before = dict(model.named_parameters())
    storage = {name: p.data_ptr() for name, p in before.items()}
    Descent(lr=0.1).run(model, regression, time=1.0, record=[])
    after = dict(model.named_parameters())
    assert all(after[name] is before[name] for name in before)
    assert {name: p.data_ptr() for name, p in after.items()} == storage
    assert model.again.weight is model.first.weight
    assert torch.equal(model.unused.detach(), torch.ones(2))
    assert torch.equal(model.offset.detach(), torch.full((3,), 0.3))


@pytest.mark.parametrize("size", [1, 4, 5, 12])
def test_minibatches_visit_every_row_once_an_epoch(size: int) -> None:
    seen: list[list[int]] = []

    def loss(model: nn.Module, rows: Tensor) -> Tensor:
        seen.append(rows.tolist())
        return regression(model, rows)

    epoch = math.ceil(12 / size)
    engine = Descent(lr=0.1, batch_size=size, samples=12, seed=3)
    engine.run(Perceptron(), loss, time=0.1 * 3 * epoch, record=[])
    epochs = [list(itertools.chain(*seen[i * epoch : (i + 1) * epoch])) for i in range(3)]
    for rows in epochs:
        assert sorted(rows) == list(range(12))
    assert epochs[0] != epochs[1]
    assert all(len(rows) <= size for rows in seen)


def test_minibatches_follow_their_seed_and_not_the_global_one() -> None:
    def end(seed: int, global_seed: int) -> Tensor:
        torch.manual_seed(global_seed)
        model = Perceptron()
        engine = Descent(lr=0.1, batch_size=5, samples=12, seed=seed)
        engine.run(model, regression, time=1.0, record=[])
        return flat(model)

    assert torch.equal(end(1, 0), end(1, 9))
    assert not torch.equal(end(1, 0), end(2, 0))


def test_a_minibatch_step_is_a_step_on_its_rows() -> None:
    taken: list[Tensor] = []

    def loss(model: nn.Module, rows: Tensor) -> Tensor:
        taken.append(rows.clone())
        return regression(model, rows)

    model, other = Perceptron(), Perceptron()
    Descent(lr=0.2, batch_size=5, samples=12).run(model, loss, time=1.4, record=[])
    optimizer = torch.optim.SGD(trained(other), lr=0.2)
    for rows in taken[:7]:
        optimizer.zero_grad()
        regression(other, rows).backward()
        optimizer.step()
    torch.testing.assert_close(flat(model), flat(other), rtol=0, atol=1e-13)


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
        Descent(lr=0.5).run(model, topic_loss(data), time=10.0, record=[record], sink=sink)
    left, right = (sink.arrays[0]["s"] for sink in sinks)
    np.testing.assert_allclose(right[:, order], left, rtol=1e-10, atol=1e-12)


def test_too_large_a_learning_rate_is_named_and_readings_before_are_kept() -> None:
    sink = Memory()
    engine = Descent(lr=4.0)
    # x ← (1 - 4) x: the loss ½ 9^k passes 1e8 at k = 9.
    solution = engine.run(Point(1.0), quadratic, time=80.0, record=[theta(21)], sink=sink)
    assert solution.outcome is Outcome.DIVERGED
    assert solution.failed
    assert solution.steps == 9
    assert solution.loss == pytest.approx(0.5 * 9.0**9)
    for part in ("step 9", "time 36", f"{0.5 * 9.0**9:.6g}", "lr = 4"):
        assert part in solution.status
    readings = sink.arrays[0]["theta"][:, 0]
    np.testing.assert_allclose(readings[:9], (-3.0) ** np.arange(9))
    assert np.isnan(readings[9:]).all()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_at_the_start_is_refused(value: float) -> None:
    model = Point(1.0)
    with pytest.raises(AttnscopeError, match=rf"the loss is {value} at step 0: expected"):
        Descent().run(model, lambda m: m.x.sum() * value, time=1.0, record=[])  # type: ignore[operator,union-attr]
    assert model.x.detach().tolist() == [1.0]


def test_a_loss_that_is_not_a_number_later_is_a_divergence() -> None:
    calls = 0

    def loss(model: nn.Module) -> Tensor:
        nonlocal calls
        calls += 1
        return quadratic(model) * (math.nan if calls == 4 else 1.0)

    sink = Memory()
    solution = Descent(lr=0.1).run(Point(1.0), loss, time=1.0, record=[theta(11)], sink=sink)
    assert solution.outcome is Outcome.DIVERGED
    assert solution.steps == 3
    assert "step 3" in solution.status
    assert "nan" in solution.status
    np.testing.assert_allclose(sink.arrays[0]["theta"][:3, 0], 0.9 ** np.arange(3))
    assert np.isnan(sink.arrays[0]["theta"][3:]).all()


@pytest.mark.parametrize("lr", [0.0, -0.1, math.nan, math.inf])
def test_a_learning_rate_must_be_positive(lr: float) -> None:
    with pytest.raises(AttnscopeError, match=rf"lr = {lr}: expected a finite number above 0"):
        Descent(lr=lr)


def test_a_run_must_have_room_for_a_step() -> None:
    with pytest.raises(AttnscopeError, match=r"time = 0.01 with steps of 0.1: expected room"):
        Descent(lr=0.1).run(Point(1.0), quadratic, time=0.01, record=[])


@pytest.mark.parametrize("time", [0.0, -3.0, math.nan, math.inf])
def test_a_run_must_end_after_it_begins(time: float) -> None:
    with pytest.raises(AttnscopeError, match=rf"time = {time}: expected a finite end"):
        Descent(lr=0.1).run(Point(1.0), quadratic, time=time, record=[])


def test_minibatches_need_the_number_of_rows() -> None:
    with pytest.raises(AttnscopeError, match=r"batch_size = 8 without samples: expected"):
        Descent(batch_size=8)


@pytest.mark.parametrize("size", [0, -1, 13])
def test_a_minibatch_must_fit(size: int) -> None:
    with pytest.raises(AttnscopeError, match=rf"batch_size = {size}: expected 1 to samples = 12"):
        Descent(batch_size=size, samples=12)


def test_a_tick_changes_the_axis_and_nothing_else() -> None:
    runs = []
    for engine, time in ((Descent(lr=0.25), 5.0), (Descent(lr=0.25, tick=1.0), 20.0)):
        sink, model = Memory(), Perceptron()
        solution = engine.run(model, regression, time=time, record=[theta(6)], sink=sink)
        runs.append((sink, solution))
    (plain, first), (ticking, second) = runs
    np.testing.assert_array_equal(plain.arrays[0]["theta"], ticking.arrays[0]["theta"])
    np.testing.assert_allclose(plain.times[0] * 4, ticking.times[0])
    assert (first.steps, first.time) == (20, 5.0)
    assert (second.steps, second.time) == (20, 20.0)


def test_a_tick_of_nothing_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="tick = 0"):
        Descent(tick=0)


def test_rows_are_handed_out_in_order_when_they_are_not_shuffled() -> None:
    seen: list[list[int]] = []

    def loss(model: nn.Module, rows: Tensor) -> Tensor:
        seen.append(rows.tolist())
        return model.weight.square().sum()

    model = nn.Linear(2, 1, bias=False)
    engine = Descent(lr=0.1, batch_size=2, samples=5, shuffle=False)
    engine.run(model, loss, time=0.4, record=[])
    assert seen == [[0, 1], [2, 3], [4], [0, 1], [2, 3]]


def test_the_fused_adam_takes_the_steps_of_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for many in (10**9, 1):
        monkeypatch.setattr("attnscope.engines.descent.MANY", many)
        torch.manual_seed(0)
        model = nn.Linear(3, 2).double()
        x = torch.randn(7, 3, dtype=torch.float64)
        Descent(lr=0.01, optimizer="adam").run(
            model, lambda m, x=x: (m(x) - 1).square().mean(), time=0.5, record=[]
        )
        found.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.allclose(*found, atol=1e-12)
