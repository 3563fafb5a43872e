"""Which pairs of words are compared: by topics at every threshold, and what they are held against.

Two controls are made here: topics shuffled among the words, and words that co-occur often without
sharing a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.probes.topics.topic_pairs import pair_numbers
from attnscope.topics.filter import TopicVocabulary
from attnscope.topics.words import content_words

SHUFFLES = 20
"""How often topics are shuffled: a ratio above all of these has p = 1/21."""
CHUNK = 256
"""Documents that co-occurrence is counted over at a time."""


@dataclass(frozen=True, eq=False)
class TopicLabels:
    """One way to give words topics.

    Args:
        name: in words, such as ``"0.001, no overlap"``.
        threshold: share of the vocabulary that is kept for each topic.
        overlap: whether a word may have several topics.
        topics: which topics each word of the plan has, shape ``(word, topic)``.
        shuffles: whose topics each word gets when they are shuffled among the words that have some,
            shape ``(shuffle, word)``.
        cooccurring: pairs of words that co-occur often, see
            :func:`~attnscope.probes.topic_pairs.pair_numbers`; sorted.
    """

    name: str
    threshold: float
    overlap: bool
    topics: np.ndarray
    shuffles: np.ndarray
    cooccurring: np.ndarray

    def pairs(self) -> int:
        """Return how many pairs of different words share a topic."""
        topics = self.topics.astype(np.float32)
        return int(np.count_nonzero(np.triu(topics @ topics.T > 0, 1)))


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """Words that matter, and what is known of them.

    Args:
        words: all words that have a topic by any of the labels.
        labels: ways to give them topics.
    """

    words: tuple[str, ...]
    labels: tuple[TopicLabels, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """Number of each word."""
        return {word: number for number, word in enumerate(self.words)}


def make_plan(chosen: Sequence[TopicVocabulary], seed: int = 0) -> MeasurementPlan:
    """Make a plan of words with topics, and shuffle the same topics among the words.

    Shuffling keeps how many words every topic has, and takes away which. Pairs of words that
    co-occur often are not known yet, see :func:`count_cooccurrence`.

    Args:
        chosen: words and topics at every threshold, with overlap and without.
        seed: of the shuffling.

    Raises:
        AttnscopeError: there is nothing to compare.
    """
    words = tuple(sorted({word for each in chosen for word in each.words}))
    if not words:
        raise AttnscopeError(
            "no word has a topic: expected some; see attnscope.topics.topic_words."
        )
    place = {word: number for number, word in enumerate(words)}
    count = 1 + max(max(each) for one in chosen for each in one.topics.values())
    generator = np.random.default_rng(seed)
    labels = []
    for one in chosen:
        topics = np.zeros((len(words), count), dtype=bool)
        for word, numbers in one.topics.items():
            topics[place[word], list(numbers)] = True
        rows = np.flatnonzero(topics.any(axis=1))
        shuffles = np.tile(np.arange(len(words)), (SHUFFLES, 1))
        shuffles[:, rows] = [generator.permutation(rows) for _ in range(SHUFFLES)]
        name = f"{one.threshold:g}, {'overlap' if one.overlap else 'no overlap'}"
        none = np.empty(0, dtype=np.int64)
        labels.append(TopicLabels(name, one.threshold, one.overlap, topics, shuffles, none))
    return MeasurementPlan(words, tuple(labels))


def count_cooccurrence(plan: MeasurementPlan, documents: Iterable[str]) -> MeasurementPlan:
    """Find pairs of words that co-occur often without sharing a topic (paper's Table 2).

    For each of the labels these are as many pairs as share a topic, those that stand together in
    the most documents. The paper does not print its own rule.

    Args:
        plan: words and topics.
        documents: texts, read once.
    """
    from scipy.sparse import csr_array

    place = plan.numbers
    counts = np.zeros((len(plan.words), len(plan.words)), dtype=np.int32)
    rows: list[np.ndarray] = []

    def add() -> None:
        if not rows:
            return
        ends = np.cumsum([0, *map(len, rows)])
        values = np.ones(ends[-1], dtype=np.int32)
        shape = (len(rows), len(place))
        held = csr_array((values, np.concatenate(rows), ends), shape=shape)
        np.add(counts, (held.T @ held).toarray(), out=counts)
        rows.clear()

    for text in documents:
        numbers = {place[word] for word in content_words(text) if word in place}
        rows.append(np.array(sorted(numbers), dtype=np.int64))
        if len(rows) == CHUNK:
            add()
    add()
    return replace(plan, labels=tuple(_with_top(each, counts) for each in plan.labels))


def _with_top(labels: TopicLabels, counts: np.ndarray) -> TopicLabels:
    topics = labels.topics.astype(np.float32)
    known = np.asarray(labels.topics.any(axis=1))
    apart = np.asarray(topics @ topics.T == 0)
    left, right = np.nonzero(np.triu(apart & known[:, None] & known & (counts > 0), 1))
    # Stable, so that pairs with equal counts are taken in the order of the words.
    order = np.argsort(-counts[left, right], kind="stable")[: labels.pairs()]
    numbers = pair_numbers(left[order], right[order])
    return replace(labels, cooccurring=np.sort(numbers))
