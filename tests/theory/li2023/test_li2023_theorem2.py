from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    TopicSetting,
    measured_gap,
    ridge_value_blocks,
    topic_gap,
    value_blocks,
    value_residual,
)

SETTINGS = [
    TopicSetting(topics=10, words=10, tau=3),
    TopicSetting(topics=6, words=2, tau=5, p_m=0.4, p_c=0.3, p_r=0.05),
    TopicSetting(topics=5, words=4, tau=1, p_m=0.2, p_c=0.0, p_r=0.4),
    TopicSetting(topics=4, words=1, tau=2, p_m=0.7, p_c=0.1, p_r=0.0),
    TopicSetting(topics=2, words=7, tau=1, p_m=0.15, p_c=0.4, p_r=0.5),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_theorem_2_is_the_least_squares_solution_of_least_norm(
    setting: TopicSetting, documents: Callable
) -> None:
    masked, words = documents(setting)
    least = np.linalg.lstsq(masked, words, rcond=1e-10)[0].T
    found = value_blocks(setting).matrix(setting)
    assert np.abs(found - least).max() < 1e-10
    assert value_residual(found, setting).max() < 1e-12
    assert measured_gap(found, setting) == pytest.approx(topic_gap(setting), rel=1e-12)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("weight_decay", [1e-6, 1e-3, 0.5, 100.0])
def test_ridge_is_that_of_the_mean_over_documents(
    setting: TopicSetting, weight_decay: float, documents: Callable
) -> None:
    masked, words = documents(setting)
    moment = masked.T @ masked / len(masked) + weight_decay * np.eye(masked.shape[1])
    exact = np.linalg.solve(moment, masked.T @ words / len(masked)).T
    found = ridge_value_blocks(setting, weight_decay).matrix(setting)
    assert np.abs(found - exact).max() < 1e-10


@pytest.mark.parametrize("setting", SETTINGS)
def test_ridge_at_zero_is_theorem_2(setting: TopicSetting) -> None:
    ridge, limit = ridge_value_blocks(setting, 0.0), value_blocks(setting)
    np.testing.assert_allclose(ridge.matrix(setting), limit.matrix(setting), atol=1e-14)


def test_values_with_bert_masks_and_the_way_to_the_limit() -> None:
    setting = SETTINGS[0]
    limit = value_blocks(setting)
    found = [limit.mask, limit.different, limit.same, limit.same - limit.different]
    np.testing.assert_allclose(found, [0.0541908, -0.0075867, 0.1080202, 0.1156069], atol=5e-8)
    errors = [
        np.abs(ridge_value_blocks(setting, decay).matrix(setting) - limit.matrix(setting)).max()
        for decay in (1e-6, 1e-4)
    ]
    np.testing.assert_allclose(errors, [5.4e-5, 5.1e-3], rtol=0.01)


def test_the_limit_does_not_depend_on_tau_but_the_ridge_does() -> None:
    few, many = TopicSetting(topics=10, words=10, tau=2), TopicSetting(topics=10, words=10, tau=9)
    assert value_blocks(few) == value_blocks(many)
    assert ridge_value_blocks(few, 1e-3).same > 2 * ridge_value_blocks(many, 1e-3).same


def test_weight_decay_must_not_be_negative() -> None:
    with pytest.raises(AttnscopeError, match=r"weight_decay = -1: expected a number of 0 or more"):
        ridge_value_blocks(SETTINGS[0], -1.0)
