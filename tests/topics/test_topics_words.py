"""Words, and counting in how many documents they stand."""

from __future__ import annotations

from collections import Counter

import numpy as np

from attnscope.topics.stop_words import STOP_WORDS
from attnscope.topics.words import DocumentFrequency, content_words, numbers


def test_words_are_runs_of_letters() -> None:
    assert content_words("Naïve sailors' SHIP-building, 3rd a_b x1y2 don't") == [
        "naïve",
        "sailors",
        "ship",
        "building",
    ]


def test_stop_words_are_lower_case_words() -> None:
    assert all(content_words(word) == [] for word in STOP_WORDS)
    assert all(word.isalpha() and word == word.lower() for word in STOP_WORDS)
    assert {"the", "and", "was", "which", "unk"} <= STOP_WORDS
    assert not {"ship", "war", "music", "river"} & STOP_WORDS


def test_a_word_counts_once_a_document() -> None:
    frequency = DocumentFrequency()
    for document in (["a", "a", "b"], ["a", "c"], [], ["a", "b"]):
        frequency.add(document)
    assert frequency.documents == 4
    assert frequency.counts == {"a": 3, "b": 2, "c": 1}
    assert frequency.vocabulary(10, 1, 1.0) == ("a", "b", "c")
    assert frequency.vocabulary(10, 2, 1.0) == ("a", "b")
    assert frequency.vocabulary(10, 1, 0.5) == ("b", "c")
    assert frequency.vocabulary(1, 1, 1.0) == ("a",)


def test_bounded_counts_are_never_too_low_and_too_high_by_the_slack() -> None:
    draw = np.random.default_rng(0)
    # As in text: few words stand in many documents, many in few.
    documents = [draw.zipf(1.3, 30).clip(max=10**6).astype(str).tolist() for _ in range(2_000)]
    exact = Counter(word for document in documents for word in set(document))
    frequency = DocumentFrequency(room=500)
    for document in documents:
        frequency.add(document)
        assert len(frequency.counts) <= 500
    assert len(exact) > 2_000
    assert frequency.slack > 0
    for word, count in frequency.counts.items():
        assert exact[word] <= count <= exact[word] + frequency.slack
    assert all(word in frequency.counts for word, n in exact.items() if n > frequency.slack)


def test_numbers_leave_out_other_words() -> None:
    texts = ["the ship and the river", "a song"]
    assert list(numbers(texts, ("river", "ship"))) == [[1, 0], []]
