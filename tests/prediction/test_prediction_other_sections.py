"""Shortcuts, parallel and running text as parts of a prediction."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText, Split
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Asked, AskedLabelled
from attnscope.prediction.running_text import induction_section, topics_section
from attnscope.prediction.shortcuts import shortcuts_section
from attnscope.prediction.translation import alignment_section


def reviews(count: int) -> LabelledText:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, count)
    words = ("film", "plot", "cast", "end", "scene", "voice", "idea")
    texts = [" ".join(random.choice(words, 8)) for _ in labels]
    texts = [
        f"{t} 9/10" if y and i % 3 == 0 else t
        for i, (t, y) in enumerate(zip(texts, labels, strict=True))
    ]
    return LabelledText(
        "mine",
        ("bad", "good"),
        {"train": Split(texts, labels), "test": Split(texts[:5], labels[:5])},
    )


def test_a_rating_is_named_with_its_share_and_how_to_go_on() -> None:
    made = shortcuts_section(AskedLabelled(reviews(900)))
    (row,) = made.tables[0].rows
    assert (row[0].split(" (")[0], *row[1:3]) == ("9/10", "rating", "good")
    assert "give" in made.sentences[0]
    assert made.again == ("attnscope predict mine --without 9/10",)
    assert any("5 of the 5 test texts" in said for said in made.sentences)
    gone = shortcuts_section(AskedLabelled(reviews(900), without=("9/10",)))
    assert gone.sentences[0] == "No shortcut was found."


def test_too_few_texts_cannot_tell() -> None:
    made = shortcuts_section(AskedLabelled(reviews(40)))
    assert made.sentences[0].startswith("Cannot tell: 40 texts are too few")


def test_words_are_aligned_and_the_diagonal_is_beside() -> None:
    random = np.random.default_rng(0)
    rows = [random.permutation(20)[:6] for _ in range(400)]
    source = [" ".join(f"s{i}" for i in row) for row in rows]
    target = [" ".join(f"t{i}" for i in row[::-1]) for row in rows]
    made = alignment_section(Asked(ParallelText("mine", ("aa", "bb"), {"train": (source, target)})))
    assert "100% of the source words" in made.sentences[0]
    assert "in the words, not in the order" in made.sentences[1]
    pairs = {(row[0][1:], row[1][1:]) for row in made.tables[0].rows}
    assert pairs
    assert all(one == other for one, other in pairs)


def test_unequal_lines_are_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match=r"2 sentences in aa and 1 in bb: expected as many"):
        ParallelText("mine", ("aa", "bb"), {"train": (["a", "b"], ["c"])})


def test_repeated_pairs_are_counted_and_few_documents_have_no_topics() -> None:
    text = " ".join(f"w{i}" for i in range(50)) + " "
    asked = Asked(DocumentSet("mine", {"train": [text * 3] * 4}))
    made = induction_section(asked)
    assert "100% of the time the same word follows" in made.sentences[0]
    assert "pays well" in made.sentences[0]
    assert len(made.tables[0].rows) == 4
    topics = topics_section(asked)
    assert topics is not None
    assert topics.sentences[0].startswith("Cannot tell: 4 documents are too few")
