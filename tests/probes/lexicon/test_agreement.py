"""Agreement, its baselines and Kendall's tau, against plain loops and SciPy."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.agreement import (
    agreement,
    contextual,
    mean_agreement,
    mean_defined,
    random_baseline,
    shuffled_baseline,
    top_count,
)
from attnscope.probes.lexicon.cells import Cells
from attnscope.probes.lexicon.kendall import kendall_tau

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Few values, so that ties are common; NaN or infinity where the mask is false."""
    count, length = draw(st.integers(1, 6)), draw(st.integers(1, 45))
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from([2, 5, 10_000]))
    u, v = source.integers(0, levels, (2, count, length)).astype(float)
    mask = source.random((count, length)) < draw(st.sampled_from([0.05, 0.6, 1.0]))
    masked = draw(st.sampled_from([np.nan, np.inf]))
    for array in (u, v):
        array[array == 0] = -np.inf  # the logarithm of 0 is a value like others
        array[~mask] = masked
    return u, v, mask


def by_hand(u: list[float], v: list[float], percent: int) -> float:
    """Break ties in every way there is: a position is before its equals in so many of them."""
    if not u:
        return math.nan
    top = math.ceil(Fraction(percent, 100) * len(v))
    chances = []
    for best in (i for i, value in enumerate(u) if value == max(u)):
        above = sum(1 for value in v if value > v[best])
        places = range(above, above + v.count(v[best]))
        chances.append(Fraction(sum(place < top for place in places), len(places)))
    return float(sum(chances) / len(chances))


@given(rows(), st.integers(1, 100))
def test_agreement_is_the_definition(case: Rows, percent: int) -> None:
    u, v, mask = case
    expected = [
        by_hand(a[m].tolist(), b[m].tolist(), percent) for a, b, m in zip(u, v, mask, strict=True)
    ]
    np.testing.assert_allclose(agreement(u, v, mask, percent / 100), expected, atol=1e-14)


@given(rows())
def test_agreement_is_the_mean_over_ties_broken_at_random(case: Rows) -> None:
    u, v, mask = (array[:1] for array in case)
    if not mask.any():
        return
    dice = np.random.default_rng(0)
    draws = 4000
    broken = []
    for quantity in (u, v):
        ranks = np.argsort(np.argsort(dice.random((draws, u.shape[1])), axis=1), axis=1)
        levels = np.unique(np.where(mask, quantity, -np.inf), return_inverse=True)[1].reshape(1, -1)
        broken.append(levels * u.shape[1] + ranks.astype(float))
    every = agreement(*broken, np.broadcast_to(mask, broken[0].shape)).mean()
    assert agreement(u, v, mask)[0] == pytest.approx(every, abs=0.04)


@pytest.mark.filterwarnings("ignore:One or more sample arguments")
@given(rows())
def test_tau_is_scipys(case: Rows) -> None:
    u, v, mask = case
    expected = [
        stats.kendalltau(a[m], b[m]).statistic if m.sum() > 1 else math.nan
        for a, b, m in zip(u, v, mask, strict=True)
    ]
    np.testing.assert_allclose(kendall_tau(u, v, mask), expected, atol=1e-12)


def test_tau_does_not_depend_on_how_many_rows_are_compared_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    u, v = np.random.default_rng(0).integers(0, 4, (2, 3, 5, 9)).astype(float)
    mask = np.random.default_rng(1).random((3, 1, 9)) < 0.7
    whole = kendall_tau(u, v, mask)
    monkeypatch.setattr("attnscope.probes.lexicon.kendall._AT_ONCE", 1)
    np.testing.assert_array_equal(kendall_tau(u, v, mask), whole)
    assert whole.shape == (3, 5)


def test_agreement_is_not_symmetric() -> None:
    v = np.arange(40.0)
    u = v.copy()
    u[38], u[39] = 100.0, -1.0
    # The top of 40 are two. Position 38 is the second of v; 39, the first of v, is u's last.
    assert agreement(u, v) == 1
    assert agreement(v, u) == 0


def test_ties_are_broken_at_random_on_both_sides() -> None:
    v = np.array([3.0, 1.0, 2.0])
    assert agreement(np.array([1.0, 1.0, 0.0]), v) == 0.5
    assert agreement(np.array([0.0, 1.0, 1.0]), v) == 0
    # What says nothing comes to what chance has, on either side.
    nothing, something = np.zeros(3), np.array([0.0, 1.0, 2.0])
    assert agreement(something, nothing) == agreement(nothing, something) == 1 / 3
    assert agreement(nothing, nothing) == random_baseline([3])


def test_values_that_differ_in_double_precision_alone_are_no_tie() -> None:
    # In single precision both are 1, and the first position would win half of the time.
    v = np.array([1.0, 1.0 + 1e-12, 0.0])
    assert agreement(np.array([0.0, 1.0, 0.0]), v) == 1
    assert agreement(np.array([1.0, 0.0, 0.0]), v) == 0


def test_one_position_agrees_and_has_no_tau() -> None:
    one = np.array([[-2.0]])
    assert agreement(one, one).tolist() == [1]
    assert np.isnan(kendall_tau(one, one)).tolist() == [True]


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0,)])
def test_nothing_gives_nothing_defined(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape)
    for found in (agreement(empty, empty), kendall_tau(empty, empty)):
        assert found.shape == shape[:-1]
        assert np.isnan(found).all()
    with pytest.raises(AttnscopeError, match=r"none of the \d values is defined"):
        mean_agreement(empty, empty)


def test_means_leave_out_and_count() -> None:
    u = np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, np.nan]])
    v = np.array([[1.0, 0.0], [1.0, 0.0], [np.nan, np.nan]])
    mask = np.array([[True, True], [True, True], [False, False]])
    found = mean_agreement(u, v, mask)
    assert (found.value, found.count, found.left_out) == (0.5, 2, 1)
    ranks = mean_defined(kendall_tau(u, v, mask))
    assert (ranks.value, ranks.count, ranks.left_out) == (0.0, 2, 1)


def test_a_mask_is_the_same_as_a_shorter_row() -> None:
    u, v = np.random.default_rng(0).random((2, 4, 30))
    mask = np.broadcast_to(np.arange(30) < 19, (4, 30))
    np.testing.assert_array_equal(agreement(u, v, mask), agreement(u[:, :19], v[:, :19]))
    np.testing.assert_array_equal(agreement(u, v, mask[0]), agreement(u[:, :19], v[:, :19]))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_baseline_is_the_mean_over_all_orders(length: int) -> None:
    u = np.arange(length, dtype=float)
    orders = np.array(list(permutations(range(length))), dtype=float)
    for top in (0.05, 0.4, 0.5, 1.0):
        every = agreement(np.broadcast_to(u, orders.shape), orders, top=top).mean()
        assert random_baseline([length], top) == pytest.approx(every, abs=1e-15)


def test_baseline_of_known_lengths() -> None:
    assert random_baseline([20]) == 0.05
    assert random_baseline([21]) == 2 / 21
    assert random_baseline([10, 0, 40]) == pytest.approx((1 / 10 + 2 / 40) / 2)
    # 0.07 * 100 is 7.000000000000001.
    assert top_count(100, 0.07) == 7


def test_shuffling_estimates_the_baseline_and_keeps_what_is_masked() -> None:
    source = np.random.default_rng(0)
    u, v = source.random((2, 4000, 25))
    lengths = source.integers(1, 26, 4000)
    mask = np.arange(25) < lengths[:, None]
    u[~mask], v[~mask] = np.nan, np.nan
    found = shuffled_baseline(u, v, mask, seed=3)
    # The standard deviation of the estimate is below 0.5 / √4000 = 0.008.
    assert found.value == pytest.approx(random_baseline(lengths), abs=0.03)
    assert found == shuffled_baseline(u, v, mask, seed=3)
    assert found.value != shuffled_baseline(u, v, mask, seed=4).value
    # A row of one position cannot be shuffled, and where all are equal chance is all there is.
    assert shuffled_baseline(u[:, :1], v[:, :1], seed=0).value == 1
    equal = shuffled_baseline(u, np.ones_like(u), mask, seed=0).value
    assert equal == pytest.approx(random_baseline(lengths), rel=1e-12)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(-1, 5))
def test_contextual_is_the_first_point_above(curve: list[int], value: int) -> None:
    performance = [10.0 + i for i in range(len(curve))]
    found = contextual([float(a) for a in curve], performance, value)
    above = [i for i, a in enumerate(curve) if a > value]
    if above:
        assert (found.reached, found.index, found.xi) == (True, above[0], performance[above[0]])
    else:
        assert (found.reached, found.index, found.xi) == (False, None, performance[-1])


@pytest.mark.parametrize("measure", [agreement, kendall_tau])
def test_wrong_input_is_a_sentence(measure) -> None:  # type: ignore[no-untyped-def]
    u = np.zeros((2, 3))
    with pytest.raises(AttnscopeError, match=r"u has the shape \(2, 3\) and v \(2, 4\)"):
        measure(u, np.zeros((2, 4)))
    with pytest.raises(AttnscopeError, match=r"v is NaN at \(1, 0\) and 2 other positions"):
        measure(u, np.array([[0.0] * 3, [np.nan] * 3]))
    with pytest.raises(AttnscopeError, match=r"mask has the shape \(2,\)"):
        measure(u, u, np.ones(2, dtype=bool))
    with pytest.raises(AttnscopeError, match="mask is float64"):
        measure(u, u, u)
    with pytest.raises(AttnscopeError, match=r"u has the shape \(\)"):
        measure(1.0, 1.0)


def test_wrong_numbers_are_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="top is 0"):
        agreement(np.zeros(2), np.zeros(2), top=0)
    with pytest.raises(AttnscopeError, match="no length is above 0"):
        random_baseline([0])
    with pytest.raises(AttnscopeError, match="integers, 0 or more"):
        random_baseline([2.5])
    with pytest.raises(AttnscopeError, match="values from -1 on"):
        random_baseline([3, -1])
    with pytest.raises(AttnscopeError, match="as many points"):
        contextual([0.1, 0.2], [0.1], 0.0)
    with pytest.raises(AttnscopeError, match="NaN"):
        contextual([0.1, np.nan], [0.1, 0.2], 0.0)


def test_ties_leave_the_baseline_as_it_is() -> None:
    rng = np.random.default_rng(0)
    mask = Cells(rng.integers(1, 40, size=400)).mask
    distinct = rng.random(mask.shape)
    chance = random_baseline(mask.sum(axis=1))
    # Every position in turn as the only largest one: the mean over positions is exact.
    tied = np.round(distinct, 1)
    for v in (distinct, tied, np.zeros(mask.shape)):
        hits = np.stack(
            [
                agreement(np.eye(39)[[i] * 400][:, : mask.shape[1]], v, mask)
                for i in range(mask.shape[1])
            ],
            axis=1,
        )
        assert (hits * mask).sum(axis=1) / mask.sum(axis=1) == pytest.approx(
            [random_baseline([n]) for n in mask.sum(axis=1)], rel=1e-12
        )
    estimates = [shuffled_baseline(distinct, tied, mask, seed=seed).value for seed in range(40)]
    assert np.mean(estimates) == pytest.approx(chance, abs=4 * np.std(estimates) / 40**0.5)
