"""Exact intervals of shares, against the binomial tails that define them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnscope.errors import AttnscopeError
from attnscope.probes.shares import share_curve, share_interval


@pytest.mark.parametrize(("hits", "count"), [(1, 4), (3, 4), (7, 20), (19, 20)])
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_the_ends_leave_the_tails_outside(hits: int, count: int, level: float) -> None:
    share = share_interval(hits, count, level)
    assert share.share == hits / count
    tail = (1 - level) / 2
    assert stats.binom.sf(hits - 1, count, share.low) == pytest.approx(tail, abs=1e-12)
    assert stats.binom.cdf(hits, count, share.high) == pytest.approx(tail, abs=1e-12)


def test_none_and_all_end_at_zero_and_one() -> None:
    none, every = share_interval(0, 20), share_interval(20, 20)
    assert (none.share, none.low, every.share, every.high) == (0.0, 0.0, 1.0, 1.0)
    # (1 - p)^20 = 0.025.
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert every.low == pytest.approx(0.025 ** (1 / 20))


def test_a_curve_has_the_interval_of_each_step() -> None:
    hits = np.array([[False, True, True], [False, False, True]])
    share, low, high = share_curve(hits)
    np.testing.assert_array_equal(share, [0, 0.5, 1])
    for step, found in enumerate((0, 1, 2)):
        one = share_interval(found, 2)
        assert (low[step], high[step]) == (one.low, one.high)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((0, 0), "0 hits of 0 runs"),
        ((5, 4), "5 hits of 4 runs: expected one run or more"),
        ((-1, 4), "-1 hits of 4 runs"),
        ((1, 4, 1.0), "level = 1.0: expected a probability above 0 and below 1"),
    ],
)
def test_what_is_no_share_is_refused(numbers: tuple[int, int], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        share_interval(*numbers)
