"""Synthetic text: words return as often, and foretell as much, as asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.repetition import Repetition


def foretold(task: Repetition, count: int = 300) -> tuple[float, float]:
    """Return how often the last word has occurred with a successor, and how often it follows."""
    tokens = task.stream(0).batch(torch.arange(count)).numpy()
    before, again = 0, 0
    half = task.length // 2
    for row in tokens:
        after: dict[int, int] = {}
        for t in range(1, task.length):
            if t >= half and int(row[t - 1]) in after:
                before += 1
                again += after[int(row[t - 1])] == row[t]
            after[int(row[t - 1])] = int(row[t])
    return before / (count * (task.length - half)), again / max(before, 1)


def test_the_first_half_repeats_nothing() -> None:
    task = Repetition(40, 16)
    tokens = task.stream(1).batch(torch.arange(50)).numpy()
    assert all(len(set(row[:8])) == 8 for row in tokens)
    again = task.stream(1).batch(torch.arange(50))
    assert np.array_equal(again.numpy(), tokens)


def test_reliability_is_what_was_asked_and_frequency_rises_with_it() -> None:
    often, sure = foretold(Repetition(60, 24, 0.9, 0.8))
    assert sure == pytest.approx(0.8, abs=0.05)
    seldom, unsure = foretold(Repetition(60, 24, 0.1, 0.1))
    assert unsure < 0.2
    assert seldom < often / 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"length": 6}, "length = 6: expected an even number of 8"),
        ({"length": 9}, "length = 9"),
        ({"words": 20, "length": 32}, "words = 20 for a length of 32"),
        ({"frequency": 1.5}, "frequency = 1.5"),
    ],
)
def test_what_is_refused_is_quoted(given: dict[str, object], said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        Repetition(**given)  # type: ignore[arg-type]
