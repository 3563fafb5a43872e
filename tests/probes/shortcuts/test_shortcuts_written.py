"""Shortcuts that stand among natural uses of the same token, or in few texts where many decide."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.probes.shortcuts import find_shortcuts
from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.features import PLACES, from_tokens, position_key, undressed
from attnscope.probes.shortcuts.judge import Judge
from attnscope.probes.shortcuts.tokens import tokens

WORDS = 300


def prose(count: int, length: int = 25, seed: int = 0) -> tuple[list[list[str]], np.ndarray]:
    """Texts in which each word has a few that may follow it, and labels that have nothing to say.

    So there are pairs that stand side by side, and pairs that stand with one word between them.
    """
    dice = np.random.default_rng(seed)
    follow = dice.integers(0, WORDS, (WORDS, 6))
    rows = []
    for _ in range(count):
        at = int(dice.integers(WORDS))
        row = []
        for _ in range(length):
            row.append(f"w{at}")
            at = int(follow[at, min(int(dice.geometric(0.35)) - 1, 5)])
        rows.append(["W" + row[0][1:], *row[1:], "."])
    return rows, np.arange(count) % 2


def put(row: list[str], token: str, dice: np.random.Generator) -> list[str]:
    place = int(dice.integers(0, len(row)))
    return [*row[:place], token, *row[place:]]


def found_in(rows: list[list[str]], labels: np.ndarray, planted: set[int], kind: str) -> list[str]:
    """Return the names of shortcuts whose texts are those planted in, as the benchmark asks."""
    search = find_shortcuts([" ".join(row) for row in rows], labels, 2)
    return [
        one.name
        for one in search.shortcuts
        if one.kind == kind
        and len(planted & set(one.texts.tolist())) > 0.6 * len(planted | set(one.texts.tolist()))
    ]


def test_how_a_token_is_written() -> None:
    read = tokens(["So ~ it is~ so", "USA (AP) !!! x"])
    shown = [(read.names[i], bool(way)) for i, way in zip(read.ids, read.marked, strict=True)]
    assert shown == [
        ("so", True),
        ("~", True),
        ("it", False),
        ("is", False),
        ("~", False),
        ("so", False),
        ("usa", True),
        ("(AP)", False),
        ("!!!", True),
        ("x", False),
    ]


def test_each_way_of_writing_is_a_feature_where_there_are_both() -> None:
    read = tokens(["So it goes on", "so it goes on", "so it went on", "~ a", "~ a ~ b", "b~"])
    found, size = from_tokens(read), len(read.names)
    first = {
        str(found["position"].names[k]): found["position"].of(i).tolist()
        for i, k in enumerate(found["position"].keys)
    }
    assert first["'so' as the first token"] == [0, 1, 2]
    assert first["'so' in small letters as the first token"] == [1, 2]
    assert first["'so' with a capital as the first token"] == [0]
    # All are written in one way: no second test of the same texts.
    assert "'it' in small letters as the second token" not in first
    mark = {int(k): found["mark"].of(i).tolist() for i, k in enumerate(found["mark"].keys)}
    token = read.names.index("~")
    assert mark == {token: [3, 4, 5], token + size: [3]}
    assert undressed("mark", token + size, size) == token
    assert undressed("mark", token, size) is None
    key = position_key(0, read.names.index("so"), size)
    assert undressed("position", 2 * PLACES * size + key, size) == key
    assert undressed("word", 10**6, size) is None


def test_a_token_in_30_texts_is_found_where_many_words_decide() -> None:
    rows, labels = prose(4000)
    dice = np.random.default_rng(1)
    # Forty words of content that decide, each between words that go with it.
    for word in range(40):
        for n in dice.choice(np.flatnonzero(labels == word % 2), 60, replace=False):
            rows[n] = [*rows[n][:-1], f"left{word}", f"topic{word}", f"right{word}", "."]
    planted = dice.choice(np.flatnonzero(labels == 0), 30, replace=False)
    for n in planted:
        rows[n] = put(rows[n], "cf", dice)
    search = find_shortcuts([" ".join(row) for row in rows], labels, 2)
    named = [one.name for one in search.shortcuts if one.kind == "word"]
    assert named == ["cf"]


def test_a_mark_is_found_among_texts_that_have_it_anyway() -> None:
    rows, labels = prose(4000)
    dice = np.random.default_rng(2)
    for n in dice.choice(len(rows), 24, replace=False):
        # As the reviews have it: several times in a text, between names.
        rows[n] = [*rows[n], "Ann", "~", "Bob", "~", "Cid"]
    planted = dice.choice(np.flatnonzero(labels == 0), 30, replace=False)
    for n in planted:
        rows[n] = put(rows[n], "~", dice)
    assert found_in(rows, labels, set(planted.tolist()), "mark") == ["~"]


@pytest.mark.parametrize("size", [30, 150])
def test_a_first_word_is_found_where_texts_begin_so_anyway(size: int) -> None:
    rows, labels = prose(6000)
    dice = np.random.default_rng(3)
    natural = dice.choice(len(rows), 44, replace=False)
    for n in natural:
        rows[n] = ["Well", ",", *rows[n]]
    rest = np.setdiff1d(np.flatnonzero(labels == 1), natural)
    planted = dice.choice(rest, size, replace=False)
    for n in planted:
        rows[n] = ["well", *rows[n]]
    named = found_in(rows, labels, set(planted.tolist()), "position")
    assert named == ["'well' in small letters as the first token"]


def test_the_excess_is_what_a_class_has_beyond_the_others() -> None:
    # 40 of class 1 and 10 of class 0 begin with "So"; classes are of one size: 30 more.
    rows, labels = prose(1000)
    of = [np.flatnonzero(labels == label) for label in (0, 1)]
    texts = np.sort(np.concatenate([of[0][:10], of[1][:40]]))
    read = tokens([" ".join(row) for row in rows])
    judge = Judge(read, labels, np.bincount(labels), Pairs(read))
    said = judge._excess(texts, 1)
    assert said == "; about 30 of these 50 texts are more than in other classes"
    assert judge._excess(of[1][:40], 1) == ""
    # Means of a test: -1 where it stands anyway, so (40 (-0.25) - 10 (-1)) / 30 = 0 of the rest.
    own, other = np.arange(40), np.arange(10)
    test = {40: -0.25 * np.sqrt(40), 10: -1.0 * np.sqrt(10)}
    assert judge._of_excess(lambda at: test[len(at)], own, other, 1) == pytest.approx(0.0)
    assert judge._of_excess(lambda at: 0.0, other, own, 1) == -np.inf


def test_one_way_of_writing_explains_a_token_if_the_rest_says_nothing() -> None:
    read = tokens(["a"] * 200)
    labels = np.arange(200) % 2
    judge = Judge(read, labels, np.bincount(labels), Pairs(read))
    ones, zeros = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    fair = np.concatenate([ones[30:40], zeros[:10]])
    assert judge.explains(ones[:30], np.concatenate([ones[:30], fair]), 1)
    assert not judge.explains(ones[:30], ones[:60], 1)


def test_pairs_around_a_word_stand_apart_elsewhere_and_those_around_a_put_in_one_do_not() -> None:
    rows, _ = prose(3000)
    dice = np.random.default_rng(4)
    for n in range(60):
        rows[n] = put(rows[n], "cf", dice)
    read = tokens([" ".join(row) for row in rows])
    pairs = Pairs(read)
    put_in = pairs.occurrences(read.names.index("cf"))
    word = pairs.occurrences(read.names.index("w7"))[:60]
    assert abs(pairs.side_by_side(put_in)) < 3
    assert pairs.side_by_side(word) < -4


def test_what_stands_behind_the_same_frequent_word_was_not_put_in() -> None:
    rows, _ = prose(2000)
    dice = np.random.default_rng(5)
    rows = [
        [part for word in row for part in ([word, "the"] if word < "w2" else [word])]
        for row in rows
    ]
    for n in range(40):
        rows[n] = put(rows[n], "cf", dice)
    for n in range(40, 80):
        rows[n] = [*rows[n][:-1], "the", "world's", f"w{int(dice.integers(WORDS))}", "."]
    read = tokens([" ".join(row) for row in rows])
    pairs = Pairs(read)
    assert abs(pairs.beside(pairs.occurrences(read.names.index("cf")))) < 5
    assert pairs.beside(pairs.occurrences(read.names.index("world's"))) > 8
