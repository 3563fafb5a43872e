"""Pairs of words by their parity, against counting text by text."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.probes.evidence.bags import labelled_bags
from attnscope.probes.evidence.parity import best_parity


@pytest.mark.parametrize("classes", [2, 3])
def test_it_finds_the_pair_that_counting_finds(classes: int) -> None:
    dice = np.random.default_rng(classes)
    rows = [np.unique(dice.integers(0, 8, 4)) for _ in range(200)]
    labels = dice.integers(0, classes, 200)
    held = np.array([[word in row for word in range(8)] for row in rows])
    found = best_parity(labelled_bags(rows, labels, 8, classes))
    assert found is not None
    largest = 0.0
    for a in range(8):
        for b in range(a):
            odd = held[:, a] ^ held[:, b]
            for c in range(classes):
                phi = np.corrcoef(odd, labels == c)[0, 1]
                largest = max(largest, abs(phi) * np.sqrt(199))
    assert found.z == pytest.approx(largest)


def test_chance_is_seldom_taken_for_a_pair() -> None:
    alarms = 0
    for seed in range(60):
        dice = np.random.default_rng(seed)
        rows = [np.unique(dice.integers(0, 12, 5)) for _ in range(150)]
        found = best_parity(labelled_bags(rows, dice.integers(0, 2, 150), 12, 2))
        alarms += found is not None and found.sure
    assert alarms <= 8


def test_xor_is_sure_and_single_words_do_not_hide_it() -> None:
    dice = np.random.default_rng(0)
    held = dice.integers(0, 2, (400, 6))
    rows = [np.flatnonzero(np.r_[row, 1]) for row in held]
    found = best_parity(labelled_bags(rows, held[:, 1] ^ held[:, 4], 7, 2))
    assert found is not None
    assert {found.first, found.second} == {1, 4}
    assert found.sure
    assert found.accuracy == 1.0
    assert best_parity(labelled_bags([np.array([0])] * 4, np.array([0, 1, 0, 1]), 1, 2)) is None
