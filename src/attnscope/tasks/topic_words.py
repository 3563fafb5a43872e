"""The task of Lu 2021, section 3: one word tells the topic, the others say nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.bags import Bags


@dataclass(frozen=True)
class TopicWords:
    """Sentences of ``m`` non-topic words and exactly one topic word (Lu 2021, section 3).

    A sentence is made by drawing a topic y uniformly, a topic word from T_y uniformly, and ``m``
    words from the dictionary Θ, uniformly and with replacement. Word ids
    ``0 .. topics * words_per_topic - 1`` are the topic words, topic after topic; Θ follows.

    Args:
        topics: J, number of topics.
        words_per_topic: number of topic words of each topic.
        m: non-topic words in each sentence.
        dictionary: M = |Θ|, number of non-topic words there are.
        train: number of training sentences.
        test: number of test sentences.
    """

    topics: int = 4
    words_per_topic: int = 2
    m: int = 20
    dictionary: int = 5000
    train: int = 800
    test: int = 200

    def __post_init__(self) -> None:
        check_fields(self)
        least = {"topics": 2, "words_per_topic": 1, "m": 1, "dictionary": 1, "train": 1, "test": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value < smallest:
                raise AttnscopeError(
                    f"{name} = {value}: expected {smallest} or more"
                    + (" non-topic words in a sentence." if name == "m" else ".")
                )
        if self.topic_words > self.train:
            raise AttnscopeError(
                f"topics = {self.topics} with words_per_topic = {self.words_per_topic} make "
                f"{self.topic_words} topic words, but train = {self.train}: expected at least one "
                "training sentence for each topic word."
            )

    @property
    def topic_words(self) -> int:
        """Number of topic words of all topics together."""
        return self.topics * self.words_per_topic

    @property
    def vocabulary(self) -> int:
        """Number of words of both kinds."""
        return self.topic_words + self.dictionary

    @property
    def topic_of(self) -> np.ndarray:
        """Topic of every word, -1 for non-topic words, shape ``(word,)``."""
        topic = np.full(self.vocabulary, -1)
        topic[: self.topic_words] = np.arange(self.topic_words) // self.words_per_topic
        return topic

    def sample(self, seed: int) -> TopicWordsData:
        """Draw the training and the test sentences."""
        rng = np.random.default_rng([seed, 0x7091C])
        return TopicWordsData(self, self._draw(rng, self.train), self._draw(rng, self.test))

    def _draw(self, rng: np.random.Generator, count: int) -> Bags:
        labels = rng.integers(self.topics, size=count)
        within = rng.integers(self.words_per_topic, size=count)
        others = rng.integers(self.topic_words, self.vocabulary, size=(count, self.m))
        ids = np.column_stack([labels * self.words_per_topic + within, others])
        return Bags(torch.from_numpy(ids), torch.from_numpy(labels), self.vocabulary)


@dataclass(frozen=True, eq=False)
class TopicWordsData:
    """A sample of :class:`TopicWords`; the topic word stands at position 0 of each sentence."""

    task: TopicWords
    train: Bags
    test: Bags
