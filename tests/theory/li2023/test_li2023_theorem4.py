from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attnscope.theory.li2023 import (
    TopicSetting,
    diagonal_value_blocks,
    embedding_member,
    measured_gap,
    topic_gap,
    value_blocks,
    value_family_residual,
    value_member,
    value_residual,
)

SETTING = TopicSetting(topics=5, words=3, tau=2, p_m=0.3, p_c=0.2, p_r=0.15)


def test_random_members_are_optimal_without_a_bias(documents: Callable) -> None:
    rng = np.random.default_rng(2)
    member = value_member(SETTING, rng.normal(size=16), rng.normal(size=(16, 15)))
    masked, words = documents(SETTING)
    np.testing.assert_allclose(masked @ member.T, words, atol=1e-13)
    assert value_residual(member, SETTING).max() < 1e-13
    assert value_family_residual(member, SETTING).max() < 1e-13
    assert measured_gap(member, SETTING) == pytest.approx(topic_gap(SETTING), rel=1e-12)


def test_values_of_theorems_2_and_5_belong_and_those_of_theorem_1_do_not() -> None:
    for blocks in (value_blocks(SETTING), diagonal_value_blocks(SETTING)):
        assert value_family_residual(blocks.matrix(SETTING), SETTING).max() < 1e-14
    needs_bias = embedding_member(SETTING)
    assert value_family_residual(needs_bias, SETTING)[1:].min() > 1e-3
    assert value_residual(needs_bias, SETTING)[1:].min() > 1e-3
