from __future__ import annotations

import numpy as np
from scipy import stats

from attnscope.probes import histogram_interval, mean_interval


def test_mean_interval_is_students() -> None:
    values = np.random.default_rng(1).normal(size=(5, 3))
    mean, low, high = mean_interval(values)
    for column in range(3):
        expected = stats.t.interval(
            0.95, 4, loc=values[:, column].mean(), scale=stats.sem(values[:, column])
        )
        np.testing.assert_allclose([low[column], high[column]], expected)
        assert low[column] < mean[column] < high[column]


def test_a_single_value_has_no_spread() -> None:
    mean, low, high = mean_interval(np.array([[2.0, 3.0]]))
    np.testing.assert_array_equal(mean, [2.0, 3.0])
    np.testing.assert_array_equal(low, high)


def test_histogram_counts_every_sample_once() -> None:
    samples = np.random.default_rng(2).normal(size=(4, 100)) * 3
    mean, low, high = histogram_interval(samples, np.linspace(-1, 1, 8))
    assert np.isclose(mean.sum(), 1.0)
    assert (low >= 0).all()
    assert (low <= mean).all()
    assert (mean <= high).all()
