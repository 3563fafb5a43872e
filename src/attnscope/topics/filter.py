"""The ambiguity filter: which words stand for a topic (Li 2023, section on Wikipedia)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from attnscope.errors import AttnscopeError
from attnscope.topics.model import TopicModel, top_words

THRESHOLDS = (0.0005, 0.001, 0.002)
"""Shares of the vocabulary that Li 2023 keeps for each topic (Tables 1, 2 and 5)."""


@dataclass(frozen=True)
class TopicVocabulary:
    """Words that stand for topics.

    Args:
        words: the words, by alphabet.
        topics: the topics of each word; exactly one of each if topics do not overlap.
        threshold: share of the vocabulary that was kept for each topic.
        overlap: whether a word may stand for several topics.
    """

    words: tuple[str, ...]
    topics: dict[str, frozenset[int]]
    threshold: float
    overlap: bool

    def same(self, left: str, right: str) -> bool:
        """Return whether two words share a topic."""
        return not self.topics[left].isdisjoint(self.topics[right])

    def pairs(self) -> int:
        """Return how many pairs of different words share a topic."""
        members: dict[int, set[str]] = {}
        count = 0
        for word, topics in self.topics.items():
            groups = [members.setdefault(topic, set()) for topic in topics]
            count += len(set().union(*groups))
            for group in groups:
                group.add(word)
        return count


def topic_words(
    model: TopicModel, threshold: float = 0.001, *, overlap: bool = False
) -> TopicVocabulary:
    """Keep the words with the highest P(word | topic) of each topic.

    For each topic these are the ``threshold`` share of the vocabulary, rounded, one word at least
    (Li 2023: 0.05 %, 0.1 % or 0.2 % "of all words with highest P(word | this topic)"). Words that
    are among them for more than one topic are ambiguous. Without overlap, which is nearest to the
    theory, where each word belongs to one topic, they are dropped; with overlap they have several.

    Args:
        model: the fitted topics.
        threshold: a share above 0 and at most 1.
        overlap: keep ambiguous words.

    Raises:
        AttnscopeError: the threshold is no share, or no two words of a topic are left; the
            sentence says which thresholds would leave some.
    """
    found = _chosen(model, threshold, overlap)
    if not _any_pair(found):
        usable = usable_thresholds(model, overlap=overlap)
        share = f"{threshold:g} of {len(model.words)} words is {_count(model, threshold)} a topic"
        remedy = (
            f"Expected a threshold that leaves some, such as {', '.join(f'{t:g}' for t in usable)}"
            if usable
            else "No threshold leaves one: expected topics that differ; fit more documents or "
            "passes"
        )
        raise AttnscopeError(
            f"threshold {threshold:g} leaves no pair of words with the same topic ({share}"
            f"{'' if overlap else ', and words of more than one topic are dropped'}). {remedy}."
        )
    return found


def usable_thresholds(model: TopicModel, *, overlap: bool = False) -> tuple[float, ...]:
    """Return the thresholds of the paper and round ones above that leave a same-topic pair."""
    tried = (*THRESHOLDS, 0.005, 0.01, 0.02, 0.05)
    return tuple(each for each in tried if _any_pair(_chosen(model, each, overlap)))


def _chosen(model: TopicModel, threshold: float, overlap: bool) -> TopicVocabulary:
    if not 0 < threshold <= 1:
        raise AttnscopeError(
            f"threshold {threshold:g} is no share of the vocabulary: expected a number above 0 and "
            "at most 1, such as 0.001."
        )
    topics: dict[str, set[int]] = {}
    kept = _count(model, threshold)
    for topic, row in enumerate(top_words(model.topic_word, kept)):
        for number in row:
            topics.setdefault(model.words[number], set()).add(topic)
    chosen = {
        word: frozenset(topics[word])
        for word in sorted(topics)
        if overlap or len(topics[word]) == 1
    }
    return TopicVocabulary(tuple(chosen), chosen, threshold, overlap)


def _any_pair(found: TopicVocabulary) -> bool:
    sizes = Counter(topic for topics in found.topics.values() for topic in topics)
    return any(size > 1 for size in sizes.values())


def _count(model: TopicModel, threshold: float) -> int:
    return max(1, math.floor(threshold * len(model.words) + 0.5))
