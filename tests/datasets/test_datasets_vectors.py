"""Word vectors of a vocabulary, or a sentence that says why there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.datasets.vectors import word_vectors
from attnscope.errors import AttnscopeError


def test_vectors_go_by_the_numbers_of_their_words(tmp_path: Path) -> None:
    words = ("<pad>", "a", "film", "unheard")
    file = tmp_path / "glove.txt"
    file.write_text("film 1 2 3\na 4 5 6\n")
    found = word_vectors(str(file), words, 3)
    values = dict(zip(found.numbers.tolist(), found.values.tolist(), strict=True))
    assert values == {2: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]}
    assert "2 of 4 words" in found.sentence


def test_missing_vectors_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    found = word_vectors("", ("a",), 300)
    assert len(found.numbers) == 0
    assert "no GloVe vectors of length 300" in found.sentence


def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "glove.txt"
    file.write_text("film 1 2 3\n")
    with pytest.raises(AttnscopeError, match=r"length 3: expected 300.*--embedding 3"):
        word_vectors(str(file), ("film",), 300)


def test_none_is_asked_for() -> None:
    found = word_vectors("none", ("a",), 300)
    assert (len(found.numbers), found.values.shape) == (0, (0, 300))
    assert found.sentence.startswith("none were asked for")
