"""The documents of Li 2023 in the limit of infinite length: expectations without sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.topic_contexts import Contexts
from attnscope.tasks.topic_documents import MASK, check_masking, check_topics, topic_of

LARGEST_TABLE = 20_000_000
"""Most numbers in a table of all topic sets, queries and words."""


class Moments(NamedTuple):
    """Moments over topic sets S of the visible words y_S and of the originals P_S.

    Attributes:
        visible: E y, shape ``(word,)``.
        original: E P, shape ``(word,)``.
        second: E y yᵀ, shape ``(word, word)``.
        cross: E P yᵀ, shape ``(word, word)``.
    """

    visible: np.ndarray
    original: np.ndarray
    second: np.ndarray
    cross: np.ndarray


@dataclass(frozen=True)
class TopicPopulation:
    """All documents of :class:`TopicDocuments` with ``tau`` topics, of infinite length.

    Given the set S of its tau topics, the shares of the words in a document are no longer random
    (Li 2023, assumption 1): the originals are P_S(i) = 1 / (v tau) on the topics of S, and what is
    visible after masking is (F.17)

        y_S(i) = (1 - (1 - p_c) p_m) / (v tau) + p_m p_r / (v T)    if topic(i) is in S,
        y_S(i) = p_m p_r / (v T)                                    if not,
        y_S(0) = p_m (1 - p_c - p_r)                                for [MASK].

    At a selected position the original x is drawn from P_S, and the visible word there, the query
    q, is x with probability p_c, any of the T v words with probability p_r, and [MASK] otherwise.
    The population loss is the expectation over S, x and q of l(f(S, q), x). For the squared loss
    and an f that does not look at q it is

        E_S ||f(S) - P_S||² + 1 - 1 / (v tau),

    the last part being :attr:`noise`, the variance of x that no f can lower. It is quadratic in f,
    so that with uniform attention :attr:`moments` of y_S and P_S are all it needs: they follow
    from how often one topic, tau / T, or two, tau (tau - 1) / (T (T - 1)), are in S.

    Args:
        topics: T, number of topics.
        words: v, number of words of each topic.
        tau: distinct topics of each document.
        p_m: probability that a position is selected.
        p_c: probability that a selected position shows its own word.
        p_r: probability that a selected position shows a random word.
    """

    topics: int = 10
    words: int = 10
    tau: int = 3
    p_m: float = 0.15
    p_c: float = 0.1
    p_r: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        check_topics(self.topics, self.words, self.tau)
        check_masking(self.p_m, self.p_c, self.p_r)

    @property
    def vocabulary(self) -> int:
        """V = T v + 1, number of words with [MASK]."""
        return self.topics * self.words + 1

    @property
    def topic_of(self) -> np.ndarray:
        """Topic of every word, -1 for [MASK], shape ``(word,)``."""
        return topic_of(self.topics, self.words)

    @property
    def sets(self) -> int:
        """Number of topic sets there are."""
        return math.comb(self.topics, self.tau)

    @property
    def noise(self) -> float:
        """1 - 1 / (v tau), squared loss of the best prediction from the topic set alone."""
        return 1 - 1 / (self.words * self.tau)

    def visible(self, topic_sets: np.ndarray) -> np.ndarray:
        """Return y_S of topic sets given as booleans ``(set, topic)``; ``(set, word)``."""
        inside = (1 - (1 - self.p_c) * self.p_m) / (self.words * self.tau)
        shares = self._on_words(topic_sets) * inside
        shares += self.p_m * self.p_r / (self.words * self.topics)
        shares[:, MASK] = self.p_m * (1 - self.p_c - self.p_r)
        return shares

    def original(self, topic_sets: np.ndarray) -> np.ndarray:
        """Return P_S of topic sets given as booleans ``(set, topic)``; ``(set, word)``."""
        return self._on_words(topic_sets) / (self.words * self.tau)

    def topic_sets(self) -> np.ndarray:
        """Return all topic sets as booleans, shape ``(set, topic)``."""
        table = np.zeros((self.sets, self.topics), dtype=np.bool_)
        chosen = np.array(list(combinations(range(self.topics), self.tau)))
        table[np.arange(self.sets)[:, None], chosen] = True
        return table

    @cached_property
    def moments(self) -> Moments:
        """Moments of y_S and P_S over all topic sets, in closed form."""
        one = self.tau / self.topics
        two = one * (self.tau - 1) / (self.topics - 1)
        topic = self.topic_of
        both = np.where(topic[:, None] == topic, one, two)
        both[MASK] = both[:, MASK] = 0
        single = np.where(topic >= 0, one, 0.0)
        # y = base + inside · 1[topic in S] and P = scale · 1[topic in S].
        inside = (1 - (1 - self.p_c) * self.p_m) / (self.words * self.tau)
        scale = 1 / (self.words * self.tau)
        base = self.visible(np.zeros((1, self.topics), dtype=np.bool_))[0]
        mean = base + inside * single
        second = (
            np.outer(base, base)
            + inside * (np.outer(base, single) + np.outer(single, base))
            + inside**2 * both
        )
        cross = scale * (np.outer(single, base) + inside * both)
        return Moments(mean, scale * single, second, cross)

    def contexts(
        self, dtype: torch.dtype, *, by_query: bool = True, masked_queries: bool = True
    ) -> Contexts:
        """Return all topic sets, with all queries, and their probabilities.

        Needed where the loss is not quadratic: learned attention and cross-entropy.

        Args:
            dtype: of shares and probabilities.
            by_query: tell apart what stands at the position itself; uniform attention does not.
            masked_queries: count the positions that show [MASK] too.

        Raises:
            AttnscopeError: there are too many topic sets to list.
        """
        queries = self.vocabulary if by_query else 1
        if self.sets * queries * self.vocabulary > LARGEST_TABLE:
            raise AttnscopeError(
                f"topics = {self.topics} and tau = {self.tau} make {self.sets:,} topic sets, with "
                f"{queries} queries and {self.vocabulary} words each: expected at most "
                f"{LARGEST_TABLE:,} numbers in all. Use sampled documents, or uniform attention "
                "with the squared loss, which needs no list."
            )
        sets = self.topic_sets()
        original = self.original(sets) / self.sets
        if by_query:
            joint = self._joint(original)
            if not masked_queries:
                joint[:, MASK] = 0
        else:
            shown = 1.0 if masked_queries else self.p_c + self.p_r
            joint = shown * original[:, None]
        document, query = np.nonzero(joint.any(axis=2))
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.visible(sets))
        return Contexts(
            torch.from_numpy(log_shares).to(dtype),
            torch.from_numpy(document),
            torch.from_numpy(query),
            torch.from_numpy(joint[document, query]).to(dtype),
        )

    def _on_words(self, topic_sets: np.ndarray) -> np.ndarray:
        table = np.zeros((len(topic_sets), self.vocabulary))
        table[:, 1:] = np.repeat(topic_sets, self.words, axis=1)
        return table

    def _joint(self, original: np.ndarray) -> np.ndarray:
        """Return the probability of (set, query, original word)."""
        some_word = self.p_r / (self.topics * self.words)
        joint = np.repeat(some_word * original[:, None], self.vocabulary, axis=1)
        joint[:, MASK] = (1 - self.p_c - self.p_r) * original
        diagonal = np.arange(1, self.vocabulary)
        joint[:, diagonal, diagonal] += self.p_c * original[:, 1:]
        return joint
