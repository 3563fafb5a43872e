"""Sums over pairs of words against loops, and ratios against what they must be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.probes.bootstrap import pooled_mean
from attnscope.probes.topics.topic_pairs import (
    at_equal_distance,
    cosines,
    distance_bins,
    pair_kinds,
    pair_numbers,
    pair_sums,
    within_documents,
)

WORDS = np.array([0, 1, 0, 2, 3, 4])
TOPICS = np.array(
    [[True, False], [True, False], [True, False], [False, True], [True, True], [False, False]]
)


def test_kinds_of_pairs_by_hand() -> None:
    together = np.array([pair_numbers(np.array(2), np.array(0))])
    same, different, often = pair_kinds(WORDS, TOPICS, together)
    for i in range(6):
        for j in range(6):
            topics = TOPICS[i] & TOPICS[j]
            known = TOPICS[i].any() and TOPICS[j].any() and WORDS[i] != WORDS[j]
            assert same[i, j] == (known and topics.any())
            assert different[i, j] == (known and not topics.any())
            assert often[i, j] == (different[i, j] and {WORDS[i], WORDS[j]} == {0, 2})
    assert often.sum() == 4


def test_no_words_have_no_pairs() -> None:
    none = np.empty(0, dtype=np.int64)
    assert pair_kinds(none, np.empty((0, 3), dtype=bool), none).shape == (3, 0, 0)
    assert pair_sums(torch.zeros(5, 0, 0), torch.zeros(3, 0, 0)).tolist() == [[0.0] * 5] * 3


def test_sums_are_those_of_a_loop(generator: torch.Generator) -> None:
    values = torch.rand(2, 3, 4, 4, generator=generator, dtype=torch.float64)
    kinds = torch.rand(5, 4, 4, generator=generator) < 0.5
    found = pair_sums(values, kinds.double())
    for number, kind in enumerate(kinds):
        wanted = (values * kind).sum(dim=(-1, -2))
        torch.testing.assert_close(found[number], wanted, rtol=0, atol=1e-14)


def test_bins_of_distance() -> None:
    bins = distance_bins(np.array([0, 1, 3, 132]))
    assert bins[0].tolist() == [-1, 0, 1, 7]
    assert (bins == bins.T).all()


def test_cosines_and_dot_products() -> None:
    vectors = torch.tensor([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]], dtype=torch.float64)
    cosine, dots = cosines(vectors)
    assert float(cosine[0, 1]) == pytest.approx(0.96, abs=1e-12)
    assert float(dots[0, 1]) == 24
    assert cosine[2].tolist() == [0, 0, 0]


def test_documents_with_more_attention_do_not_count_within_documents() -> None:
    # Twice the attention in the second document, which is mostly of one topic; no topics anywhere.
    counts = np.array([[10.0, 90.0], [90.0, 10.0]])
    sums = counts * np.array([[1.0], [2.0]])
    pooled = pooled_mean(sums[:, 0], counts[:, 0]) / pooled_mean(sums[:, 1], counts[:, 1])
    assert pooled > 1.7
    assert within_documents(sums, counts) == pytest.approx(1.0, abs=1e-14)
    assert within_documents(sums * [1.5, 1.0], counts) == pytest.approx(1.5, abs=1e-14)


def test_near_words_do_not_count_at_equal_distance() -> None:
    # Attention falls from 2 to 1 with distance, and words of one topic are near.
    counts = np.array([[[80.0, 20.0], [20.0, 80.0]]] * 3)
    sums = counts * np.array([2.0, 1.0])
    assert at_equal_distance(sums, counts) == pytest.approx(1.0, abs=1e-14)
    more = sums * np.array([1.25, 1.0])[:, None]
    assert at_equal_distance(more, counts) == pytest.approx(1.25, abs=1e-14)
    weights = np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]])
    assert at_equal_distance(more, counts, weights) == pytest.approx([1.25, 1.25], abs=1e-14)
