"""The keyword task: what is drawn equals uniform words after rejection."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.keyword import FIRST, Keyword, LabelledSequences


def test_the_keyword_stands_once_in_positive_sequences_and_in_no_other() -> None:
    task = Keyword()
    data = task.sample(500, 0)
    assert len(data) == 500
    assert data.source.shape == (500, 40)
    assert data.source.dtype == data.position.dtype == torch.int64
    assert data.label.dtype == torch.float32
    assert task.vocabulary == 43
    here = data.source == FIRST
    assert torch.equal(here.sum(dim=1), data.label.long())
    assert torch.equal(here.any(dim=1), data.position >= 0)
    assert torch.equal(
        here.float().argmax(dim=1)[data.position >= 0], data.position[data.position >= 0]
    )
    assert int(data.source.max()) == 42


def test_sequences_are_as_likely_as_by_rejection() -> None:
    task, count = Keyword(length=3, types=3), 40_000
    drawn = [tuple(row) for row in task.sample(count, 1).source.tolist()]
    every = list(itertools.product((3, 4, 5), repeat=3))
    # Uniform words, keyword at most once, and each class rejected down to one half.
    positive = [words for words in every if words.count(FIRST) == 1]
    negative = [words for words in every if FIRST not in words]
    expected = {w: 0.5 / len(kind) for kind in (positive, negative) for w in kind}
    assert set(drawn) == set(expected)
    for words, share in expected.items():
        error = abs(drawn.count(words) / count - share)
        assert error < 4 * (share * (1 - share) / count) ** 0.5


def test_batches_depend_on_seed_and_rows_alone() -> None:
    stream, rows = Keyword(5, 4).stream(2), torch.arange(64)
    first, again = stream.batch(rows), Keyword(5, 4).stream(2).batch(rows)
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.label, again.label)
    assert not torch.equal(first.source, stream.batch(rows + 64).source)
    assert not torch.equal(first.source, Keyword(5, 4).stream(3).batch(rows).source)


def test_rows_take_everything_along() -> None:
    data = Keyword(4, 5).sample(6, 3)
    masked = LabelledSequences(data.source, data.label, data.position, data.source > 3)
    some = masked.rows(torch.tensor([5, 2]))
    assert torch.equal(some.source, data.source[[5, 2]])
    assert torch.equal(some.label, data.label[[5, 2]])
    assert torch.equal(some.position, data.position[[5, 2]])
    assert some.mask is not None
    assert torch.equal(some.mask, (data.source > 3)[[5, 2]])
    assert data.rows(torch.tensor([0])).mask is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"length": 0}, "length = 0: expected 1 or more"),
        ({"types": 1}, "types = 1: expected 2 or more"),
    ],
)
def test_tasks_that_are_none_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Keyword(**fields)
    with pytest.raises(AttnscopeError, match="count = 0: expected 1 sequence or more"):
        Keyword().sample(0, 0)
