"""Real sentences as bags: words, splits, padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.datasets.load import labelled
from attnscope.errors import AttnscopeError
from attnscope.tasks.text_bags import PAD, bag_words, text_bags


def made(**splits: list[tuple[str, int]]) -> LabelledText:
    return LabelledText(
        "made",
        ("bad", "good"),
        {
            name: Split([text for text, _ in rows], np.array([label for _, label in rows]))
            for name, rows in splits.items()
        },
    )


TEXT = made(
    train=[("good , good film", 1), ("a bad film .", 0), ("!!", 0)],
    dev=[("unheard words only", 1), ("film", 0)],
    test=[("bad", 0)],
)


def test_sentences_become_bags_over_one_dictionary() -> None:
    text = text_bags(TEXT)
    assert text.words == ("a", "bad", "film", "good", "only", "unheard", "words", PAD)
    assert text.train.mask is not None
    rows = [
        [text.words[i] for i in ids[mask]]
        for ids, mask in zip(text.train.ids, text.train.mask, strict=True)
    ]
    assert rows == [["good", "good", "film"], ["a", "bad", "film"]]
    assert text.train.labels.tolist() == [1, 0]
    assert text.train.occurrences.tolist() == [1, 1, 2, 1, 0, 0, 0, 0]


def test_what_is_left_out_or_unknown_is_counted() -> None:
    text = text_bags(TEXT)
    assert text.wordless == {"train": 1, "dev": 0, "test": 0}
    assert [text.unseen(split) for split in ("train", "dev", "test")] == [0, 1, 0]


def test_the_released_code_takes_padding_for_a_word() -> None:
    masked, padded = text_bags(TEXT), text_bags(TEXT, padded=True)
    assert padded.words == masked.words
    for split in ("train", "dev", "test"):
        ours, theirs = getattr(masked, split), getattr(padded, split)
        assert theirs.mask is None
        assert theirs.ids.shape[1] == 3
        pads = theirs.ids == len(padded.words) - 1
        assert (pads.sum(dim=1) == 3 - ours.lengths).all()
        torch.testing.assert_close(theirs.ids[~pads], ours.words)


def test_a_word_is_found_by_its_spelling() -> None:
    text = text_bags(TEXT)
    assert text.words[text.number("bad")] == "bad"
    for word in ("unheard", "nowhere", PAD):
        with pytest.raises(AttnscopeError, match=f"holds the word '{word}'".replace("$", r"\$")):
            text.number(word)


@given(st.integers(10, 60), st.sets(st.sampled_from(["dev", "test"])))
def test_missing_splits_are_set_apart_once_and_for_all(rows: int, given_splits: set[str]) -> None:
    splits = {name: [("held out", 0)] for name in given_splits}
    splits["train"] = [(f"w{i} film", i % 2) for i in range(rows)]
    first, again = text_bags(made(**splits)), text_bags(made(**splits))
    missing = 2 - len(given_splits)
    assert len(first.train) == rows - missing * max(1, rows // 10)
    parts = [first.train] + [getattr(first, s) for s in ("dev", "test") if s not in given_splits]
    held = [row.tolist() for part in parts for row in part.ids]
    assert len(held) == rows == len({tuple(row) for row in held})
    torch.testing.assert_close(first.train.ids, again.train.ids)


def test_too_little_text_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="has 2 training texts and no dev and no test split"):
        text_bags(made(train=[("a", 0), ("b", 1)]))
    with pytest.raises(AttnscopeError, match="test texts of made hold no word"):
        text_bags(made(train=[("a", 0), ("b", 1)], dev=[("a", 0)], test=[("...", 1)]))


def test_no_word_is_empty() -> None:
    assert bag_words("-- ' .\t\n") == []
    assert bag_words("  naïve café_2  ") == ["naïve", "café_2"]


def test_sst2_has_the_papers_counts(real_sst2: Path) -> None:
    text = text_bags(labelled("sst2", data_dir=real_sst2))
    assert (len(text.train), len(text.dev), len(text.test)) == (6920, 872, 1821)
    powerful, best = text.number("powerful"), text.number("best")
    assert text.train.occurrences[[powerful, best]].tolist() == [36, 128]
    assert sum(text.wordless.values()) == 0
