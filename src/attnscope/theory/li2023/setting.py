"""The setting of Li 2023: T topics of v words, documents of τ topics, masks of three kinds.

Word ids: [MASK] = 0, words 1..Tv, topic of word i = (i - 1) // v. Documents are long
(Assumption 1), so a document is its set S of τ topics:

    P_i = 1/(τv) if topic(i) ∈ S, else 0                       its words before masking,
    y_0 = m = p_m (1 - p_c - p_r)                              after masking, eq (F.17),
    y_i = p₁ = 1/(c₃ τ v) + p₂ if topic(i) ∈ S, else p₂ = p_m p_r/(Tv).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from attnscope.errors import AttnscopeError


class Topics(Protocol):
    """What the theory reads of a setting or of a task: six numbers."""

    @property
    def topics(self) -> int:
        """T, how many topics there are."""

    @property
    def words(self) -> int:
        """v, how many words a topic has."""

    @property
    def tau(self) -> int:
        """τ, how many topics a document has."""

    @property
    def p_m(self) -> float:
        """Probability that a position is selected for prediction."""

    @property
    def p_c(self) -> float:
        """Probability that a selected position keeps its word."""

    @property
    def p_r(self) -> float:
        """Probability that a selected position gets a random word."""


@dataclass(frozen=True)
class TopicSetting:
    """The six numbers that the closed forms depend on; the masks default to BERT's.

    Args:
        topics: T.
        words: v, words in a topic.
        tau: τ, topics in a document.
        p_m: probability that a position is selected.
        p_c: of the selected, how many keep their word.
        p_r: of the selected, how many get a word drawn from all Tv words.

    Raises:
        AttnscopeError: no document or no mask token can have these numbers.
    """

    topics: int
    words: int
    tau: int
    p_m: float = 0.15
    p_c: float = 0.1
    p_r: float = 0.1

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of(cls, task: Any) -> TopicSetting:
        """Read the six numbers off a task, which may leave τ open; the theory may not."""
        return cls(task.topics, task.words, task.tau, task.p_m, task.p_c, task.p_r)


def check(setting: Topics) -> None:
    """Raise an :class:`AttnscopeError` when the theory has no meaning for these numbers."""
    for name in ("topics", "words", "tau"):
        value = getattr(setting, name)
        if value is None:
            raise AttnscopeError(
                f"{name} = None: expected a whole number, as the theory is of documents that all "
                "have tau topics in equal parts."
            )
        if not float(value).is_integer() or value < 1:
            raise AttnscopeError(f"{name} = {value}: expected a whole number of 1 or more.")
    if setting.tau > setting.topics:
        raise AttnscopeError(
            f"tau = {setting.tau} with topics = {setting.topics}: expected tau ≤ topics, as a "
            "document has tau distinct topics."
        )
    if not 0 < setting.p_m < 1:
        raise AttnscopeError(
            f"p_m = {setting.p_m:g}: expected a number between 0 and 1, both excluded, as the loss "
            "is a mean over selected positions and the context is what was not selected."
        )
    if setting.p_c < 0 or setting.p_r < 0 or not setting.p_c + setting.p_r < 1:
        raise AttnscopeError(
            f"p_c = {setting.p_c:g} and p_r = {setting.p_r:g}: expected both 0 or more and "
            "p_c + p_r < 1, as the closed forms divide by the share 1 - p_c - p_r of [MASK]."
        )


def check_structure(setting: Topics) -> None:
    """Check the setting, and that documents differ in their topics (τ < T)."""
    check(setting)
    if setting.tau == setting.topics:
        raise AttnscopeError(
            f"tau = topics = {setting.tau}: expected tau < topics. With every topic in every "
            "document all documents are alike, and there is no topic structure to learn."
        )


def check_random_words(setting: Topics, what: str) -> None:
    """Check that random words occur, by which ``what`` divides."""
    if not setting.p_r > 0:
        raise AttnscopeError(f"p_r = 0: expected p_r > 0, as {what} divides by p_m p_r.")


@dataclass(frozen=True)
class Constants:
    """What the closed forms are made of.

    Args:
        c1: p_r / ((1-p_c-p_r) (1-(1-p_c)p_m) Tv).
        c2: 1/m - 1.
        c3: 1 / (1-(1-p_c)p_m).
        mask: m, the share of [MASK] in a masked document.
        present: p₁, the share of a word of the document's topics.
        absent: p₂, the share of any other word.
    """

    c1: float
    c2: float
    c3: float
    mask: float
    present: float
    absent: float


def constants(setting: Topics) -> Constants:
    """Return the constants of Theorem 2 and the three values of eq (F.17).

    >>> found = constants(TopicSetting(topics=10, words=10, tau=3))
    >>> round(found.c2, 4), round(found.c3, 6)
    (7.3333, 1.156069)
    """
    check(setting)
    size = setting.topics * setting.words
    c3 = 1 / (1 - (1 - setting.p_c) * setting.p_m)
    masked = 1 - setting.p_c - setting.p_r
    absent = setting.p_m * setting.p_r / size
    return Constants(
        c1=setting.p_r * c3 / (masked * size),
        c2=1 / (masked * setting.p_m) - 1,
        c3=c3,
        mask=masked * setting.p_m,
        present=1 / (c3 * setting.tau * setting.words) + absent,
        absent=absent,
    )


def topic_of(setting: Topics) -> np.ndarray:
    """Topic of the words 1..Tv, shape ``(word,)`` without [MASK]."""
    return np.repeat(np.arange(setting.topics), setting.words)


def block_sums(matrix: np.ndarray, setting: Topics) -> np.ndarray:
    """Sum of every row over the words of each topic, shape ``(row, topic)``."""
    vocabulary = setting.topics * setting.words + 1
    if matrix.shape != (vocabulary, vocabulary):
        raise AttnscopeError(
            f"a matrix of shape {matrix.shape}: expected {(vocabulary, vocabulary)}, a row and a "
            f"column for [MASK] and for each of {setting.topics} x {setting.words} words."
        )
    blocks = matrix[:, 1:].reshape(vocabulary, setting.topics, setting.words)
    return np.asarray(blocks.sum(axis=-1))
