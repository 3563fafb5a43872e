"""The teacher's samples, and what cannot be learned from them."""

from __future__ import annotations

import pytest
import torch

from attnscope import AttnscopeError
from attnscope.tasks.teacher_head import TeacherHead


def test_tokens_come_from_their_seed_alone_and_diagonals_are_padded() -> None:
    tokens, teacher = TeacherHead().sample()
    torch.manual_seed(3)
    assert torch.equal(tokens, torch.randn(60, 6, 6, dtype=torch.float64))
    assert teacher.tolist() == [[1.5, -1, 0, 0, 0, 0], [2, 0, 1.2, 0, -0.7, 0]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"width": 4}, "teacher_values has 5 entries with width = 4"),
        ({"teacher_values": (0.0,)}, "a teacher without values answers 0"),
        ({"tokens": 1}, "a row of one token has attention 1 on it"),
    ],
)
def test_what_cannot_be_learned_is_said(settings: dict, sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        TeacherHead(**settings)


def test_one_token_is_enough_for_values() -> None:
    tokens, _ = TeacherHead(tokens=1, teacher_scores=()).sample()
    assert tokens.shape == (60, 1, 6)
