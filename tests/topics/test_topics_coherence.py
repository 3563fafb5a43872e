"""NPMI against a count by hand, and against gensim."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from attnscope.topics.coherence import npmi


def by_hand(top: list[int], documents: list[list[int]], window: int) -> float:
    windows = [
        set(document[start : start + window])
        for document in documents
        if document
        for start in range(max(1, len(document) - window + 1))
    ]

    def share(*words: int) -> float:
        return sum(all(word in each for word in words) for each in windows) / len(windows)

    values = [
        math.log((share(a, b) + 1e-12) / (share(a) * share(b))) / -math.log(share(a, b) + 1e-12)
        for a, b in itertools.combinations(top, 2)
    ]
    return sum(values) / len(values)


@pytest.fixture
def documents() -> list[list[int]]:
    draw = np.random.default_rng(1)
    return [draw.integers(0, 12, draw.integers(0, 40)).tolist() for _ in range(30)]


@pytest.mark.parametrize("window", [2, 5, 10])
def test_npmi_is_that_of_windows_counted_one_by_one(
    documents: list[list[int]], window: int
) -> None:
    top = [[0, 3, 7], [11, 3, 2], [4, 5, 6]]
    found = npmi(top, [np.array(each, dtype=np.int32) for each in documents], window)
    np.testing.assert_allclose(found, [by_hand(row, documents, window) for row in top], atol=1e-12)


def test_words_that_always_or_never_meet() -> None:
    documents = [np.array(each, dtype=np.int32) for each in ([0, 1], [2, 2], [3, 4])]
    always, never = npmi([[0, 1], [2, 3]], documents)
    # Three windows: p(0) = p(1) = p(0, 1) = 1/3, and p(2, 3) = 0.
    assert always == pytest.approx(1)
    assert never == pytest.approx(math.log(9e-12) / -math.log(1e-12))


def test_gensim_agrees_where_no_word_comes_twice() -> None:
    """Gensim forgets a word that leaves a window, though the window may hold it a second time."""
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    corpora = pytest.importorskip("gensim.corpora", reason="gensim is not installed")
    draw = np.random.default_rng(2)
    documents = [draw.permutation(30)[: draw.integers(5, 30)] for _ in range(40)]
    texts = [[f"w{number}" for number in each] for each in documents]
    top = [[0, 3, 7, 8], [11, 1, 2, 9], [4, 5, 6, 10]]
    theirs = models.CoherenceModel(
        topics=[[f"w{number}" for number in row] for row in top],
        texts=texts,
        dictionary=corpora.Dictionary(texts),
        coherence="c_npmi",
        window_size=10,
        topn=4,
        processes=1,
    ).get_coherence_per_topic()
    ours = npmi(top, [each.astype(np.int32) for each in documents])
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
