"""Evidence for pairs of words: a bound that holds, and pairs that are known."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from attnscope.probes.lexicon.association import association, evidence
from attnscope.probes.lexicon.counts import sentences


@given(st.integers(2, 300), st.data())
def test_chance_is_never_likelier_than_the_bound(n: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    c = data.draw(st.integers(max(1, a + b - n), min(a, b)))
    assert hypergeom.sf(c - 1, n, a, b) <= np.exp(-evidence(c, a, b, n)) * (1 + 1e-9)


def test_words_that_go_together_are_found_and_words_at_random_are_not() -> None:
    dice = np.random.default_rng(0)
    rows = [dice.permutation(30)[:6] for _ in range(400)]
    same = association(sentences(rows, vocabulary=30), sentences(rows, vocabulary=30))
    table = same.evidence.toarray()
    np.testing.assert_array_equal(table.argmax(axis=1), np.arange(30))
    assert (np.diag(table) > same.bound).all()
    other = [dice.permutation(30)[:6] for _ in range(400)]
    none = association(sentences(rows, vocabulary=30), sentences(other, vocabulary=30))
    assert none.best.max() < none.bound
    assert none.pairs_needed() > 400


def test_counts_are_of_sentences_not_of_words() -> None:
    found = association(sentences([[0, 0, 1], [1]]), sentences([[0], [0, 0]]))
    np.testing.assert_array_equal(found.together.toarray(), [[1], [2]])


def test_what_was_seen_once_is_never_beyond_chance() -> None:
    # One pair whose words stand nowhere else: they fit perfectly, and say nothing.
    rows = [[0], *[[1 + i % 5] for i in range(500)]]
    found = association(sentences(rows), sentences(rows))
    assert 0 < found.evidence[0, 0] < found.bound < found.evidence[1, 1]
