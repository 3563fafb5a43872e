"""The documents of Li 2023: what is drawn, how it is masked, and what predictions depend on."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks import Documents, TopicDocuments, TopicStream

SMALL = TopicDocuments(topics=4, words=3, tau=2, length=(3, 9), p_m=0.4, p_c=0.2, p_r=0.3)


def within(share: float, expected: float, count: int) -> bool:
    """Tell whether a share of ``count`` lots lies within 4 standard deviations."""
    return abs(share - expected) <= 4 * (expected * (1 - expected) / count) ** 0.5


def test_words_are_numbered_topic_after_topic_behind_the_mask() -> None:
    task = TopicDocuments(topics=3, words=2)
    assert task.vocabulary == 7
    assert task.topic_of.tolist() == [-1, 0, 0, 1, 1, 2, 2]


def test_the_defaults_are_those_of_the_experiments() -> None:
    task = TopicDocuments()
    assert (task.topics, task.words, task.tau, task.alpha) == (10, 10, None, 0.1)
    assert (task.lengths, task.p_m, task.p_c, task.p_r) == ((100, 150), 0.15, 0.1, 0.1)


@pytest.mark.parametrize("length", [(20, 30), 25])
@pytest.mark.parametrize("topics", [{"tau": 2}, {"alpha": 0.1}])
def test_documents_hold_words_of_their_topics(length: Any, topics: dict[str, Any]) -> None:
    task = TopicDocuments(topics=5, words=4, length=length, **topics)
    documents = task.sample(300, 1)
    occupied = torch.ones_like(documents.selected) if documents.mask is None else documents.mask
    assert (documents.mask is None) == (length == 25)
    low, high = task.lengths
    assert {int(n) for n in documents.lengths} == set(range(low, high + 1))
    assert torch.equal(documents.lengths, occupied.sum(dim=1))
    for name in ("ids", "visible", "selected"):
        assert not getattr(documents, name)[~occupied].any()
    assert int(documents.ids[occupied].min()) == 1
    topic = torch.from_numpy(task.topic_of)[documents.ids]
    assert documents.mixture is not None
    torch.testing.assert_close(documents.mixture.sum(dim=1), torch.ones(300).double())
    assert bool((documents.mixture.gather(1, topic.clamp(min=0)) > 0)[occupied].all())
    if task.tau is not None:
        assert bool(((documents.mixture > 0).sum(dim=1) == 2).all())
        assert {float(p) for p in documents.mixture.unique()} == {0.0, 0.5}
        assert within(float((documents.mixture[:, 0] > 0).float().mean()), 0.4, 300)


@pytest.mark.parametrize("topics", [{"tau": 2}, {"alpha": 0.3}])
def test_topics_have_their_probabilities_and_words_are_uniform(topics: dict[str, Any]) -> None:
    task = TopicDocuments(topics=4, words=3, length=30_000, **topics)
    documents = task.sample(3, 2)
    assert documents.mixture is not None
    for ids, mixture in zip(documents.ids, documents.mixture, strict=True):
        shares = torch.bincount(ids, minlength=task.vocabulary)[1:] / 30_000
        expected = mixture.repeat_interleave(3) / 3
        assert all(
            within(float(s), float(e), 30_000) for s, e in zip(shares, expected, strict=True)
        )


def test_masking_follows_its_probabilities() -> None:
    task = TopicDocuments(topics=3, words=2, tau=1, length=1000, p_m=0.3, p_c=0.2, p_r=0.4)
    documents = task.sample(60, 3)
    ids, visible, selected = documents.ids, documents.visible, documents.selected
    assert within(float(selected.float().mean()), 0.3, ids.numel())
    assert torch.equal(visible[~selected], ids[~selected])
    seen, true = visible[selected], ids[selected]
    count = len(seen)
    assert within(float((seen == 0).float().mean()), 0.4, count)
    # A random word is any of the 6, the correct one among them.
    assert within(float((seen == true).float().mean()), 0.2 + 0.4 / 6, count)
    wrong = (seen != true) & (seen > 0)
    own = (seen - 1) // 2 == (true - 1) // 2
    assert within(float((wrong & own).float().mean()), 0.4 / 6, count)
    assert within(float((wrong & ~own).float().mean()), 0.4 * 4 / 6, count)


def test_every_document_has_a_selected_position_and_redraws_are_counted() -> None:
    documents = TopicDocuments(tau=2, length=(1, 2), p_m=0.25).sample(4000, 4)
    assert bool(documents.selected.any(dim=1).all())
    assert documents.redraws is not None
    single = documents.lengths == 1
    # Until the first success: (1 - p) / p masks are thrown away on average.
    assert float(documents.redraws[single].double().mean()) == pytest.approx(3, rel=0.1)
    empty = 0.75**2
    expected = empty / (1 - empty)
    assert float(documents.redraws[~single].double().mean()) == pytest.approx(expected, rel=0.1)
    # Conditioned on one selected position or more, both are with probability p² / (1 - (1-p)²).
    both = documents.selected[~single].all(dim=1)
    assert within(float(both.float().mean()), 0.0625 / (1 - empty), len(both))


def test_seeds_decide() -> None:
    first, again, other = SMALL.sample(8, 5), SMALL.sample(8, 5), SMALL.sample(8, 6)
    assert torch.equal(first.visible, again.visible)
    assert torch.equal(first.selected, again.selected)
    assert first.ids.shape != other.ids.shape or not torch.equal(first.ids, other.ids)


def test_a_stream_never_repeats_itself() -> None:
    task = TopicDocuments(tau=2, length=20)
    one, two = islice(task.stream(4, 7), 2)
    assert one.ids.shape == (4, 20)
    assert not torch.equal(one.ids, two.ids)
    assert torch.equal(next(task.stream(4, 7)).visible, one.visible)
    stream = TopicStream(task, 7)
    rows = torch.tensor([9, 3, 5])
    assert torch.equal(stream[rows].visible, stream[rows].visible)
    assert not torch.equal(stream[rows].ids, stream[rows.flip(0)].ids)
    assert not torch.equal(stream[rows].ids, TopicStream(task, 8)[rows].ids)


def test_rows_can_be_picked() -> None:
    documents = SMALL.sample(6, 0)
    rows = torch.tensor([4, 1])
    part = documents[rows]
    assert len(part) == 2
    for name in ("ids", "visible", "selected", "mask", "mixture", "redraws", "lengths"):
        assert torch.equal(getattr(part, name), getattr(documents, name)[rows])


@pytest.mark.parametrize("masked_queries", [True, False])
@pytest.mark.parametrize("by_query", [True, False])
@pytest.mark.parametrize("length", [(3, 9), 6])
def test_contexts_are_what_counting_by_hand_gives(
    length: Any, by_query: bool, masked_queries: bool
) -> None:
    task = TopicDocuments(topics=4, words=3, tau=2, length=length, p_m=0.4, p_c=0.2, p_r=0.3)
    documents = task.sample(7, 3)
    contexts = documents.contexts(torch.float64, by_query=by_query, masked_queries=masked_queries)
    targets: dict[tuple[int, int], np.ndarray] = {}
    order = []
    for row in range(7):
        size = int(documents.selected[row].sum())
        for place in documents.selected[row].nonzero()[:, 0].tolist():
            query = int(documents.visible[row, place])
            if query == 0 and not masked_queries:
                continue
            key = (row, query if by_query else 0)
            target = targets.setdefault(key, np.zeros(13))
            target[documents.ids[row, place]] += 1 / (7 * size)
            order.append(key)
    found = list(zip(contexts.document.tolist(), contexts.query.tolist(), strict=True))
    assert sorted(found) == sorted(targets)
    assert contexts.of_position is not None
    assert [found[number] for number in contexts.of_position.tolist()] == order
    for key, target in zip(found, contexts.target, strict=True):
        np.testing.assert_allclose(target, targets[key], atol=1e-15)
    for row in range(7):
        words = documents.visible[row, : int(documents.lengths[row])]
        counts = torch.bincount(words, minlength=13)
        torch.testing.assert_close(contexts.log_counts[row].exp(), counts.double())
    assert torch.equal(contexts.offsets, contexts.log_counts[contexts.document])
    total = 1.0 if masked_queries else float(documents.weights @ _shows_word(documents))
    assert float(contexts.weight.sum()) == pytest.approx(total)
    assert (
        documents.contexts(torch.float64, by_query=by_query, masked_queries=masked_queries)
        is contexts
    )


def _shows_word(documents: Documents) -> torch.Tensor:
    return (documents.visible[documents.selected] > 0).double()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tau": 11}, "tau = 11 distinct topics of topics = 10: expected 9 or fewer."),
        ({"tau": 0}, "tau = 0: expected 1 or more."),
        ({"topics": 1}, "topics = 1: expected 2 or more."),
        ({"words": 0}, "words = 0: expected 1 or more."),
        ({"tau": 3, "alpha": 0.1}, "tau = 3 and alpha = 0.1: expected one of them"),
        ({"alpha": 0.0}, "alpha = 0.0: expected a finite number above 0."),
        ({"p_m": 0.0}, "p_m = 0.0: expected a probability above 0"),
        ({"p_m": 1.1}, "p_m = 1.1: expected a probability above 0"),
        ({"p_c": -0.1}, "p_c = -0.1: expected a probability from 0"),
        ({"p_r": 1.0}, "p_r = 1.0: expected a probability from 0"),
        ({"p_c": 0.5, "p_r": 0.5}, "p_c = 0.5 and p_r = 0.5 sum to 1: expected less than 1"),
        ({"length": (10, 9)}, "length = (10, 9): expected a number of positions"),
        ({"length": 0}, "length = 0: expected a number of positions"),
        ({"length": 1, "p_m": 0.001}, "p_m = 0.001 at length = 1 selects no position in 99.90%"),
    ],
)
def test_what_makes_no_documents_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=re.escape(sentence)):
        TopicDocuments(**options)


def test_no_documents_are_refused() -> None:
    with pytest.raises(AttnscopeError, match="documents = 0: expected 1 or more"):
        SMALL.sample(0, 0)


def test_all_topics_in_every_document_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="no topic structure to learn") as caught:
        TopicDocuments(topics=3, tau=3)
    assert caught[0].filename == __file__


def test_ones_own_documents_are_checked() -> None:
    ids = torch.tensor([[1, 2], [3, 1]])
    selected = torch.tensor([[True, False], [False, False]])
    with pytest.raises(AttnscopeError, match="document 1 has no selected position"):
        Documents(ids, ids, selected, 4)
    with pytest.raises(AttnscopeError, match="from 1 to 3: expected 0 to 2"):
        Documents(ids, ids, ~selected, 3)
    padding = torch.tensor([[True, True], [True, False]])
    only_there = torch.tensor([[True, False], [False, True]])
    with pytest.raises(AttnscopeError, match="document 1 has no selected position"):
        Documents(ids, ids, only_there, 4, padding)
