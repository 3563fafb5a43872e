from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from attnscope.errors import AttnscopeError
from attnscope.theory.lu2021 import norm_from_score, score_from_norm


def test_norm_is_eq_10() -> None:
    score = np.array([0.5, 2.0, 4.8])
    expected = np.sqrt(2 * (score + np.exp(score) / 20 - 1 / 20))
    np.testing.assert_allclose(norm_from_score(score, 20), expected, rtol=1e-14)
    np.testing.assert_array_equal(norm_from_score(torch.from_numpy(score), 20), expected)


def test_small_scores_keep_all_their_digits() -> None:
    # To first order ‖v‖² = 2 s (1 + 1/m); exp(s) - 1 computed by subtraction is off by 1e-4 here.
    score = 1e-12
    assert norm_from_score(score, 3) == pytest.approx(np.sqrt(2 * score * (1 + 1 / 3)), rel=1e-11)


def test_scores_below_zero_have_norm_zero() -> None:
    assert norm_from_score([-1.0, -1e-9], 20).tolist() == [0.0, 0.0]


@given(st.floats(0, 1e3), st.floats(0.5, 1e3))
def test_inverse_agrees_with_lambert_w(norm: float, m: float) -> None:
    # s + e^s/m = c has the solution s = c - W(e^c/m); where e^c overflows only the round trip is
    # left to compare.
    score = float(score_from_norm(norm, m))
    assert float(norm_from_score(score, m)) == pytest.approx(norm, rel=1e-12, abs=1e-150)
    c = norm**2 / 2 + 1 / m
    if c < 600:
        exact = c - lambertw(np.exp(c) / m).real
        assert score == pytest.approx(exact, rel=1e-12, abs=1e-12 * max(1.0, c))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=20), st.integers(1, 60))
def test_inverse_undoes_the_norm(scores: list[float], m: int) -> None:
    back = score_from_norm(norm_from_score(scores, m), m)
    np.testing.assert_allclose(back, scores, rtol=1e-12, atol=1e-300)


def test_m_may_differ_from_word_to_word() -> None:
    norms = np.array([[1.0, 2.0], [3.0, 4.0]])
    each = [[float(score_from_norm(n, m)) for n, m in zip(r, (5, 20), strict=True)] for r in norms]
    np.testing.assert_allclose(score_from_norm(norms, [5, 20]), each, rtol=1e-14)


@pytest.mark.parametrize("function", [norm_from_score, score_from_norm])
def test_m_must_be_positive(function: object) -> None:
    with pytest.raises(AttnscopeError, match="m = 0: expected more than 0"):
        function(1.0, [20, 0])  # type: ignore[operator]


def test_norm_must_not_be_negative() -> None:
    with pytest.raises(AttnscopeError, match=r"norm = -0.5: expected norms of 0 or more"):
        score_from_norm([1.0, -0.5], 20)
