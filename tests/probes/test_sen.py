"""Rank correlation against scipy, and deviations where there is something to deviate from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnscope.probes import average, largest, rank_correlation, relative_deviation


@given(st.integers(0, 2**31), st.integers(3, 30))
def test_rank_correlation_is_spearmans(seed: int, count: int) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, count))
    expected = stats.spearmanr(x, y).statistic
    assert float(rank_correlation(x, y)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rank_correlation_along_any_axis(axis: int) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 4, 5, 6))
    ours = rank_correlation(x, y, axis=axis)
    rows = [np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis]) for a in (x, y)]
    theirs = [stats.spearmanr(a, b).statistic for a, b in zip(*rows, strict=True)]
    assert np.allclose(ours.reshape(-1), theirs, atol=1e-12)


def test_ties_share_their_rank() -> None:
    """A curve that has come to rest repeats its last value."""
    x = np.array([0.0, 1.0, 2.0, 2.0, 2.0])
    y = np.array([0.0, 3.0, 1.0, 4.0, 4.0])
    assert float(rank_correlation(x, y)) == pytest.approx(stats.spearmanr(x, y).statistic)


def test_a_curve_at_rest_correlates_with_nothing() -> None:
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0)))
    assert np.isnan(rank_correlation(np.ones(5), np.ones(5)))


def test_any_growing_function_correlates_fully() -> None:
    x = np.linspace(-3, 3, 50)
    assert float(rank_correlation(x, np.exp(x))) == pytest.approx(1.0)
    assert float(rank_correlation(x, -(x**3))) == pytest.approx(-1.0)


def test_relative_deviation_by_hand() -> None:
    measured = np.array([2.0, 0.5, 0.1, 0.0, np.nan])
    predicted = np.array([1.5, 1.0, 5.0, 1.0, 1.0])
    deviation = relative_deviation(measured, predicted, above=0.3)
    assert deviation[:2].tolist() == [0.25, 1.0]
    assert np.isnan(deviation[2:]).all()


def test_largest_and_average_leave_out_what_is_not_a_number() -> None:
    values = np.array([[[1.0, np.nan], [3.0, 5.0]], [[np.nan, np.nan], [np.nan, np.nan]]])
    np.testing.assert_array_equal(largest(values, (1, 2)), [5.0, np.nan])
    np.testing.assert_array_equal(average(values, (1, 2)), [3.0, np.nan])
