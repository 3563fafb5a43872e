"""The greedy algorithm against closed forms, and against a flow from a tiny start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from attnscope.theory import boix2023

COUPLED = np.array([[1.0, 0.4, -0.2], [0.4, 1.5, 0.3], [-0.2, 0.3, 0.8]])
TARGETS = np.array([1.0, -0.8, 0.5])


def quadratic(point: np.ndarray) -> np.ndarray:
    """Return -∂L/∂w of ½(w - w*)ᵀ A (w - w*)."""
    return COUPLED @ (TARGETS - point)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.2, 3.0), min_size=1, max_size=4, unique_by=lambda x: round(x, 2)))
def test_products_that_do_not_meet_leave_zero_at_one_over_their_target(
    targets: list[float],
) -> None:
    wanted = np.array(targets)
    found = boix2023.greedy_stages(lambda w: wanted - w, len(wanted), 100.0)
    order = np.argsort(-wanted)
    assert found.entries == tuple(order)
    np.testing.assert_allclose(found.times, 1 / wanted[order], rtol=1e-12)
    np.testing.assert_allclose(found.stages[-1].products, wanted, rtol=1e-6)
    assert found.ended == "no product has a gradient any more"


def test_every_plateau_is_the_minimum_over_its_products() -> None:
    found = boix2023.greedy_stages(quadratic, 3, 100.0)
    assert len(found.stages) == 3
    for number, stage in enumerate(found.stages, 1):
        active = list(found.entries[:number])
        least = np.linalg.solve(COUPLED[np.ix_(active, active)], (COUPLED @ TARGETS)[active])
        np.testing.assert_allclose(stage.products[active], least, rtol=1e-6)
        assert np.count_nonzero(stage.products) == number


def test_a_flow_from_a_tiny_start_has_these_stages() -> None:
    found = boix2023.greedy_stages(quadratic, 3, 100.0)

    def times(size: float) -> np.ndarray:
        start = size * np.array([1.0, 0.7, 0.9, 0.3, -0.5, 0.2])
        unit = boix2023.rescaled(size)

        def slope(time: float, both: np.ndarray) -> np.ndarray:
            u, v = both[:3], both[3:]
            g = quadratic(u * v)
            return unit * np.concatenate([v * g, u * g])

        grid = np.linspace(0, found.times[-1] * 1.5, 4001)
        run = solve_ivp(slope, (0, grid[-1]), start, "LSODA", grid, rtol=1e-9, atol=1e-6 * size)
        product = np.abs(run.y[:3] * run.y[3:])
        levels = [abs(stage.products[stage.entry]) / 2 for stage in found.stages]
        return np.array(
            [grid[np.argmax(product[i] > h)] for i, h in zip(found.entries, levels, strict=True)]
        )

    ahead = boix2023.extrapolate(times(1e-12), 1e-12, times(1e-24), 1e-24)
    np.testing.assert_allclose(ahead, found.times, rtol=5e-3)
    forgetful = boix2023.greedy_stages(quadratic, 3, 100.0, remember=False).times
    assert abs(forgetful[2] / found.times[2] - 1) > 0.2


def test_the_gap_of_a_tie_is_zero() -> None:
    found = boix2023.greedy_stages(lambda w: np.array([1.0, 1.0]) - w, 2, 10.0)
    assert (found.stages[0].gap, found.stages[0].runner_up) == (0.0, 1)
    assert found.stages[1].gap == np.inf


def test_a_negative_gradient_grows_a_negative_product() -> None:
    found = boix2023.greedy_stages(lambda w: np.array([-2.0]) - w, 1, 10.0)
    assert found.times == pytest.approx(0.5)
    assert found.stages[0].products == pytest.approx(-2.0)


def test_what_no_gradient_moves_never_leaves_zero() -> None:
    found = boix2023.greedy_stages(lambda w: np.zeros(2), 2, 10.0)
    assert (found.stages, found.ended) == ((), "no product has a gradient any more")


def test_stages_after_the_end_are_not_looked_for() -> None:
    found = boix2023.greedy_stages(lambda w: np.array([2.0, 0.1]) - w, 2, 5.0)
    assert found.entries == (0,)
    assert found.ended == "the next stage is at 10, after 5"


def test_a_product_that_goes_back_to_zero_ends_the_stages() -> None:
    # The second product is only a stand-in for the third one.
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.9], [0.0, 0.9, 0.82]])
    force = np.array([0.01, 1.0, 0.95])
    found = boix2023.greedy_stages(lambda w: force - matrix @ w, 3, 1e3)
    assert "went back to 0: no plateau" in found.ended


def test_a_loss_without_a_minimum_is_said() -> None:
    found = boix2023.greedy_stages(lambda w: np.exp(-w), 1, 10.0)
    assert found.ended == "behind stage 1 it has no minimum: no plateau"


def test_gradient_descent_is_slower_by_its_logarithm() -> None:
    found = boix2023.greedy_stages(lambda w: np.array([2.0]) - w, 1, 10.0, lr=0.3)
    assert found.times == pytest.approx(0.3 / np.log(1.6))
