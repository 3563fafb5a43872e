from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    TopicSetting,
    best_attention,
    diagonal_bounds,
    diagonal_value_blocks,
    hypotheses,
)


def test_bounds_with_bert_masks() -> None:
    found = diagonal_bounds(TopicSetting(topics=100, words=300, tau=20))
    assert found.beta.lower == pytest.approx(0.88 * 3 * 20)
    fourth = 0.865 / (299**0.5 - 2 + 0.135) * (0.88 / 0.015) * 300
    assert found.beta.upper == pytest.approx(fourth * 100)
    assert found.alpha_per_beta == pytest.approx(1 / (299 * 0.865))


@pytest.mark.parametrize("tau", [20, 40, 60, 80])
@pytest.mark.parametrize("mask", ["paper", "attended"])
def test_the_exact_minimum_keeps_to_them(tau: int, mask: str) -> None:
    setting = TopicSetting(topics=100, words=300, tau=tau)
    assert all(h.holds is not False for h in hypotheses(setting))
    best = best_attention(setting, diagonal_value_blocks(setting), mask)
    assert diagonal_bounds(setting).holds(*best)


def test_each_bound_can_fail() -> None:
    bounds = diagonal_bounds(TopicSetting(topics=100, words=300, tau=20))
    assert bounds.holds(0.0, 1e4)
    assert not bounds.holds(50.0, 1e4)
    assert not bounds.holds(0.0, 50.0)
    assert not bounds.holds(0.0, 1e6)


def test_topics_must_have_enough_words() -> None:
    with pytest.raises(AttnscopeError, match=r"words = 4: expected more than 4.478"):
        diagonal_bounds(TopicSetting(topics=10, words=4, tau=3))
    assert diagonal_bounds(TopicSetting(topics=10, words=5, tau=3)).beta.upper > 0
    with pytest.raises(AttnscopeError, match="as λ₄ divides by p_m p_r"):
        diagonal_bounds(TopicSetting(topics=10, words=10, tau=3, p_r=0.0))
