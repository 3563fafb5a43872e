"""Topic purity and attended words, counted by hand and by a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.probes.topics.purity import (
    attended_words,
    class_counts,
    purer_company,
    rival_words,
    topic_purity,
)
from attnscope.tasks import Bags

WORDS = 7


@st.composite
def ragged(draw: st.DrawFn) -> tuple[Bags, list[list[int]], list[int]]:
    rows = draw(
        st.lists(
            st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=5), min_size=1, max_size=8
        )
    )
    labels = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.tensor([[i < len(row) for i in range(width)] for row in rows])
    return Bags(ids, torch.tensor(labels), WORDS, mask), rows, labels


@given(ragged())
def test_counts_and_purity_are_a_plain_loops(
    case: tuple[Bags, list[list[int]], list[int]],
) -> None:
    bags, rows, labels = case
    purity, counts = topic_purity(bags, 3), class_counts(bags, 3)
    for word in range(WORDS):
        held = [label for row, label in zip(rows, labels, strict=True) if word in row]
        assert counts[word].tolist() == [held.count(c) for c in range(3)]
        if not held:
            assert np.isnan(purity[word])
            continue
        share = max(held.count(c) for c in range(3)) / len(held)
        assert purity[word] == pytest.approx((3 * share - 1) / 2)


def test_purity_of_two_classes_is_the_papers() -> None:
    ids = torch.tensor([[0, 1], [0, 2], [0, 1], [0, 2]])
    purity = topic_purity(Bags(ids, torch.tensor([1, 1, 1, 0]), 3), 2)
    # δ(0) = |3/4 - 1/4|, δ(1) = 1, δ(2) = |1/2 - 1/2|.
    np.testing.assert_allclose(purity, [0.5, 1.0, 0.0])


@given(ragged(), st.integers(0, 5))
def test_the_attended_word_has_the_largest_score(
    case: tuple[Bags, list[list[int]], list[int]], seed: int
) -> None:
    bags, rows, _ = case
    source = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 3, (WORDS,), generator=source).double()
    attended = attended_words(scores, bags, source)
    for word, row in zip(attended.tolist(), rows, strict=True):
        assert word in row
        assert scores[word] == max(scores[w] for w in row)


def test_ties_are_broken_evenly() -> None:
    bags = Bags(torch.tensor([[0, 1, 2]] * 3000), torch.zeros(3000, dtype=torch.long), 3)
    attended = attended_words(torch.tensor([1.0, 0.0, 1.0]), bags, torch.Generator().manual_seed(0))
    counts = torch.bincount(attended, minlength=3)
    assert counts[1] == 0
    assert abs(int(counts[0]) - 1500) < 150


@given(ragged())
def test_company_is_a_plain_loops(
    case: tuple[Bags, list[list[int]], list[int]],
) -> None:
    bags, rows, _ = case
    purity = np.array([0.1, 0.1, 0.5, 0.9, 1.0, 0.0, 0.3])
    company = purer_company(bags, purity)
    for word in range(WORDS):
        held = [i for i, row in enumerate(rows) if word in row]
        if held:
            purer = [any(purity[w] > purity[word] for w in rows[i]) for i in held]
            assert company[word] == pytest.approx(np.mean(purer))
        else:
            assert np.isnan(company[word])


def test_rivals_are_a_pure_word_and_a_frequent_one_of_its_class() -> None:
    # Word 0 is pure and word 1 is in three of four sentences of class 0, and in one of class 1.
    ids = torch.tensor([[0, 1], [0, 1], [0, 1], [0, 2], [1, 3], [3, 3]])
    labels = torch.tensor([0, 0, 0, 0, 1, 1])
    assert rival_words(Bags(ids, labels, 4), 2) == (0, 1)
    assert rival_words(Bags(ids[:4], labels[:4], 4), 2) is None
