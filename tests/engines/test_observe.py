"""Schedules, records, and the common time axis of both engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from toys import THETA, Perceptron, Point, quadratic, regression, theta

from attnscope.engines import (
    Descent,
    Flow,
    Given,
    Linear,
    Logarithmic,
    Memory,
    Observable,
    Record,
    snapshots,
)
from attnscope.errors import AttnscopeError

pytestmark = pytest.mark.usefixtures("float64")

UNTIL = 10.0
schedules = st.one_of(
    st.builds(Linear, st.integers(1, 40)),
    st.builds(Logarithmic, st.integers(1, 40), st.floats(1e-6, UNTIL)),
    st.builds(Given, st.lists(st.floats(0, UNTIL), max_size=6).map(tuple)),
)


@given(schedules, st.none() | st.floats(0.01, 3.0))
def test_no_schedule_drops_time_zero(at: Linear | Logarithmic | Given, grid: float | None) -> None:
    times = Record((THETA,), at).times(UNTIL, grid)
    assert times[0] == 0.0
    assert (np.diff(times) > 0).all()
    if grid is not None:
        np.testing.assert_allclose(times / grid, np.round(times / grid), rtol=0, atol=1e-9)


@example(Linear(5), 0.3, 1.0)
@example(Linear(5), 0.7, 1.2)
@example(Linear(7), 0.1, 0.3)
@given(schedules, st.sampled_from([0.05, 0.1, 0.3, 0.7]), st.sampled_from([0.3, 1.0, 1.2, 2.1]))
def test_both_engines_record_at_the_same_times(
    at: Linear | Logarithmic | Given, lr: float, until: float
) -> None:
    steps = round(until / lr)
    if steps < 1:
        return
    if isinstance(at, Given):
        at = Given(tuple(t / UNTIL * steps * lr * 0.999 for t in at.at))
    elif isinstance(at, Logarithmic):
        at = Logarithmic(at.points, at.first / UNTIL * steps * lr * 0.999)
    sinks = [Memory(), Memory()]
    for engine, sink in zip((Descent(lr=lr), Flow(lr=lr)), sinks, strict=True):
        engine.run(Point(1.0), quadratic, time=until, record=[Record((THETA,), at)], sink=sink)
    np.testing.assert_array_equal(sinks[0].times[0], sinks[1].times[0])
    for sink in sinks:
        assert sink.arrays[0]["theta"][0, 0] == 1.0
        assert np.isfinite(sink.arrays[0]["theta"]).all()
        assert (np.diff(sink.arrays[0]["theta"][:, 0]) < 0).all()


def test_linear_and_logarithmic_times() -> None:
    np.testing.assert_allclose(Linear(5).times(2.0), [0, 0.5, 1, 1.5, 2])
    np.testing.assert_allclose(Logarithmic(4, 0.01).times(1.0), [0, 0.01, 0.1, 1.0])
    np.testing.assert_allclose(Given((3.0, 1.0, 3.0)).times(4.0), [0, 1, 3])


def test_points_that_fall_together_on_the_grid_are_one() -> None:
    times = Record((THETA,), Linear(100)).times(1.0, 0.25)
    np.testing.assert_allclose(times, [0, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    ("at", "quoted"),
    [
        (Logarithmic(5, 0.0), r"first=0\.0"),
        (Logarithmic(5, 11.0), r"first=11\.0"),
        (Given((-1.0,)), r"at=\(-1\.0,\)"),
        (Given((2.0, 10.5)), r"at=\(2\.0, 10\.5\)"),
    ],
)
def test_times_outside_the_run_are_refused(at: Logarithmic | Given, quoted: str) -> None:
    with pytest.raises(AttnscopeError, match=rf"{quoted}.*expected"):
        Flow().run(Point(1.0), quadratic, time=UNTIL, record=[Record((THETA,), at)])


def test_two_records_along_one_dimension_are_refused() -> None:
    other = Record((Observable("loss", quadratic),), Linear(3))
    for engine in (Descent(), Flow()):
        with pytest.raises(AttnscopeError, match=r"dimension step: expected only one"):
            engine.run(Point(1.0), quadratic, time=1.0, record=[theta(3), other])


def test_two_observables_of_one_name_are_refused() -> None:
    other = Record((THETA,), Linear(3), dim="coarse")
    with pytest.raises(AttnscopeError, match=r"observable observables/theta: expected only one"):
        Flow().run(Point(1.0), quadratic, time=1.0, record=[theta(3), other])


@pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow(lr=0.1)], ids=["descent", "flow"])
def test_records_of_different_density_are_read_side_by_side(engine: Descent | Flow) -> None:
    sink = Memory()
    dense = Record((Observable("loss", regression),), Linear(11), dim="fine")
    sparse = Record((THETA, Observable("norm", lambda m: THETA.read(m).norm())), Linear(3))
    engine.run(Perceptron(), regression, time=1.0, record=[dense, sparse], sink=sink)
    assert sink.arrays[0]["loss"].shape == (11,)
    assert sink.arrays[1]["theta"].shape == (3, THETA.read(Perceptron()).numel())
    norms = np.linalg.norm(sink.arrays[1]["theta"], axis=1)
    np.testing.assert_allclose(sink.arrays[1]["norm"], norms, rtol=1e-14)
    assert np.isfinite(sink.arrays[0]["loss"]).all()


@pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow()], ids=["descent", "flow"])
def test_all_parameters_can_be_recorded(engine: Descent | Flow) -> None:
    sink, model = Memory(), Perceptron()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    record = snapshots(model, Linear(3))
    assert (record.group, record.dim) == ("params", "snapshot")
    dims = {observable.name: observable.dims for observable in record.observables}
    assert dims["first.weight"] == ("first.weight[0]", "first.weight[1]")
    engine.run(model, regression, time=1.0, record=[record], sink=sink)
    assert sink.arrays[0].keys() == before.keys()
    for name, p in model.named_parameters():
        found = torch.from_numpy(sink.arrays[0][name])
        assert found.shape == (3, *p.shape)
        assert torch.equal(found[0], before[name])
        torch.testing.assert_close(found[2], p.detach(), rtol=1e-13, atol=1e-15)
    moved = sink.arrays[0]["first.weight"]
    assert not np.array_equal(moved[0], moved[2])


def test_readings_are_taken_without_a_graph() -> None:
    graphs = []

    def read(model: torch.nn.Module) -> torch.Tensor:
        value = quadratic(model)
        graphs.append(value.requires_grad)
        return value

    for engine in (Descent(lr=0.1), Flow()):
        engine.run(
            Point(1.0),
            quadratic,
            time=1.0,
            record=[Record((Observable("loss", read),), Linear(3))],
        )
    assert graphs == [False] * 6


def test_axes_and_labels_that_do_not_fit_are_refused() -> None:
    for observable, said in (
        (Observable("x", lambda m: m.x, ()), r"'x' has dims \(\) but returned .* shape \(2,\)"),
        (Observable("x", lambda m: m.x, ("a", "b")), r"has dims \('a', 'b'\)"),
        (Observable("x", lambda m: m.x, ("a",), coords={"a": ("one",)}), "has 1 labels for 'a'"),
        (Observable("x", lambda m: m.x, ("a",), coords={"b": ("one", "two")}), "labels for 'b'"),
    ):
        with pytest.raises(AttnscopeError, match=said):
            observable.check((2,))
