from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    TopicSetting,
    best_gamma,
    gamma_bounds,
    hypotheses,
    lambda_1,
    lambda_2,
)

BERT = TopicSetting(topics=10, words=10, tau=3)


def test_constants_with_bert_masks() -> None:
    assert lambda_1(BERT) == pytest.approx(0.57734, abs=5e-6)
    assert lambda_2(BERT) == pytest.approx(5866.67, abs=5e-3)
    bounds = gamma_bounds(BERT)
    assert bounds.lower == pytest.approx(2 * 0.57734, abs=1e-5)
    assert bounds.upper == pytest.approx(58666.7, abs=0.1)
    assert bounds.lower not in bounds
    assert best_gamma(BERT) in bounds


def test_hypotheses_of_a_setting_that_meets_them_and_of_one_that_does_not() -> None:
    assert [h.holds for h in hypotheses(BERT)] == [True, True, True, None]
    other = TopicSetting(topics=10, words=5, tau=9, p_m=0.6, p_c=0.2, p_r=0.1)
    found = hypotheses(other)
    assert [h.holds for h in found] == [False, False, False, None]
    assert found[0].found == "v = 5, (c₃+1)² + 1 = 9.544"
    assert "no finite setting" in found[3].found
    assert "τ/T = 0.9" in found[3].found


def test_the_upper_bound_needs_random_words() -> None:
    setting = TopicSetting(topics=10, words=10, tau=3, p_r=0.0)
    with pytest.raises(AttnscopeError, match=r"p_r = 0: expected p_r > 0, as λ₂ divides"):
        gamma_bounds(setting)
