"""The lag between knowledge and attention, on curves whose half is known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.studies.snell2021.agreement.evidence import half_way, risen

STEPS = np.array([0.0, 10.0, 50.0, 100.0, 400.0])


def over_steps(values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, {"step": STEPS}, "step")


def half_step(values: np.ndarray) -> float:
    return float(half_way(over_steps(values)))


def lag(knowledge: np.ndarray, concentration: np.ndarray) -> float:
    return half_step(concentration) - half_step(knowledge)


def test_half_of_a_straight_line_is_in_its_middle() -> None:
    assert half_step(0.1 + STEPS / 1000) == pytest.approx(200, rel=1e-12)


def test_what_comes_after_the_maximum_does_not_matter() -> None:
    up = np.array([0.2, 0.2, 0.6, 1.0, 0.2])
    down = np.array([0.2, 0.2, 0.6, 1.0, 0.9])
    assert half_step(up) == half_step(down) == pytest.approx(50, rel=1e-12)


def test_scale_and_offset_do_not_matter() -> None:
    values = np.array([0.0, 0.1, 0.3, 0.9, 1.0])
    assert half_step(5 + 3 * values) == pytest.approx(half_step(values), rel=1e-12)


def test_the_lag_is_signed() -> None:
    early = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    late = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    assert lag(early, late) == 250 - 5
    assert lag(late, early) == 5 - 250


def test_knowledge_that_stays_puts_attention_first() -> None:
    """As in the run with frozen β: single precision makes a rise that is none."""
    still = 0.3 + 1e-7 * np.arange(5)
    early = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    assert (risen(over_steps(still)) == 0).all()
    assert lag(still, early) == 5 - 400
    assert lag(still, still) == 0


def test_a_curve_with_gaps_has_no_half() -> None:
    assert np.isnan(half_step(np.array([0.0, 1.0, np.nan, np.nan, np.nan])))


def test_every_run_has_a_half_of_its_own() -> None:
    rows = np.array([[0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.5] * 5])
    curves = xr.DataArray(rows, {"run": ["A", "B", "frozen"], "step": STEPS}, ("run", "step"))
    assert half_way(curves).to_numpy().tolist() == [5, 250, 400]
