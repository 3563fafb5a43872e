"""Flows that sharpen: the method changes forth and back, and nothing else does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import Continuing, Interrupter, Perceptron, Point, flat, regression, slope_of_exp, theta

from attnscope.engines import Flow, Memory, Outcome
from attnscope.engines.chebyshev import Chebyshev
from attnscope.errors import AttnscopeError

pytestmark = pytest.mark.usefixtures("float64")

STEEP = torch.tensor([1000.0, 30.0, 1.0, 0.01], dtype=torch.float64)


def bowl(model: nn.Module) -> Tensor:
    """½ Σ c x² with curvatures from 0.01 to 1,000: the flow is x₀ exp(-c t)."""
    x = model.get_parameter("x")
    return 0.5 * (STEEP * x * x).sum()


def canyon(model: nn.Module) -> Tensor:
    """A steep canyon whose floor drops at x = 3, where accuracy limits the steps for a while."""
    x, y = model.get_parameter("x")
    walls = 200 / (1 + (x - 3) ** 2 * 25) if x > 3 else 200.0
    return 0.5 * walls * y * y - 0.05 * x - 4 * torch.tanh(4 * (x - 3))


def test_a_stiff_bowl_follows_its_closed_form_at_a_fraction_of_the_cost() -> None:
    sink, model = Memory(), Point(1.0, 1.0, 1.0, 1.0)
    solution = Flow().run(model, bowl, time=100.0, record=[theta(41)], sink=sink)
    expected = np.exp(-STEEP.numpy() * sink.times[0][:, None])
    assert np.abs(sink.arrays[0]["theta"] - expected).max() < 1e-5
    slow = Flow(method="dormand-prince").run(Point(1.0, 1.0, 1.0, 1.0), bowl, time=2.0, record=[])
    # Fifty times as far for less.
    assert solution.evaluations < slow.evaluations
    assert set(slow.gradients) == {"dormand-prince"}
    assert solution.gradients["chebyshev"] > solution.gradients["dormand-prince"]
    assert sum(solution.gradients.values()) == solution.evaluations
    assert "chebyshev" in solution.switches[0]
    assert "limit of stability" in solution.switches[0]
    assert solution.sharpness[-1][1] == pytest.approx(1000, rel=0.05)
    assert [time for time, _ in solution.sharpness] == sorted(t for t, _ in solution.sharpness)


def test_a_flow_that_is_not_sharp_spends_nothing_on_it() -> None:
    solution, forced = (
        Flow(method=method).run(Point(1.0, -2.0, 0.5), slope_of_exp, time=20.0, record=[])
        for method in (None, "dormand-prince")
    )
    assert solution == forced
    assert solution.switches == ()
    assert solution.sharpness == ()


def test_a_forced_method_takes_all_steps() -> None:
    models = [Perceptron(), Perceptron()]
    chosen = Flow().run(models[0], regression, time=8.0, record=[])
    solution = Flow(method="chebyshev").run(models[1], regression, time=8.0, record=[])
    assert set(solution.gradients) == {"chebyshev"}
    assert solution.loss == pytest.approx(chosen.loss, rel=1e-4)
    assert len(solution.sharpness) > 1
    with pytest.raises(AttnscopeError, match="method = 'euler'"):
        Flow(method="euler")  # type: ignore[arg-type]


def test_the_method_changes_forth_and_back() -> None:
    solution = Flow().run(Point(0.0, 1.0), canyon, time=80.0, record=[])
    assert solution.outcome is Outcome.FINISHED
    names = [why.split(": ")[1].split(",")[0] for why in solution.switches]
    assert names[:2] == ["chebyshev", "dormand-prince"]
    assert all(left != right for left, right in pairwise(names))


@pytest.mark.parametrize("method", [None, "chebyshev"])
@pytest.mark.parametrize("after", [3, 27, 40])
def test_resuming_is_bit_identical_whichever_method_was_in_use(
    after: int, method: str | None
) -> None:
    engine, record = Flow(method=method), [theta(31)]  # type: ignore[arg-type]
    whole, straight = Memory(), Point(1.0, 1.0, 1.0, 1.0)
    expected = engine.run(straight, bowl, time=8.0, record=record, sink=whole)
    assert expected.steps > 41
    first = Interrupter(after)
    engine.run(Point(1.0, 1.0, 1.0, 1.0), bowl, time=8.0, record=record, sink=first)
    resumed, second = Point(9.0, 9.0, 9.0, 9.0), Continuing(first)
    found = engine.run(resumed, bowl, time=8.0, record=record, sink=second, resume=first.reload())
    assert found == expected
    assert torch.equal(flat(resumed), flat(straight))
    parts = [first.arrays[0]["theta"], second.arrays[0]["theta"]]
    joined = np.where(np.isnan(parts[1]), parts[0], parts[1])
    assert np.array_equal(joined, whole.arrays[0]["theta"])


def test_an_eigenvalue_that_is_estimated_far_too_small_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measure = Chebyshev.measure

    def too_small(self: Chebyshev, tries: int, start: Tensor | None = None) -> float:
        measure(self, tries, start)
        self.radius /= 30
        return self.radius

    monkeypatch.setattr(Chebyshev, "measure", too_small)
    sink, model = Memory(), Point(1.0, 1.0, 1.0, 1.0)
    engine = Flow(method="chebyshev")
    solution = engine.run(model, bowl, time=2.0, record=[theta(21)], sink=sink)
    assert solution.outcome is Outcome.FINISHED
    expected = np.exp(-STEEP.numpy() * sink.times[0][:, None])
    assert np.abs(sink.arrays[0]["theta"] - expected).max() < 1e-4


def test_giving_up_says_that_stability_is_the_matter_where_it_is() -> None:
    engine = Flow(method="dormand-prince", max_steps=200)
    solution = engine.run(Point(1.0, 1.0, 1.0, 1.0), bowl, time=100.0, record=[])
    assert solution.outcome is Outcome.EXHAUSTED
    assert "stability limits them" in solution.status
    assert "rtol" not in solution.status


def test_a_maximum_is_left_and_a_point_at_rest_stays() -> None:
    def hill(model: nn.Module) -> Tensor:
        return -0.5 * (model.get_parameter("x") ** 2).sum()

    for method in (None, "chebyshev"):
        model = Point(1e-3, 2e-3)
        engine = Flow(method=method)
        engine.run(model, hill, time=5.0, record=[])
        expected = torch.tensor([1e-3, 2e-3]) * np.exp(5.0)
        torch.testing.assert_close(model.x.detach(), expected, rtol=5e-3, atol=0)
        still = Point(0.0, 0.0)
        assert engine.run(still, hill, time=5.0, record=[]).outcome is Outcome.FINISHED
        assert torch.equal(still.x.detach(), torch.zeros(2))
