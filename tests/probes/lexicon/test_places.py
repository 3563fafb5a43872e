"""Whether words tell places, on corpora where it is known."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.places import told_places


def test_permutations_agree_exactly_by_chance() -> None:
    dice = np.random.default_rng(0)
    rows = [dice.permutation(7) for _ in range(80)]
    found = told_places(rows, rows, vocabulary=7, outputs=7)
    assert found.agreed == pytest.approx(1 / 7)
    assert found.chance == pytest.approx(1 / 7)
    assert not found.learnable


def test_a_dictionary_is_told_and_shuffled_pairs_are_not() -> None:
    dice = np.random.default_rng(1)
    names = dice.permutation(30)
    source = [dice.permutation(30)[:6] for _ in range(300)]
    target = [names[row][::-1] for row in source]
    found = told_places(source, target, vocabulary=30, outputs=30)
    assert found.agreed > 0.95
    assert found.shuffled < 0.4
    assert found.learnable
    mixed = [target[i] for i in dice.permutation(300)]
    assert not told_places(source, mixed, vocabulary=30, outputs=30).learnable


def test_bad_input_is_told() -> None:
    one = [np.array([0])]
    with pytest.raises(AttnscopeError, match="3 sources and 3 targets"):
        told_places(one * 3, one * 3, vocabulary=1, outputs=1)
    with pytest.raises(AttnscopeError, match="no source of two words"):
        told_places(one * 9, one * 9, vocabulary=1, outputs=1)
