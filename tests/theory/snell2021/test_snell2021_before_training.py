"""Prediction before training: against sums by hand, and against word pairs that are known."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.probes.lexicon.agreement import mean_agreement
from attnscope.probes.lexicon.cells import Cells
from attnscope.theory.snell2021.before_training import EM, IBM, AskedCells

# Three sentences with their classes; word 3 is good, word 4 bad, word 5 neither.
SOURCE = [[3, 5], [4, 5, 5], [3, 3, 4]]
CLASSES = [[1], [0], [1]]


def copies(sentences: int = 150) -> tuple[AskedCells, list[list[int]], list[list[int]]]:
    """Return a translation in which words become themselves in the order of their numbers."""
    dice = np.random.default_rng(0)
    source = [dice.integers(0, 40, size=dice.integers(4, 9)) for _ in range(2 * sentences)]
    asked = [(x, word) for x in source[sentences:] for word in np.sort(x)]
    cells = Cells([len(x) for x, _ in asked])
    words = np.concatenate([x for x, _ in asked])
    train = [x.tolist() for x in source[:sentences]]
    goals = np.array([word for _, word in asked])
    return AskedCells(cells, words, goals, 40, 40), train, [sorted(x) for x in train]


def test_counts_are_sums_by_hand() -> None:
    asked = AskedCells(Cells([2, 3]), np.array([3, 5, 4, 5, 2]), np.array([1, 0]), 6, 2)
    found = asked.predicted(SOURCE, CLASSES)
    # C by word: good (0, 1/2 + 2/3), bad (1/3, 1/3), so (2/3, 1/2).
    counts = [7 / 6 - 7 / 12, 1 / 2 - 7 / 12, 0, 2 / 3 - 7 / 12, 0]
    np.testing.assert_allclose(found["counts"], counts, rtol=1e-12, atol=1e-15)
    first, second = 1.0, 3 / 7
    third, fourth = 1 / 2, 4 / 7
    alpha = [
        first / (first + second),
        second / (first + second),
        third / (third + fourth),
        fourth / (third + fourth),
        0,  # never seen in training
    ]
    np.testing.assert_allclose(found["ibm"], alpha, rtol=1e-12)


def test_all_but_counts_are_weights_of_rows() -> None:
    asked, source, target = copies()
    found = asked.predicted(source, target)
    assert set(found) == {"counts", IBM, EM}
    for name in (IBM, EM):
        weights = asked.cells.padded(found[name])
        np.testing.assert_allclose(np.nansum(weights, axis=1), 1, rtol=1e-12)


def test_arrays_and_lists_are_the_same_pairs() -> None:
    asked, source, target = copies(20)
    arrays = [[np.array(x) for x in side] for side in (source, target)]
    for name, values in asked.predicted(*arrays).items():
        assert np.array_equal(values, asked.predicted(source, target)[name])


def test_pairs_say_which_word_becomes_which() -> None:
    """Every word becomes itself, which EM finds out."""
    asked, source, target = copies()
    goal = asked.cells.padded(asked.source == np.repeat(asked.target, asked.cells.length))
    found = asked.predicted(source, target)
    agreed = {
        name: 100 * mean_agreement(goal, asked.cells.padded(found[name]), asked.cells.mask).value
        for name in (IBM, EM)
    }
    chance = asked.permuted(source, target, goal, 11)[IBM]
    assert len(chance) == 11 == len(set(chance))
    # A sentence that holds the word twice has two places to look at, and neither is preferred.
    best = 100 * mean_agreement(goal, goal, asked.cells.mask).value
    assert agreed[EM] > best - 1
    assert agreed[IBM] > max(chance) + 20


def test_pairs_put_together_at_random_are_drawn_by_seed() -> None:
    asked, source, target = copies(30)
    goal = asked.cells.padded(asked.source == np.repeat(asked.target, asked.cells.length))
    few, more = (asked.permuted(source, target, goal, times) for times in (2, 4))
    assert few == {name: values[:2] for name, values in more.items()}
    order = np.random.default_rng(0).permutation(len(target))
    shuffled = asked.predicted(source, [target[m] for m in order])[IBM]
    agreed = mean_agreement(goal, asked.cells.padded(shuffled), asked.cells.mask).value
    assert few[IBM][0] == pytest.approx(100 * agreed, rel=1e-12)
