from __future__ import annotations

import numpy as np
import pytest

from attnscope.datasets.kinds import (
    EMPTY_TEXT,
    DocumentSet,
    LabelledText,
    ParallelText,
    Rows,
    Split,
)
from attnscope.datasets.text import Place
from attnscope.errors import AttnscopeError


def _split(*labels: int) -> Split:
    return Split([f"text {label}" for label in labels], np.array(labels, dtype=np.int64))


def test_rows_keep_order_and_count_what_is_empty() -> None:
    rows = Rows(("ham", "spam"))
    for text, label in (("one", "spam"), (" \t", "ham"), (" two ", "ham")):
        rows.add(text, label, Place("file", 1))
    split = rows.split()
    assert split.texts == ["one", "two"]
    assert split.labels.tolist() == [1, 0]
    assert split.labels.dtype == np.int64
    assert split.skipped == {EMPTY_TEXT: 1}
    assert len(split) == 2


def test_a_label_outside_the_set_is_named_with_its_place() -> None:
    with pytest.raises(
        AttnscopeError,
        match=r"^'file', line 7: the label 'eggs' is not in the set. Expected one of 'ham', 'spam'",
    ):
        Rows(("ham", "spam")).add("one", "eggs", Place("file", 7))


def test_texts_and_labels_must_be_as_many() -> None:
    with pytest.raises(AttnscopeError, match="1 texts and 2 labels"):
        Split(["one"], np.array([0, 1]))


def test_one_class_is_refused_for_training_only() -> None:
    with pytest.raises(AttnscopeError, match="all 2 training texts of 'own' have the label 'b'"):
        LabelledText("own", ("a", "b"), {"train": _split(1, 1)})
    data = LabelledText("own", ("a", "b"), {"train": _split(0, 1), "test": _split(1, 1)})
    assert len(data.splits["test"]) == 2


def test_labels_must_be_classes() -> None:
    with pytest.raises(AttnscopeError, match="split dev, go from 0 to 2: expected 0 to 1"):
        LabelledText("own", ("a", "b"), {"train": _split(0, 1), "dev": _split(0, 2)})


def test_an_empty_split_says_what_was_skipped() -> None:
    empty = Split([], np.array([], dtype=np.int64), {EMPTY_TEXT: 3})
    with pytest.raises(AttnscopeError, match=r"split train, holds no text \(skipped: 3 with empty"):
        LabelledText("own", ("a", "b"), {"train": empty})
    with pytest.raises(AttnscopeError, match="split train, holds no text: expected"):
        ParallelText("own", ("de", "en"), {"train": ([], [])})
    with pytest.raises(AttnscopeError, match="split train, holds no text: expected"):
        DocumentSet("own", {"train": []})


def test_pairs_must_be_as_many() -> None:
    with pytest.raises(AttnscopeError, match="has 2 sentences in de and 1 in en"):
        ParallelText("own", ("de", "en"), {"train": (["a", "b"], ["c"])})
