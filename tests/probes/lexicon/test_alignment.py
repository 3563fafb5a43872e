"""Alignments and their error rate, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.datasets.readers.alignments import read_alignments
from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.alignment import (
    alignment_error_rate,
    best_links,
    chance_error_rate,
    diagonal_links,
    flipped,
    score_links,
    word_links,
)
from attnscope.probes.lexicon.counts import number_words
from attnscope.probes.lexicon.ibm1 import fit

LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))
CORPUS = st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=5)


@given(CORPUS)
def test_error_rate_is_counted_link_by_link(corpus: list) -> None:
    found = total = 0
    for predicted, sure, possible in corpus:
        for link in predicted:
            total += 1
            found += (link in sure) + (link in sure or link in possible)
        total += len(sure)
    sides = [[row[side] for row in corpus] for side in range(3)]
    if not total:
        with pytest.raises(AttnscopeError, match="neither a predicted nor a sure link"):
            alignment_error_rate(*sides)
        return
    assert alignment_error_rate(*sides) == pytest.approx(1 - found / total)


def test_error_rate_of_a_known_case() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(1, 2)}]
    assert alignment_error_rate(sure, sure, possible) == 0
    assert alignment_error_rate([set()], sure, possible) == 1
    # A = 3 links, of which one is sure and two are possible: 1 - (1 + 2) / (3 + 2).
    assert alignment_error_rate([{(0, 0), (1, 2), (3, 3)}], sure, possible) == pytest.approx(0.4)


def test_links_go_to_the_largest_and_not_to_null() -> None:
    alpha = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7], [0, 0, 0], [0.5, 0, 0.5]])
    assert best_links(alpha) == {(1, 0), (0, 1), (2, 2), (0, 4)}
    assert best_links(alpha, null=True) == {(1, 0), (0, 1), (0, 4)}
    assert best_links(np.zeros((0, 3))) == best_links(np.zeros((3, 0))) == frozenset()
    assert flipped(best_links(alpha)) == {(0, 1), (1, 0), (2, 2), (4, 0)}


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_diagonal_is_monotone_and_inside(source: int, target: int) -> None:
    links = sorted(diagonal_links(source, target), key=lambda link: link[1])
    assert [t for _, t in links] == list(range(target if source else 0))
    assert all(0 <= s < source for s, _ in links)
    assert [s for s, _ in links] == sorted(s for s, _ in links)
    if source == target:
        assert all(s == t for s, t in links)


def test_wrong_input_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="predicted links of 1 pairs, sure ones of 2"):
        alignment_error_rate([set()], [set(), set()], [set()])
    with pytest.raises(AttnscopeError, match=r"shape \(2,\): expected \(t, l\)"):
        best_links(np.zeros(2))
    with pytest.raises(AttnscopeError, match="NaN or a negative value"):
        best_links(np.array([[np.nan]]))
    with pytest.raises(AttnscopeError, match="lengths are -1 and 2"):
        diagonal_links(-1, 2)


def test_model_1_beats_the_diagonal_on_gold_alignments(real_data: Path) -> None:
    folder = real_data / "word_alignment" / "crossalign"
    if not folder.is_dir():
        pytest.skip(f"gold alignments are not in '{folder}': put the published files there")
    gold = read_alignments(folder / "test.de-en", folder / "deen.talp")
    x, _ = number_words([[word.lower() for word in row] for row in gold.source])
    y, _ = number_words([[word.lower() for word in row] for row in gold.target])
    model = fit(x, y, iterations=5, null=True)
    links = [
        best_links(model.alpha(x.ids[a:b], y.ids[c:d]), null=True)
        for a, b, c, d in zip(x.starts, x.starts[1:], y.starts, y.starts[1:], strict=False)
    ]
    straight = [
        diagonal_links(*map(len, row)) for row in zip(gold.source, gold.target, strict=True)
    ]
    found = alignment_error_rate(links, gold.sure, gold.possible)
    assert found < alignment_error_rate(straight, gold.sure, gold.possible)


def test_one_linked_piece_links_two_words() -> None:
    weights = np.array([[0.9, 0.0, 0.1], [0.0, 0.8, 0.2], [0.1, 0.2, 0.7], [0.0, 0.0, 0.0]])
    source, target = np.array([0, 1, -1]), np.array([0, 0, 1, 2])
    assert word_links(weights, source, target) == {(0, 0), (1, 0)}
    # The mark of the end is no target word either.
    assert word_links(weights, source, np.array([0, -1, 1, 2])) == {(0, 0)}


def test_chance_is_the_mean_over_links_drawn_at_random() -> None:
    dice = np.random.default_rng(0)
    lengths = [(3, 4), (6, 2), (1, 5)]
    sure = [frozenset({(0, 0), (2, 3)}), frozenset({(5, 1)}), frozenset({(0, 2)})]
    possible = [frozenset({(1, 1)}), frozenset(), frozenset({(0, 0), (0, 2)})]
    drawn = [
        alignment_error_rate(
            [frozenset((int(dice.integers(n)), t) for t in range(m)) for n, m in lengths],
            sure,
            possible,
        )
        for _ in range(4000)
    ]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(np.mean(drawn) - chance_error_rate(lengths, sure, possible)) < 4 * error


def test_a_score_has_shares_and_an_interval_around_it() -> None:
    sure = [frozenset({(i, i) for i in range(4)})] * 30
    right = score_links(sure, sure, sure)
    assert (right.error, right.low, right.high, right.precision, right.recall) == (0, 0, 0, 1, 1)
    some = [frozenset(list(one)[: 1 + n % 4]) | {(9, 9)} for n, one in enumerate(sure)]
    found = score_links(some, sure, sure)
    assert found.low < found.error < found.high
    assert found.links == sum(map(len, some))
    assert found.precision == 1 - 30 / found.links
    assert found.recall == (found.links - 30) / 120
