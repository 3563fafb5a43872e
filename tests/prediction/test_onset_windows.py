"""Running text cut into windows of its commonest content words, and masked."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.prediction.onset_windows import (
    COPIES,
    LENGTH,
    MOST,
    VOCABULARY,
    Windows,
    windows_of,
)


def test_windows_end_with_their_text_and_short_ends_are_dropped() -> None:
    long = " ".join(["apple", "pear"] * 18)  # 36 words: 32 and an end of 4
    short = "The apple, a pear and 3 apples!"  # three content words
    made = windows_of([long, short])
    assert made.words == ("apple", "pear", "apples")
    assert [len(row) for row in made.rows] == [LENGTH, 4]
    assert made.rows[1].tolist() == [1, 2, 1, 2]
    assert (made.texts, made.counted, made.found, made.vocabulary) == (2, 39, 2, 4)
    assert made.share == pytest.approx(36 / 39)


def test_the_commonest_words_are_taken_and_many_windows_are_sampled() -> None:
    dice = np.random.default_rng(0)
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(80)]
    share = np.arange(80, 0, -1) / sum(range(81))
    made = windows_of([" ".join(dice.choice(words, LENGTH, p=share)) for _ in range(MOST + 200)])
    assert len(made.words) == VOCABULARY
    assert (len(made.rows), made.found) == (MOST, MOST + 200)
    assert max(int(row.max()) for row in made.rows) == VOCABULARY
    assert made.share == pytest.approx(float(share[:VOCABULARY].sum()), abs=0.02)


def test_masks_are_those_of_the_paper_and_differ_between_copies() -> None:
    rows = tuple(np.full(20, 1 + i % 9) for i in range(200))
    made = Windows(tuple("abcdefghi"), rows, 200, 4000, 200)
    documents = made.masked(3)
    assert documents.ids.shape == (200 * COPIES, 20)
    picked = documents.selected.numpy()
    assert picked.any(axis=1).all()
    # Conditioned on one selected position or more, 15 % become 0.15/(1 - 0.85^20).
    assert picked.mean() == pytest.approx(0.15 / (1 - 0.85**20), abs=0.005)
    shown = documents.visible.numpy()[picked]
    same = (shown == documents.ids.numpy()[picked]).mean()
    assert (shown == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert same == pytest.approx(0.1 + 0.1 / 9, abs=0.015)
    assert (documents.visible.numpy()[~picked] == documents.ids.numpy()[~picked]).all()
    assert (picked[:200] != picked[200:400]).any()
    again = made.masked(3)
    assert (again.visible.numpy() == documents.visible.numpy()).all()


def test_dealing_words_anew_keeps_words_and_lengths() -> None:
    rows = tuple(np.full(n, 1 + n % 3) for n in (4, 7, 9, 32))
    made = Windows(("a", "b", "c"), rows, 4, 52, 4)
    mixed = made.shuffled(0)
    assert [len(row) for row in mixed.rows] == [4, 7, 9, 32]
    every = [np.sort(np.concatenate(each.rows)) for each in (made, mixed)]
    np.testing.assert_array_equal(*every)
    assert any((one != other).any() for one, other in zip(made.rows, mixed.rows, strict=True))


def test_nothing_cannot_be_masked() -> None:
    with pytest.raises(AttnscopeError, match="no window to mask"):
        windows_of(["one"]).masked(0)
