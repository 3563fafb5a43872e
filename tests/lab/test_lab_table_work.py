"""What the process that reads tables says, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_folders import EVIL

from attnscope.errors import AttnscopeError
from attnscope.lab import table_work
from attnscope.lab.table_page import EXAMPLE

WISH: dict[str, Any] = {"smoothing": 1.0, "epochs": 300, "table": EXAMPLE}


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    table_work._tables.clear()


def test_a_table_is_said_once_and_asked_by_its_key_afterwards() -> None:
    *progress, said = table_work.said(WISH)
    assert [part["kind"] for part in progress] == ["progress"] * 3
    assert said["kind"] == "said"
    names = [section["name"] for section in said["sections"]]
    assert names == ["verdict", "words", "shortcuts", "data"]
    assert said["sections"][0]["html"].startswith('<p class="told">Single words suffice')
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    (again,) = table_work.said({"key": said["key"], "smoothing": 30.0})
    assert again["smoothing"] == 30.0
    (own,) = table_work.said({"key": said["key"], "smoothing": 1.0, "sentence": "a dull plot"})
    assert own["sentences"][0]["words"] == ["a", "dull", "plot"]
    weights = own["sentences"][0]["said"]
    assert weights[1] == max(weights)


def test_a_training_comes_in_parts_and_ends_with_a_sentence() -> None:
    *_, said = table_work.said(WISH)
    *parts, last = table_work.trained({**WISH, "key": said["key"]})
    assert "item" in parts[0]
    assert not any("item" in part for part in parts[1:])
    moments = sum(len(part["epochs"]) for part in parts)
    assert moments == sum(len(part["weights"][0]) for part in parts)
    assert last["said"].startswith("In ")
    assert "shuffled labels" in last["said"]


def test_what_is_forgotten_is_asked_for_again() -> None:
    assert [*table_work.said({"key": "0" * 32, "smoothing": 1.0})] == [{"kind": "gone"}]
    assert [*table_work.trained({"key": "0" * 32, "smoothing": 1.0})] == [{"kind": "gone"}]
    *_, first = table_work.said(WISH)
    for n in range(table_work.TABLES):
        list(table_work.said({**WISH, "table": EXAMPLE + f"\ngood,text number {n}"}))
    assert [*table_work.said({"key": first["key"], "smoothing": 1.0})] == [{"kind": "gone"}]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("label,text\na,b\na,c\n", "have the label 'a': expected two classes"),
        ("label,text\na,b,c\n", "'the pasted table', line 2: there are 3 columns"),
        ("label,text\n,b\n", "line 2: the label is empty"),
        ("just words", "there are 1 columns where 2 were expected"),
        ('label,text\na,"open\n', "is not CSV"),
        ("label,text\na,b\nb,c\n", "cannot tell: no word occurs 3 times in the 2 texts"),
        (
            "label,text\n" + "".join(f"{i / 7},text {i}\n" for i in range(40)),
            "a number to regress",
        ),
        ("id,text\n1,one\n2,two\n", "names no label column"),
    ],
)
def test_a_bad_table_is_a_sentence_that_quotes_it(table: str, said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        list(table_work.said({**WISH, "table": table}))
    assert not any(kept.fixed for kept in table_work._tables.values())


def test_data_are_never_markup() -> None:
    rows = [f'{EVIL},"{EVIL} {word}"' for word in ("one", "two", "three") for _ in range(5)]
    rows += [f"plain,other words {n % 3}" for n in range(15)]
    *_, said = table_work.said({**WISH, "table": "\n".join(["label,text", *rows])})
    for section in said["sections"]:
        assert "<img" not in section["html"]
        assert "<script" not in section["html"]


def test_a_parallel_corpus_is_no_table(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
    with pytest.raises(AttnscopeError, match="is no labelled text"):
        list(table_work.said({"name": f"{tmp_path}/a:{tmp_path}/b", "smoothing": 1.0}))
