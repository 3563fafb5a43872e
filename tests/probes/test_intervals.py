"""Intervals over seeds against scipy, and histograms that lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from attnscope.probes import histogram_interval, mean_interval
from attnscope.probes.intervals import student_quantile


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_mean_interval_is_students(level: float, axis: int) -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, (5, 7))
    mean, low, high = mean_interval(values, axis=axis, level=level)
    expected = stats.t.interval(
        level,
        values.shape[axis] - 1,
        loc=values.mean(axis=axis),
        scale=stats.sem(values, axis=axis),
    )
    assert np.allclose(mean, values.mean(axis=axis), rtol=1e-14)
    assert np.allclose(low, expected[0], rtol=1e-12)
    assert np.allclose(high, expected[1], rtol=1e-12)


def test_one_seed_has_no_interval() -> None:
    mean, low, high = mean_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0]
    assert np.isnan([low, high]).all()


@given(
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(0, 2**31),
)
def test_the_shares_sum_to_one(runs: int, samples: int, bins: int, seed: int) -> None:
    """Samples outside the edges are counted in the outermost bins."""
    values = np.random.default_rng(seed).normal(0, 3, (runs, samples))
    mean, low, high = histogram_interval(values, np.linspace(-1, 1, bins + 1))
    assert mean.shape == low.shape == high.shape == (bins,)
    assert mean.sum() == pytest.approx(1.0)
    if runs == 1:
        assert np.isnan([low, high]).all()
        return
    assert (low >= 0).all()
    assert (low <= mean + 1e-15).all()
    assert (mean <= high + 1e-15).all()


def test_a_histogram_by_hand() -> None:
    samples = np.array([[0.1, 0.2, 0.9, 5.0], [-3.0, 0.6, 0.7, 0.8]])
    mean, low, high = histogram_interval(samples, np.array([0.0, 0.5, 1.0]))
    assert mean.tolist() == [0.375, 0.625]
    shares = np.array([[0.5, 0.5], [0.25, 0.75]])
    _, expected_low, expected_high = mean_interval(shares)
    assert np.allclose(low, np.clip(expected_low, 0, None))
    assert np.allclose(high, expected_high)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_the_quantile_is_scipys(level: float) -> None:
    """Exactly summed up to 2,000 degrees of freedom, a series above: both sides of that too."""
    for freedom in (*range(1, 60), 99, 100, 499, 1999, 2000, 2001, 5000, 10**6):
        expected = special.stdtrit(freedom, (1 + level) / 2)
        assert student_quantile(freedom, level) == pytest.approx(expected, rel=1e-12)
