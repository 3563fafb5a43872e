"""Bootstrap intervals over documents against what they must be."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.bootstrap import Estimate, pooled_mean, resample


def test_a_mean_counts_pairs_and_not_documents() -> None:
    sums, counts = np.array([1.0, 9.0]), np.array([1.0, 3.0])
    assert pooled_mean(sums, counts) == 2.5
    twice = np.array([[2.0, 0.0], [0.0, 2.0]])
    assert pooled_mean(sums, counts, twice).tolist() == [1.0, 3.0]
    assert np.isnan(pooled_mean(np.zeros(2), np.zeros(2)))


def test_documents_of_a_group_are_drawn_together() -> None:
    drawn = resample(np.array([0, 0, 1, 2]), draws=50)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    groups = drawn[:, [0, 2, 3]]
    assert (groups.sum(axis=1) == 3).all()
    assert len(np.unique(groups, axis=0)) > 3


def test_one_group_has_no_interval() -> None:
    with pytest.raises(AttnscopeError, match="1 group of documents"):
        resample(np.zeros(5))


def test_the_interval_of_a_mean_is_as_wide_as_it_should_be() -> None:
    random = np.random.default_rng(0)
    sums = random.normal(size=400)
    weights = resample(np.arange(400), draws=4000)
    found = Estimate.of(pooled_mean, sums, np.ones(400), weights)
    half = 1.96 * sums.std() / 20
    assert float(found.high - found.low) == pytest.approx(2 * half, rel=0.05)


def test_where_a_draw_has_no_pair_there_is_no_interval() -> None:
    found = Estimate(np.array([1.0, 2.0]), np.array([[1.0, np.nan], [1.0, 2.0]]))
    assert found.low[0] == 1
    assert np.isnan(found.low[1])


def test_quotients_and_differences_are_taken_sample_by_sample() -> None:
    one = Estimate(np.array(4.0), np.array([2.0, 6.0]), level=0.9)
    other = Estimate(np.array(2.0), np.array([1.0, 3.0]), level=0.9)
    assert (one / other).drawn.tolist() == [2.0, 2.0]
    assert float((one / other).low) == float((one / other).high) == 2
    assert (one - other).drawn.tolist() == [1.0, 3.0]
    assert float((one - other).high) == pytest.approx(2.9)
