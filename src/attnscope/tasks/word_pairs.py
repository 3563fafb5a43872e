"""The task of Lu 2021, appendix A: a pair of neighbouring words tells the topic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.bags import Bags


@dataclass(frozen=True)
class WordPairs:
    """Two Markov chains over one dictionary, told apart by their topic word pairs.

    Chain i moves from any word to any word uniformly, except that a leading word of a pair in L_i
    always moves to one of its second words. A sentence starts with the leading word of a random
    pair of its topic, so it holds at least one topic pair. No word stands in two pairs.

    Args:
        dictionary: number of words.
        pairs_per_topic: |L_A| = |L_B|.
        length: words in a sentence, m + 1.
        train: number of training sentences.
        test: number of test sentences.
    """

    dictionary: int = 200
    pairs_per_topic: int = 2
    length: int = 10
    train: int = 4000
    test: int = 1000

    topics = 2

    def __post_init__(self) -> None:
        check_fields(self)
        least = {"dictionary": 2, "pairs_per_topic": 1, "length": 2, "train": 1, "test": 1}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise AttnscopeError(
                    f"{name} = {getattr(self, name)}: expected {smallest} or more."
                )
        needed = 2 * self.topics * self.pairs_per_topic
        if self.dictionary < needed:
            raise AttnscopeError(
                f"dictionary = {self.dictionary}: expected {needed} or more, two words for each of "
                f"the {self.topics * self.pairs_per_topic} topic word pairs."
            )

    def sample(self, seed: int) -> WordPairsData:
        """Draw the pairs, the training sentences and the test sentences."""
        rng = np.random.default_rng([seed, 0x9A125])
        words = rng.permutation(self.dictionary)[: 2 * self.topics * self.pairs_per_topic]
        pairs = words.reshape(self.topics, self.pairs_per_topic, 2)
        train = self._draw(rng, pairs, self.train)
        return WordPairsData(self, pairs, train, self._draw(rng, pairs, self.test))

    def _draw(self, rng: np.random.Generator, pairs: np.ndarray, count: int) -> Sentences:
        labels = rng.integers(self.topics, size=count)
        # forced[i, w] is the word that chain i must go to from w, or -1.
        forced = np.full((self.topics, self.dictionary), -1)
        for topic in range(self.topics):
            forced[topic, pairs[topic, :, 0]] = pairs[topic, :, 1]
        ids = np.empty((count, self.length), dtype=np.int64)
        ids[:, 0] = pairs[labels, rng.integers(self.pairs_per_topic, size=count), 0]
        for position in range(1, self.length):
            free = rng.integers(self.dictionary, size=count)
            must = forced[labels, ids[:, position - 1]]
            ids[:, position] = np.where(must >= 0, must, free)
        drawn = Sentences(torch.from_numpy(ids), torch.from_numpy(labels), self.dictionary)
        # Counted on the host, before anything is put on a device.
        assert len(drawn.pairs) == len(drawn)
        assert drawn.pair_words.shape[1] == 2
        return drawn


@dataclass(frozen=True, eq=False)
class Sentences:
    """Labelled sentences of one length whose words stand in order."""

    ids: Tensor
    labels: Tensor
    vocabulary: int

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: Tensor) -> Sentences:
        return Sentences(self.ids[rows], self.labels[rows], self.vocabulary)

    @cached_property
    def pair_words(self) -> Tensor:
        """The two words of every pair of neighbours that occurs, shape ``(pair, 2)``."""
        codes = self._distinct[0]
        return torch.stack([codes // self.vocabulary, codes % self.vocabulary], dim=1)

    @cached_property
    def pairs(self) -> Bags:
        """Each sentence as a bag of the pairs in it, numbered as in :attr:`pair_words`."""
        codes, ids = self._distinct
        return Bags(ids, self.labels, codes.numel())

    @cached_property
    def _distinct(self) -> tuple[Tensor, Tensor]:
        """Numbers of the pairs that occur, and which of them stands where."""
        codes = self.ids[:, :-1] * self.vocabulary + self.ids[:, 1:]
        distinct, ids = torch.unique(codes, return_inverse=True)
        return distinct, ids.view_as(codes)


@dataclass(frozen=True, eq=False)
class WordPairsData:
    """A sample of :class:`WordPairs`; ``pairs`` has shape ``(topic, pair, 2)``."""

    task: WordPairs
    pairs: np.ndarray
    train: Sentences
    test: Sentences
