"""Running text as documents of the model of Li 2023: its commonest content words, in windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Tell, silent
from attnscope.tasks.topic_documents import MASK, Documents, TopicDocuments
from attnscope.topics.words import content_words

VOCABULARY = 60
"""Words that are taken, the commonest content words; with [MASK] there is one more."""
LENGTH, LEAST = 32, 4
"""Words of a window at most and at least."""
MOST = 1_000
"""Windows that are trained on; of more a sample is drawn."""
COPIES = 8
"""Times that each window is masked anew. With one mask a window, which positions are masked moved
the onset of single trainings by 5 % (WikiText-2); training with fresh masks averages over them."""
TEXTS, READ = 20_000, 2_000_000
"""Texts, and content words of them, that are read at most."""
_TASK = TopicDocuments()
"""The masks of the paper."""


@dataclass(frozen=True, eq=False)
class Windows:
    """What the model is to be trained on.

    Args:
        words: the vocabulary, the commonest word first; word i has the number i + 1, [MASK] is 0.
        rows: the numbers of each window's words, in their order.
        texts: texts that were read.
        counted: content words that were read.
        found: windows there were; ``rows`` may be a sample of them.
    """

    words: tuple[str, ...]
    rows: tuple[np.ndarray, ...]
    texts: int
    counted: int
    found: int

    @property
    def vocabulary(self) -> int:
        """Words with [MASK]."""
        return len(self.words) + 1

    @property
    def share(self) -> float:
        """Words in windows, of all content words, where all windows are taken."""
        return sum(map(len, self.rows)) * (self.found / max(len(self.rows), 1)) / self.counted

    def shuffled(self, seed: int) -> Windows:
        """Return windows of the same lengths, with all words dealt anew between them."""
        every = np.concatenate(self.rows)
        ends = np.cumsum([len(row) for row in self.rows])[:-1]
        mixed = np.random.default_rng([seed, 0x5407]).permutation(every)
        return replace(self, rows=tuple(np.split(mixed, ends)))

    def masked(self, seed: int, copies: int = COPIES) -> Documents:
        """Return the windows so many times over, each time masked anew (p_m, p_c, p_r of Li 2023).

        Positions are masked as in :class:`~attnscope.tasks.topic_documents.TopicDocuments`: the
        mask of a window that selects nothing is drawn again.

        Raises:
            AttnscopeError: there is no window.
        """
        if not self.rows:
            raise AttnscopeError("there is no window to mask: expected one or more.")
        rows = self.rows * copies
        lengths = np.array([len(row) for row in rows])
        here = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(here.shape, MASK)
        ids[here] = np.concatenate(rows)
        visible, selected = ids.copy(), np.zeros_like(here)
        dice, left = np.random.default_rng([seed, 0x3A5C]), np.arange(len(rows))
        p_m, p_c, p_r = _TASK.p_m, _TASK.p_c, _TASK.p_r
        while left.size:
            lot = dice.random((left.size, here.shape[1]))
            chosen = (lot < p_m) & here[left]
            changed = chosen & (lot >= p_m * p_c)
            random = changed & (lot < p_m * (p_c + p_r))
            seen = np.where(changed, MASK, ids[left])
            seen[random] = dice.integers(1, self.vocabulary, int(random.sum()))
            visible[left], selected[left] = seen, chosen
            left = left[~chosen.any(axis=1)]
        words, shown, hidden, there = map(torch.from_numpy, (ids, visible, selected, here))
        return Documents(words, shown, hidden, self.vocabulary, there)


def windows_of(texts: Sequence[str], seed: int = 0, tell: Tell = silent) -> Windows:
    """Cut texts into windows of their commonest content words.

    All other words are dropped, and what is left of a text is cut every :data:`LENGTH` words; an
    end of fewer than :data:`LEAST` is dropped too. Windows do not reach from a text into the next.

    Args:
        texts: one document each.
        seed: draws texts and windows where there are too many.
        tell: hears how far it is.
    """
    dice = np.random.default_rng([seed, 0x717D])
    order = np.arange(len(texts))
    if len(texts) > TEXTS:
        order = dice.permutation(len(texts))[:TEXTS]
    counts: Counter[str] = Counter()
    read: list[list[str]] = []
    for number, index in enumerate(order):
        if number % 500 == 0:
            tell("cutting windows", number, len(order))
        words = content_words(texts[int(index)])
        counts.update(words)
        read.append(words)
        if counts.total() > READ:
            break
    best = sorted(counts, key=lambda word: (-counts[word], word))[:VOCABULARY]
    number_of = {word: number for number, word in enumerate(best, start=1)}
    rows = []
    for words in read:
        kept = [number_of[word] for word in words if word in number_of]
        cut = (np.array(kept[at : at + LENGTH]) for at in range(0, len(kept), LENGTH))
        rows += [row for row in cut if len(row) >= LEAST]
    found = len(rows)
    if found > MOST:
        rows = [rows[i] for i in np.sort(dice.permutation(found)[:MOST])]
    return Windows(tuple(best), tuple(rows), len(read), counts.total(), found)
