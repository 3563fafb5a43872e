"""The count table against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.counts import (
    Sentences,
    bags,
    count_table,
    number_words,
    sentences,
    translation_table,
)

WORDS = 5
Lists = list[list[int]]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Lists, Lists]:
    word = st.integers(0, WORDS - 1)
    both = draw(
        st.lists(
            st.tuples(st.lists(word, min_size=1, max_size=6), st.lists(word, max_size=6)),
            min_size=1,
            max_size=8,
        )
    )
    return [x for x, _ in both], [y for _, y in both]


def by_hand(source: Lists, target: Lists) -> np.ndarray:
    table = np.zeros((WORDS, WORDS))
    for x, y in zip(source, target, strict=True):
        for i in x:
            for o in y:
                table[i, o] += 1 / len(x)
    return table


@given(pairs())
def test_counts_are_a_plain_loops(case: tuple[Lists, Lists]) -> None:
    source, target = (sentences(side, vocabulary=WORDS) for side in case)
    found, expected = count_table(source, target), by_hand(*case)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    # Every target word is counted once, shared among the words of its source.
    assert found.sum() == pytest.approx(len(target.ids))
    table = translation_table(found).toarray()
    for row, counts in zip(table, expected, strict=True):
        np.testing.assert_allclose(row, counts / counts.sum() if counts.any() else 0, atol=1e-12)


@given(pairs())
def test_padded_arrays_are_the_lists(case: tuple[Lists, Lists]) -> None:
    source, target = case
    padded = []
    for side in case:
        width = max(map(len, side))
        ids = np.array([row + [-1] * (width - len(row)) for row in side], dtype=np.int64)
        padded.append(sentences(ids.reshape(len(side), width), ids != -1, WORDS))
    found = count_table(*padded)
    np.testing.assert_allclose(found.toarray(), by_hand(source, target), atol=1e-12)


def test_an_array_without_a_mask_is_full() -> None:
    found = sentences(np.array([[0, 2], [1, 1]]))
    assert (found.ids.tolist(), found.starts.tolist(), found.vocabulary) == (
        [0, 2, 1, 1],
        [0, 2, 4],
        3,
    )
    assert bags(found).toarray().tolist() == [[1, 0, 1], [0, 2, 0]]
    assert sentences(found) is found


def test_words_are_numbered_as_they_come() -> None:
    found, words = number_words([["der", "Hund"], [], ["der", "der"]])
    assert found.ids.tolist() == [0, 1, 0, 0]
    assert found.lengths.tolist() == [2, 0, 2]
    assert words == ("der", "Hund")


def test_tables_of_nothing_are_empty() -> None:
    assert count_table([], []).shape == (0, 0)
    assert translation_table(sparse.csr_array((2, 3))).toarray().tolist() == [[0] * 3] * 2


def test_the_argument_is_left_alone() -> None:
    counts = count_table([[0, 1]], [[0, 1]])
    before = counts.toarray()
    translation_table(counts)
    np.testing.assert_array_equal(counts.toarray(), before)


def test_wrong_input_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="2 source and 1 target"):
        count_table([[0], [1]], [[0]])
    with pytest.raises(AttnscopeError, match="source sentence of pair 1 is empty"):
        count_table([[0], []], [[0], [0]])
    with pytest.raises(AttnscopeError, match="go from 0 to 7: expected 0 to 3"):
        sentences([[0, 7]], vocabulary=4)
    with pytest.raises(AttnscopeError, match="go from -1 to 0"):
        sentences([[0, -1]])
    with pytest.raises(AttnscopeError, match="expected word ids"):
        sentences([[0.5]])  # type: ignore[list-item]
    with pytest.raises(AttnscopeError, match=r"shape \(2,\): expected \(sentence, position\)"):
        sentences(np.array([0, 1]))
    with pytest.raises(AttnscopeError, match="mask is int64"):
        sentences(np.array([[0, 1]]), np.array([[1, 0]]))  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="came with a mask"):
        sentences([[0]], np.array([[True]]))
    with pytest.raises(AttnscopeError, match="holds nan"):
        translation_table(sparse.csr_array(np.array([[1.0, np.nan]])))
    with pytest.raises(AttnscopeError, match="holds -1"):
        translation_table(sparse.csr_array(np.array([[1.0, -1.0]])))


def test_lengths_count_repeated_words() -> None:
    assert Sentences(np.array([1, 1, 0]), np.array([0, 2, 3]), 2).lengths.tolist() == [2, 1]
