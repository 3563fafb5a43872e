from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.lu2021 import movement

TOPIC = np.array([True, True, False, False])


def test_ratios_by_hand() -> None:
    start = np.array([1.0, 1.0, 0.0, 0.0]), np.ones((4, 2))
    scores = np.array([3.0, 5.0, -0.6, 0.3])
    embeddings = 1 + np.array([[3.0, 4.0], [0.0, 15.0], [0.6, 0.8], [0.0, -2.0]])
    found = movement(*start, scores, embeddings, TOPIC)
    assert found.score_mean == pytest.approx(0.45 / 3)
    assert found.score_max == pytest.approx(0.6 / 3)
    assert found.embedding_mean == pytest.approx(1.5 / 10)
    assert found.embedding_max == pytest.approx(2 / 10)


def test_there_must_be_both_kinds_and_a_movement() -> None:
    state = np.zeros(4), np.zeros((4, 2))
    with pytest.raises(AttnscopeError, match="marks 0 of 4 words"):
        movement(*state, *state, np.zeros(4))
    with pytest.raises(AttnscopeError, match="no topic word's score has moved"):
        movement(*state, *state, TOPIC)
