"""Copying: what is drawn, in which order it comes out, and which words occur together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END, SPECIALS, SequencePairs


def measured(task: Copying, pairs: SequencePairs) -> np.ndarray:
    """Count table of eq 16 by its definition, per pair."""
    table = np.zeros((task.vocabulary, task.vocabulary))
    for x, y in zip(pairs.source.numpy(), pairs.target.numpy(), strict=True):
        for word in x:
            np.add.at(table[word], y, 1 / len(x))
    return table / len(pairs)


def test_the_defaults_are_permutations_of_forty_words() -> None:
    task = Copying()
    pairs = task.sample(20, 0)
    assert pairs.source.shape == pairs.target.shape == (20, 41)
    assert pairs.source.dtype == torch.int64
    assert pairs.source.is_contiguous()
    assert task.vocabulary == 43
    words = pairs.source[:, :-1].sort(dim=1).values
    assert torch.equal(words, torch.arange(3, 43).expand(20, 40))
    assert bool((pairs.source[:, -1] == END).all())
    assert torch.equal(pairs.source, pairs.target)
    assert len(pairs.source.unique(dim=0)) == 20


def test_sets_are_disjoint_and_equally_likely_and_words_distinct() -> None:
    task = Copying(length=4, types=6, sets=3, end=False)
    source = task.sample(900, 1).source
    assert source.shape == (900, 4)
    belongs = (source - SPECIALS) // 6
    assert bool((belongs == belongs[:, :1]).all())
    assert bool((source.sort(dim=1).values.diff(dim=1) > 0).all())
    drawn = torch.bincount(belongs[:, 0], minlength=3)
    assert bool(((drawn - 300).abs() < 4 * (900 * 2 / 9) ** 0.5).all())
    shares = torch.bincount(source.flatten() - SPECIALS, minlength=18) / 900
    assert bool(((shares - 4 / 18).abs() < 4 * (4 / 18 * 14 / 18 / 900) ** 0.5).all())


@pytest.mark.parametrize("end", [True, False])
def test_the_target_is_the_source_at_the_gold_positions(end: bool) -> None:
    task = Copying(length=12, types=15, reorder_seed=3, end=end)
    pairs = task.sample(5, 2)
    assert torch.equal(pairs.target, pairs.source[:, task.gold])
    assert sorted(task.gold.tolist()) == list(range(12 + end))
    assert task.gold.tolist()[:12] != list(range(12))
    assert not end or task.gold[-1] == 12
    assert torch.equal(task.gold, Copying(12, 15, reorder_seed=3, end=end).gold)
    assert not torch.equal(task.gold, Copying(12, 15, reorder_seed=4, end=end).gold)


def test_the_order_does_not_change_the_words_drawn() -> None:
    copy, other = Copying(8, 12), Copying(8, 12, reorder_seed=1)
    assert torch.equal(copy.sample(6, 4).source, other.sample(6, 4).source)


def test_batches_depend_on_seed_and_rows_alone() -> None:
    stream = Copying(6, 9).stream(5)
    rows = torch.arange(128)
    first = stream.batch(rows)
    assert len(first) == 128
    assert torch.equal(first.source, Copying(6, 9).stream(5).batch(rows).source)
    assert not torch.equal(first.source, stream.batch(rows + 128).source)
    assert not torch.equal(first.source, Copying(6, 9).stream(6).batch(rows).source)


@pytest.mark.parametrize("end", [True, False])
def test_counts_of_permutations_are_what_any_one_sequence_has(end: bool) -> None:
    task = Copying(length=5, types=5, end=end, reorder_seed=2)
    np.testing.assert_allclose(task.counts(), measured(task, task.sample(1, 0)), atol=1e-15)


@pytest.mark.parametrize(
    "task",
    [Copying(3, 5), Copying(3, 3, sets=2), Copying(3, 4, sets=2, reorder_seed=1, end=False)],
)
def test_counts_are_expectations(task: Copying) -> None:
    counts = task.counts()
    # A count of one pair is at most 1, so its mean over n pairs is off by 0.5/sqrt(n) or less.
    np.testing.assert_allclose(counts, measured(task, task.sample(4000, 7)), atol=2 / 4000**0.5)
    total = task.length + task.end
    assert counts.sum() == pytest.approx(total)
    assert counts[: SPECIALS - 1].sum() == 0
    np.testing.assert_array_equal(counts, counts.T)


def test_counts_tell_the_word_only_where_words_are_left_out() -> None:
    inform, flat = (Copying(4, types).counts()[SPECIALS:, SPECIALS:] for types in (6, 4))
    assert np.ptp(flat) == 0
    # Together / alone = (L - 1)/(types - 1).
    assert inform[0, 1] / inform[0, 0] == pytest.approx(3 / 5)
    assert Copying(1, 1, sets=2).counts()[3, 4] == 0


def test_counts_do_not_see_the_order() -> None:
    np.testing.assert_array_equal(Copying(7, 9).counts(), Copying(7, 9, reorder_seed=0).counts())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"length": 0}, "length = 0: expected 1 or more"),
        ({"sets": 0}, "sets = 0: expected 1 or more"),
        ({"types": 39}, "types = 39 for sequences of length = 40: expected 40 or more"),
        ({"length": 1, "types": 1}, "types = 1 and sets = 1: expected two words or more"),
    ],
)
def test_tasks_that_are_none_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Copying(**fields)
    with pytest.raises(AttnscopeError, match="count = 0: expected 1 pair or more"):
        Copying().sample(0, 0)
