"""Readings in memory, and the order in which an engine talks to a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import Perceptron, Point, quadratic, regression

from attnscope.engines import (
    Checkpoint,
    Descent,
    Flow,
    Linear,
    LossBelow,
    Memory,
    Observable,
    Outcome,
    Record,
)

pytestmark = pytest.mark.usefixtures("float64")


class Diary:
    """Write down every call."""

    def __init__(self, stop_after: int = 10**9) -> None:
        self.calls: list[str] = []
        self.left = stop_after
        self.told: list[tuple[float, float]] = []

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        self.calls.append("open")

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        self.calls.append(f"put {record}.{point}")

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        self.calls.append("step")
        self.told.append((time, loss))
        self.left -= 1
        return self.left >= 0

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        self.calls.append("close" if checkpoint is None else "close to go on")


LOSS = Record((Observable("loss", quadratic),), Linear(3))


@pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow()], ids=["descent", "flow"])
def test_a_sink_hears_everything_in_order(engine: Descent | Flow) -> None:
    diary = Diary()
    engine.run(Point(1.0), quadratic, time=1.0, record=[LOSS], sink=diary)
    assert diary.calls[:2] == ["open", "put 0.0"]
    assert diary.calls[-1] == "close"
    puts = [call for call in diary.calls if call.startswith("put")]
    assert puts == ["put 0.0", "put 0.1", "put 0.2"]
    assert diary.calls.count("close") == diary.calls.count("open") == 1
    assert diary.told[0] == (0.0, 0.5)
    times = [time for time, _ in diary.told]
    assert times == sorted(times)


def test_descent_tells_every_step() -> None:
    diary = Diary()
    Descent(lr=0.1).run(Point(1.0), quadratic, time=1.0, record=[], sink=diary)
    np.testing.assert_allclose([time for time, _ in diary.told], 0.1 * np.arange(10))
    np.testing.assert_allclose([loss for _, loss in diary.told], 0.5 * 0.81 ** np.arange(10))


@pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow()], ids=["descent", "flow"])
def test_a_sink_can_interrupt(engine: Descent | Flow) -> None:
    diary = Diary(stop_after=2)
    model = Perceptron()
    solution = engine.run(model, regression, time=5.0, record=[], sink=diary)
    assert solution.outcome is Outcome.INTERRUPTED
    assert not solution.failed
    assert solution.status.startswith("interrupted at")
    assert diary.calls == ["open", "step", "step", "step", "close to go on"]
    assert solution.loss == pytest.approx(regression(model).item(), rel=1e-12)


def test_a_run_that_cannot_go_on_gives_no_checkpoint() -> None:
    diary = Diary()
    Descent(lr=0.1).run(
        Point(1.0), quadratic, time=9.0, record=[], sink=diary, stop=[LossBelow(0.3)]
    )
    assert diary.calls[-1] == "close"


def test_memory_starts_empty_every_time() -> None:
    sink = Memory()
    for start in (1.0, 2.0):
        Descent(lr=0.1).run(Point(start), quadratic, time=1.0, record=[LOSS], sink=sink)
        assert sink.arrays[0]["loss"][0] == start**2 / 2


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda m: m.x.argmax(), [1.0, 1.0, 1.0]),
        (lambda m: m.x > 0, [[1.0, 1.0]] * 3),
    ],
    ids=["integer", "boolean"],
)
def test_memory_keeps_counts_and_flags(
    read: Callable[[nn.Module], Tensor], expected: list[float]
) -> None:
    sink = Memory()
    Descent(lr=0.1).run(
        Point(1.0, 2.0),
        quadratic,
        time=1.0,
        record=[Record((Observable("count", read),), Linear(3))],
        sink=sink,
    )
    np.testing.assert_array_equal(sink.arrays[0]["count"], expected)


def test_points_never_reached_are_not_numbers() -> None:
    sink = Memory()
    flag = Record((Observable("flag", lambda m: m.x.detach() > 0),), Linear(3), dim="flags")  # type: ignore[union-attr,operator]
    Descent(lr=0.1).run(
        Point(1.0),
        quadratic,
        time=1.0,
        record=[LOSS, flag],
        sink=sink,
        stop=[LossBelow(0.4)],
    )
    assert np.isfinite(sink.arrays[0]["loss"]).tolist() == [True, False, False]
    assert np.isnan(sink.arrays[1]["flag"].astype(float)[:, 0]).tolist() == [False, True, True]


def test_memory_copies_what_it_is_given() -> None:
    sink, value = Memory(), torch.zeros(2)
    record = Record((Observable("x", lambda m: value),), Linear(2))
    sink.open(Point(1.0), [record], [np.array([0.0, 1.0])])
    sink.put(0, 0, [value])
    value += 1
    sink.put(0, 1, [value])
    assert sink.arrays[0]["x"].tolist() == [[0, 0], [1, 1]]
