"""A flow along a kink: plain gradient-descent steps where the field jumps, and only there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import Continuing, Interrupter, Point, attention, flat, theta, topic_loss

from attnscope.engines import Descent, Flow, LossBelow, Memory, Outcome
from attnscope.tasks import TopicWordsData

pytestmark = pytest.mark.usefixtures("float64")

LR = 0.05


def valley(model: nn.Module) -> Tensor:
    """|x| + ½ y²/10: x falls to the kink at 0 in finite time and stays; y = y₀ exp(-t/10)."""
    x, y = model.get_parameter("x")
    return x.abs() + y * y / 20


def exact(times: np.ndarray) -> np.ndarray:
    return np.stack([np.maximum(0.0, 1 - times), 2 * np.exp(-times / 10)], axis=1)


@pytest.mark.parametrize("correct", [False, True])
def test_it_slides_along_a_kink(correct: bool) -> None:
    sink = Memory()
    engine = Flow(lr=LR, correct=correct)
    solution = engine.run(Point(1.0, 2.0), valley, time=40.0, record=[theta(81)], sink=sink)
    assert solution.outcome is Outcome.FINISHED
    assert solution.plain_steps > 100
    # Gradient descent jumps over the kink by one step at most, and is off by O(lr) elsewhere.
    gap = np.abs(sink.arrays[0]["theta"] - exact(sink.times[0]))
    assert gap[:, 0].max() <= LR * (1 + 1e-9)
    assert gap[:, 1].max() < LR


def test_it_costs_no_more_than_a_little_over_gradient_descent() -> None:
    flow = Flow(lr=LR).run(Point(1.0, 2.0), valley, time=40.0, record=[])
    descent = Descent(lr=LR).run(Point(1.0, 2.0), valley, time=40.0, record=[])
    assert flow.evaluations < 1.3 * descent.evaluations
    creeping = Flow(max_steps=descent.steps).run(Point(1.0, 2.0), valley, time=40.0, record=[])
    assert creeping.outcome is Outcome.EXHAUSTED


def test_a_condition_is_met_between_plain_steps() -> None:
    model = Point(1.0, 2.0)
    stop = [LossBelow(0.1)]
    solution = Flow(lr=LR).run(model, valley, time=40.0, record=[], stop=stop)
    assert solution.outcome is Outcome.STOPPED
    assert solution.plain_steps > 0
    assert valley(model).item() == pytest.approx(0.1, abs=1e-6)
    assert solution.loss == pytest.approx(0.1, abs=1e-6)


def test_steep_but_smooth_places_are_integrated(tiny: TopicWordsData) -> None:
    loss = topic_loss(tiny.train)
    tight = Flow(lr=5.0, rtol=1e-10, atol=1e-10)
    solution = tight.run(attention(tiny.train), loss, time=100.0, record=[])
    # Steps far shorter than six times lr, and many refused: yet nothing that looks like a kink.
    assert solution.steps > 20
    assert solution.plain_steps == 0


@pytest.mark.parametrize("after", [0, 3, 6, 7, 9])
def test_resuming_among_kinks_is_bit_identical(after: int) -> None:
    engine = Flow(lr=LR)
    whole, record = Memory(), [theta(81)]
    straight = Point(1.0, 2.0)
    engine.run(straight, valley, time=40.0, record=record, sink=whole)
    first = Interrupter(after)
    engine.run(Point(1.0, 2.0), valley, time=40.0, record=record, sink=first)
    resumed, second = Point(9.0, 9.0), Continuing(first)
    engine.run(resumed, valley, time=40.0, record=record, sink=second, resume=first.reload())
    assert torch.equal(flat(resumed), flat(straight))
    joined = np.where(
        np.isnan(second.arrays[0]["theta"]),
        first.arrays[0]["theta"],
        second.arrays[0]["theta"],
    )
    assert np.array_equal(joined, whole.arrays[0]["theta"])


def test_along_a_kink_it_is_of_second_order() -> None:
    gaps = []
    for lr in (LR, LR / 2):
        sink = Memory()
        Flow(lr=lr).run(Point(1.0, 2.0), valley, time=40.0, record=[theta(81)], sink=sink)
        gaps.append(np.abs(sink.arrays[0]["theta"] - exact(sink.times[0]))[:, 1].max())
    # Gradient descent is off by ½ lr/10 y t/10 at t = 10, 1.8e-3.
    assert gaps[0] < 2e-4
    assert gaps[1] < gaps[0] / 2.5


@pytest.mark.parametrize("edge", [0.9, 1.3, 1.9])
def test_it_is_stable_where_gradient_descent_is(edge: float) -> None:
    def sharp(model: nn.Module) -> Tensor:
        x, y = model.get_parameter("x")
        return x.abs() + 0.5 * edge / LR * (y - torch.sin(x * 40) / 100) ** 2

    model = Point(1.0, 2.0)
    solution = Flow(lr=LR).run(model, sharp, time=40.0, record=[])
    assert solution.plain_steps > 50
    assert solution.loss < 2 * LR
    assert flat(model).abs().max() < 2 * LR
