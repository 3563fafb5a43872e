from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import TopicSetting, measured_gap, prediction_residual, topic_gap

SETTING = TopicSetting(topics=5, words=3, tau=2, p_m=0.3, p_c=0.2, p_r=0.15)


def test_residual_is_the_worst_over_all_documents(documents: Callable) -> None:
    rng = np.random.default_rng(0)
    matrix, bias = rng.normal(size=(16, 16)), rng.normal(size=16)
    masked, words = documents(SETTING)
    errors = masked @ matrix.T + bias - words
    found = prediction_residual(matrix, SETTING, bias)
    np.testing.assert_allclose(found, np.abs(errors).max(axis=0), rtol=1e-13)


def test_gap_by_hand() -> None:
    matrix = np.full((16, 16), 2.0)
    matrix[0] = matrix[:, 0] = 100.0
    for t in range(5):
        matrix[1 + 3 * t : 4 + 3 * t, 1 + 3 * t : 4 + 3 * t] = 5.0
    assert measured_gap(matrix, SETTING) == pytest.approx(3.0)
    assert topic_gap(SETTING) == pytest.approx(1 / (3 * (1 - 0.8 * 0.3)))


def test_a_matrix_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"shape \(15, 15\): expected \(16, 16\)"):
        measured_gap(np.zeros((15, 15)), SETTING)
