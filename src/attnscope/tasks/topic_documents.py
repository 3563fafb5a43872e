"""The task of Li 2023: documents of a few topics, some of whose words are hidden."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.host import on_host
from attnscope.tasks.topic_contexts import Contexts

MASK = 0
"""Word number of [MASK]."""
MOSTLY_EMPTY = 0.99
"""Refuse masking that leaves so large a share of the shortest documents without a position."""


@dataclass(frozen=True)
class TopicDocuments:
    """Documents from T topics of v words each, masked for prediction (Li 2023).

    A document has either ``tau`` distinct topics, drawn uniformly and equally likely at each
    position, or topic probabilities drawn from a symmetric Dirichlet distribution. Each position
    draws a topic of the document, then one of the topic's v words uniformly. Words are numbered
    ``1 .. T v``, topic after topic; ``0`` is [MASK].

    Masking: each position is selected with probability ``p_m``. At a selected position the reader
    sees the correct word with probability ``p_c``, a word drawn uniformly from all T v words (it
    may be the correct one) with probability ``p_r``, and [MASK] otherwise.

    The loss is an average over the selected positions of a document, 1/|M|, and has no meaning if
    there is none. So the mask of a document without a selected position is drawn again until it
    has one: masks are conditioned on |M| >= 1. :attr:`Documents.redraws` counts how often.

    Args:
        topics: T, number of topics.
        words: v, number of words of each topic.
        tau: distinct topics of each document.
        alpha: parameter of the Dirichlet distribution; 0.1 if neither it nor ``tau`` is given.
        length: positions of a document, or the smallest and largest number of them (inclusive), of
            which each is equally likely.
        p_m: probability that a position is selected.
        p_c: probability that a selected position shows its own word.
        p_r: probability that a selected position shows a random word.
    """

    topics: int = 10
    words: int = 10
    tau: int | None = None
    alpha: float | None = None
    length: tuple[int, int] | int = (100, 150)
    p_m: float = 0.15
    p_c: float = 0.1
    p_r: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        check_topics(self.topics, self.words, self.tau)
        check_masking(self.p_m, self.p_c, self.p_r)
        if self.tau is None and self.alpha is None:
            object.__setattr__(self, "alpha", 0.1)
        if self.alpha is not None:
            if self.tau is not None:
                raise AttnscopeError(
                    f"tau = {self.tau} and alpha = {self.alpha}: expected one of them, a fixed "
                    "number of topics or a Dirichlet distribution."
                )
            if not 0 < self.alpha < np.inf:
                raise AttnscopeError(f"alpha = {self.alpha}: expected a finite number above 0.")
        low, high = self.lengths
        if not 1 <= low <= high:
            raise AttnscopeError(
                f"length = {self.length}: expected a number of positions, 1 or more, or the "
                "smallest and the largest."
            )
        empty = (1 - self.p_m) ** low
        if empty > MOSTLY_EMPTY:
            raise AttnscopeError(
                f"p_m = {self.p_m} at length = {self.length} selects no position in {empty:.2%} of "
                "the shortest documents: expected longer documents or a larger p_m."
            )

    @property
    def lengths(self) -> tuple[int, int]:
        """Smallest and largest number of positions."""
        return (self.length, self.length) if isinstance(self.length, int) else self.length

    @property
    def vocabulary(self) -> int:
        """V = T v + 1, number of words with [MASK]."""
        return self.topics * self.words + 1

    @property
    def topic_of(self) -> np.ndarray:
        """Topic of every word, -1 for [MASK], shape ``(word,)``."""
        return topic_of(self.topics, self.words)

    def sample(self, documents: int, seed: int) -> Documents:
        """Draw so many documents and their masks."""
        if documents < 1:
            raise AttnscopeError(f"documents = {documents}: expected 1 or more.")
        return self.draw(np.random.default_rng([seed, 0x70D0C]), documents)

    def stream(self, batch: int, seed: int) -> Iterator[Documents]:
        """Yield batches of fresh documents, without end."""
        batches = TopicStream(self, seed)
        for start in count(0, batch):
            yield batches[torch.arange(start, start + batch)]

    def draw(self, rng: np.random.Generator, documents: int) -> Documents:
        """Draw documents from a given source of random numbers."""
        low, high = self.lengths
        occupied = None
        if low < high:
            lengths = rng.integers(low, high + 1, size=documents)
            high = int(lengths.max())
            occupied = np.arange(high) < lengths[:, None]
        ids, mixture = self._words(rng, (documents, high))
        visible, selected = self._mask(rng, ids, occupied)
        redraws = np.zeros(documents, dtype=np.int64)
        while (empty := np.flatnonzero(~selected.any(axis=1))).size:
            redraws[empty] += 1
            part = None if occupied is None else occupied[empty]
            visible[empty], selected[empty] = self._mask(rng, ids[empty], part)
        if occupied is not None:
            ids[~occupied] = visible[~occupied] = MASK
        return Documents(
            torch.from_numpy(ids),
            torch.from_numpy(visible),
            torch.from_numpy(selected),
            self.vocabulary,
            None if occupied is None else torch.from_numpy(occupied),
            torch.from_numpy(mixture),
            torch.from_numpy(redraws),
        )

    def _words(
        self, rng: np.random.Generator, shape: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return words ``(document, position)`` and topic probabilities ``(document, topic)``."""
        rows = np.arange(shape[0])[:, None]
        if self.tau is not None:
            chosen = rng.random((shape[0], self.topics)).argsort(axis=1)[:, : self.tau]
            mixture = np.zeros((shape[0], self.topics))
            mixture[rows, chosen] = 1 / self.tau
            slot, word = np.divmod(rng.integers(self.tau * self.words, size=shape), self.words)
            return 1 + chosen[rows, slot] * self.words + word, mixture
        assert self.alpha is not None
        mixture = rng.dirichlet(np.full(self.topics, self.alpha), size=shape[0])
        # One search in all documents' distribution functions, document k's lying from k to k + 1.
        edges = np.cumsum(mixture, axis=1)[:, :-1] + rows
        below = np.searchsorted(edges.reshape(-1), rng.random(shape) + rows, side="right")
        topic = np.minimum(below - rows * (self.topics - 1), self.topics - 1)
        return 1 + topic * self.words + rng.integers(self.words, size=shape), mixture

    def _mask(
        self, rng: np.random.Generator, ids: np.ndarray, occupied: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        # One uniform number decides: correct below p_m p_c, random up to p_m (p_c + p_r), [MASK]
        # up to p_m, not selected above.
        lot = rng.random(ids.shape)
        selected = lot < self.p_m
        if occupied is not None:
            selected &= occupied
        changed = selected & (lot >= self.p_m * self.p_c)
        random = changed & (lot < self.p_m * (self.p_c + self.p_r))
        visible = np.where(changed, MASK, ids)
        visible[random] = rng.integers(1, self.vocabulary, size=int(random.sum()))
        return visible, selected


@dataclass(frozen=True, eq=False)
class Documents:
    """Masked documents, of :class:`TopicDocuments` or of one's own.

    Args:
        ids: the original words, shape ``(document, position)``.
        visible: what the reader sees, [MASK] being 0.
        selected: true where the original word has to be predicted; once or more in each document.
        vocabulary: number of words with [MASK]; ids lie in ``0 .. vocabulary - 1``.
        mask: true where a position holds a word; ``None`` when all documents are of one length.
        mixture: topic probabilities, shape ``(document, topic)``, if they are known.
        redraws: masks thrown away because they selected nothing, shape ``(document,)``.
    """

    ids: Tensor
    visible: Tensor
    selected: Tensor
    vocabulary: int
    mask: Tensor | None = None
    mixture: Tensor | None = None
    redraws: Tensor | None = None

    def __post_init__(self) -> None:
        if self.ids.device.type != "cpu":
            return  # They were looked at before they were put there.
        # They share memory with the tensors, and stay on the host when those are put elsewhere.
        object.__setattr__(self, "_arrays", self._host())
        for words in (self.ids, self.visible):
            low, high = (int(end) for end in torch.aminmax(words))
            if low < 0 or high >= self.vocabulary:
                raise AttnscopeError(
                    f"word ids go from {low} to {high}: expected 0 to {self.vocabulary - 1}, "
                    f"for a vocabulary of {self.vocabulary}."
                )
        here = self.selected if self.mask is None else self.selected & self.mask
        if not bool(here.any(dim=1).all()):
            bad = int((~here.any(dim=1)).nonzero()[0, 0])
            raise AttnscopeError(
                f"document {bad} has no selected position: expected one or more in each document, "
                "since the loss is an average over them."
            )

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: Tensor) -> Documents:
        arrays, chosen = self._host(), rows.numpy()

        def made() -> Documents:
            ids, visible, selected, *optional = (
                None if each is None else torch.from_numpy(each[chosen]) for each in arrays
            )
            return Documents(ids, visible, selected, self.vocabulary, *optional)  # type: ignore[arg-type]

        return on_host(made)

    @cached_property
    def lengths(self) -> Tensor:
        """Number of positions of each document, N."""
        if self.mask is None:
            return torch.full((len(self),), self.ids.shape[1])
        return self.mask.sum(dim=1)

    @cached_property
    def weights(self) -> Tensor:
        """Share of each selected position in the loss, 1 / (documents |M|), in reading order."""
        return torch.from_numpy(self._shares())

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """Row and position of each selected position, in reading order."""
        rows, positions = np.nonzero(self._host()[2])
        return torch.from_numpy(rows), torch.from_numpy(positions)

    def _shares(self) -> np.ndarray:
        selected = self._host()[2]
        counts = selected.sum(axis=1)
        return np.repeat(1 / (len(self) * counts.astype(float)), counts)

    def _host(self) -> tuple[Any, ...]:
        """Return all tensors as arrays, which are views of them unless those are on a device."""
        kept: tuple[Any, ...] | None = getattr(self, "_arrays", None)
        if kept is None:
            given = (self.ids, self.visible, self.selected, self.mask, self.mixture, self.redraws)
            kept = tuple(None if part is None else part.cpu().numpy() for part in given)
        return kept

    def contexts(
        self, dtype: torch.dtype, *, by_query: bool = True, masked_queries: bool = True
    ) -> Contexts:
        """Return what predictions depend on, each case once; see :class:`Contexts`.

        Args:
            dtype: of counts and weights.
            by_query: tell apart what stands at the position itself; uniform attention does not.
            masked_queries: count the positions that show [MASK] too.
        """
        key = (dtype, by_query, masked_queries)
        if key not in self._cache:
            self._cache[key] = self._contexts(*key)
        return self._cache[key]

    @cached_property
    def _cache(self) -> dict[tuple[torch.dtype, bool, bool], Contexts]:
        return {}

    def _contexts(self, dtype: torch.dtype, by_query: bool, masked_queries: bool) -> Contexts:
        words, rows = self.vocabulary, np.arange(len(self))[:, None] * self.vocabulary
        ids, visible, selected, here, *_ = self._host()
        codes = visible + rows
        occupied = codes.reshape(-1) if here is None else codes[here]
        counts = np.bincount(occupied, minlength=len(self) * words).reshape(-1, words)
        case, original, weight = codes[selected], ids[selected], self._shares()
        if not masked_queries:
            kept = case % words != MASK
            case, original, weight = case[kept], original[kept], weight[kept]
        if not by_query:
            case = case // words * words
        # The codes are few, so a table of them is faster than sorting.
        present = np.zeros(counts.size, dtype=np.bool_)
        present[case] = True
        distinct = np.flatnonzero(present)
        number = (np.cumsum(present) - 1)[case]
        target = np.bincount(
            number * words + original, weights=weight, minlength=distinct.size * words
        )
        with np.errstate(divide="ignore"):
            log_counts = np.log(counts)
        return Contexts(
            torch.from_numpy(log_counts).to(dtype),
            torch.from_numpy(distinct // words),
            torch.from_numpy(distinct % words),
            torch.from_numpy(target.reshape(-1, words)).to(dtype),
            torch.from_numpy(number),
        )


@dataclass(frozen=True)
class TopicStream:
    """Documents that are never seen twice: drawn when asked for, not kept.

    ``stream[rows]`` is a batch of ``len(rows)`` fresh documents. Which ones is a function of the
    seed and of the row numbers, so a mini-batch descent over so and so many rows can be resumed.

    Args:
        task: what documents look like.
        seed: of all batches.
    """

    task: TopicDocuments
    seed: int

    def __getitem__(self, rows: Tensor) -> Documents:
        rng = np.random.default_rng([self.seed, *rows.tolist()])
        return on_host(lambda: self.task.draw(rng, len(rows)))


def topic_of(topics: int, words: int) -> np.ndarray:
    """Topic of word i, (i - 1) // v, and -1 for [MASK]."""
    return np.concatenate([[-1], np.repeat(np.arange(topics), words)])


def check_topics(topics: int, words: int, tau: int | None) -> None:
    """Refuse topics that make no documents; warn if they cannot be told apart."""
    for name, value, least in (("topics", topics, 2), ("words", words, 1), ("tau", tau, 1)):
        if value is not None and value < least:
            raise AttnscopeError(f"{name} = {value}: expected {least} or more.")
    if tau is not None and tau > topics:
        raise AttnscopeError(
            f"tau = {tau} distinct topics of topics = {topics}: expected {topics - 1} or fewer."
        )
    if tau == topics:
        warnings.warn(
            f"tau = {tau} is the number of topics: every document holds all of them, so there is "
            "no topic structure to learn and the theory, which needs tau < topics, says nothing.",
            stacklevel=4,
        )


def check_masking(p_m: float, p_c: float, p_r: float) -> None:
    """Refuse masking that is none."""
    if not 0 < p_m <= 1:
        raise AttnscopeError(
            f"p_m = {p_m}: expected a probability above 0, or no position is ever selected."
        )
    for name, value in (("p_c", p_c), ("p_r", p_r)):
        if not 0 <= value < 1:
            raise AttnscopeError(f"{name} = {value}: expected a probability from 0 to below 1.")
    if p_c + p_r >= 1:
        raise AttnscopeError(
            f"p_c = {p_c} and p_r = {p_r} sum to {p_c + p_r:g}: expected less than 1, so that some "
            "selected positions show [MASK]."
        )
