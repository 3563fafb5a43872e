from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnscope.probes import average, largest, rank_correlation, relative_deviation


def test_deviation_counts_only_what_has_grown() -> None:
    measured, predicted = np.array([0.1, 1.0, 2.0]), np.array([0.2, 1.1, 1.0])
    np.testing.assert_allclose(
        relative_deviation(measured, predicted, 0.3), [np.nan, 0.1, 0.5], rtol=1e-12
    )


def test_zero_is_not_divided_by() -> None:
    assert np.isnan(relative_deviation(np.zeros(2), np.ones(2), 0.3)).all()


def test_largest_and_average_leave_out_what_is_not_a_number() -> None:
    values = np.array([[[1.0, np.nan], [3.0, 5.0]], [[np.nan, np.nan], [np.nan, np.nan]]])
    np.testing.assert_array_equal(largest(values, (1, 2)), [5.0, np.nan])
    np.testing.assert_array_equal(average(values, (1, 2)), [3.0, np.nan])


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 40)), rng.normal(size=(3, 40))
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(rank_correlation(x, y), expected, rtol=1e-12)
    assert rank_correlation(x, np.exp(x)) == pytest.approx(1.0)
    assert rank_correlation(x.T, -x.T, axis=0) == pytest.approx(-1.0)
