"""Pairs of words in running text: one topic, two topics, or often together (Li 2023, section 6).

Everything is a sum over pairs of positions and a number of pairs, document by document. Means are
quotients of the two over all documents, so that a document counts as much as it has pairs, as in
the paper; intervals come from drawing documents again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError

KINDS = ("same topic", "different topics", "co-occurring")
"""Different words of one topic; words without a common topic; those of the second kind that stand
together in the most documents (Table 2)."""
SAME, DIFFERENT, TOGETHER = range(3)
DISTANCES = (1, 3, 5, 9, 17, 33, 65, 129)
"""Where bins of the distance between two positions begin; the last one is open."""


@dataclass(frozen=True)
class Interval:
    """A value and the ends of its interval; arrays of one shape.

    Args:
        value: from all documents.
        low: lower end.
        high: upper end.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def pair_kinds(words: np.ndarray, topics: np.ndarray, together: np.ndarray) -> np.ndarray:
    """Return which ordered pairs of positions are of which kind.

    Two positions with the same word are of no kind, a position and itself among them: attention of
    a word to itself says nothing about topics. Nor are pairs with a word without a topic.

    Args:
        words: number of the word at each position, shape ``(position,)``.
        topics: which topics each position's word stands for, shape ``(position, topic)``.
        together: numbers of the pairs of words that are often together, sorted; see
            :func:`pair_numbers`.

    Returns:
        Booleans of shape ``(3, position, position)``, in the order of :data:`KINDS`.
    """
    same, different = same_and_different(words, topics)
    often = np.zeros_like(different)
    if together.size:
        numbers = pair_numbers(words[:, None], words)
        places = np.searchsorted(together, numbers).clip(max=len(together) - 1)
        often = different & (together[places] == numbers)
    return np.stack([same, different, often])


def same_and_different(words: np.ndarray, topics: np.ndarray) -> np.ndarray:
    """Return pairs of one topic and of two, shape ``(2, ..., position, position)``.

    Args:
        words: number of the word at each position, shape ``(position,)``.
        topics: shape ``(..., position, topic)``.
    """
    # By PyTorch, which keeps to the threads it is given; NumPy's products of small matrices on a
    # busy machine wait for each other.
    member = torch.from_numpy(np.ascontiguousarray(topics)).float()
    shared = (member @ member.transpose(-1, -2) > 0).numpy()
    known = np.asarray(topics.any(axis=-1))
    other = known[..., :, None] & known[..., None, :] & (words[:, None] != words)
    same = other & shared
    return np.stack([same, other & ~same])


def pair_numbers(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return one number for each unordered pair of word numbers."""
    low = np.minimum(left, right).astype(np.int64)
    return (low << 32) + np.maximum(left, right)


def pair_sums(values: Tensor, kinds: Tensor) -> Tensor:
    """Sum over the pairs of every kind.

    Args:
        values: one number a pair, shape ``(..., position, position)``.
        kinds: ones and zeros of the same type, shape ``(kind, position, position)``.

    Returns:
        Shape ``(kind, ...)``.
    """
    shape, pairs = values.shape[:-2], math.prod(values.shape[-2:])
    sums = kinds.reshape(len(kinds), pairs) @ values.reshape(math.prod(shape), pairs).T
    return sums.reshape(len(kinds), *shape)


def distance_bins(positions: np.ndarray) -> np.ndarray:
    """Return the bin of :data:`DISTANCES` that every pair of positions is in; -1 for distance 0."""
    apart = np.abs(positions[:, None] - positions[None])
    return np.asarray(np.searchsorted(DISTANCES, apart, side="right") - 1)


def cosines(vectors: Tensor) -> Tensor:
    """Return cosines and dot products of all pairs of vectors, shape ``(2, word, word)``.

    A vector of length zero has cosine 0 with every other.

    Args:
        vectors: shape ``(word, width)``.
    """
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    return torch.stack([unit @ unit.T, vectors @ vectors.T])


def redrawn(groups: np.ndarray, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """Return how often each document is drawn, shape ``(draws, document)``.

    Documents of one group are drawn together. If every document is a group of its own this is the
    bootstrap over documents. A random twin has other weights for every group: drawing groups again
    speaks of documents and of weights.

    Args:
        groups: a number a document.
        draws: how often all are drawn.
        seed: of the draws.
    """
    names, index = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise AttnscopeError(
            f"{len(names)} group of documents to draw from: expected two or more for an interval."
        )
    generator = np.random.default_rng(seed)
    shares = np.full(len(names), 1 / len(names))
    counts = generator.multinomial(len(names), shares, size=draws)
    return counts[:, index].astype(np.float64)


def mean(sums: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the mean over all pairs of all documents; NaN without any.

    Args:
        sums: shape ``(document, ...)``.
        counts: number of pairs, of a shape that broadcasts against it.
        weights: how often each document is drawn, shape ``(draws, document)``; once unless given.

    Returns:
        Shape ``(...)``, or ``(draws, ...)`` with weights.
    """
    if weights is None:
        total, number = sums.sum(axis=0), counts.sum(axis=0)
    else:
        total, number = np.tensordot(weights, sums, 1), np.tensordot(weights, counts, 1)
    number = np.broadcast_to(number, total.shape)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def interval(value: np.ndarray, drawn: np.ndarray, level: float = 0.95) -> Interval:
    """Return the interval between the outer quantiles of what was drawn.

    Args:
        value: from all documents.
        drawn: the same from every draw, along the first axis.
        level: share of the draws inside.
    """
    low, high = np.full(np.shape(value), np.nan), np.full(np.shape(value), np.nan)
    fit = ~np.isnan(drawn).any(axis=0)
    tails = np.quantile(drawn[:, fit], ((1 - level) / 2, (1 + level) / 2), axis=0)
    low[fit], high[fit] = tails
    return Interval(np.asarray(value), low, high)


def within_documents(
    sums: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return same over different topics, as if each document had its own yardstick.

    Σ_d S_d / Σ_d n_d m_d, where S_d and n_d are sum and number of the same-topic pairs of document
    d, and m_d is the mean of its other pairs. A document in which all words attend to each other
    more than elsewhere, and which happens to be of one topic, adds nothing to this ratio.

    Args:
        sums: shape ``(document, kind)``.
        counts: the same shape.
        weights: how often each document is drawn.
    """
    fit = (counts[:, SAME] > 0) & (counts[:, DIFFERENT] > 0)
    safe = np.where(fit, counts[:, DIFFERENT], 1)
    expected = np.where(fit, counts[:, SAME] * sums[:, DIFFERENT] / safe, 0)
    return mean(np.where(fit, sums[:, SAME], 0), expected, weights)


def at_equal_distance(
    sums: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return same over different topics, with as many pairs of every distance on both sides.

    Σ_b S_b / Σ_b n_b m_b over bins b of distance, where m_b is the mean of all pairs of different
    topics in the bin. Words of one topic stand nearer to each other, and attention falls with
    distance; that adds nothing to this ratio.

    Args:
        sums: shape ``(document, kind, bin)``.
        counts: the same shape.
        weights: how often each document is drawn.
    """
    if weights is None:
        weights = np.ones((1, len(sums)))
        return np.asarray(at_equal_distance(sums, counts, weights)[0])
    total, number = np.tensordot(weights, sums, 1), np.tensordot(weights, counts, 1)
    fit = (number[:, SAME] > 0) & (number[:, DIFFERENT] > 0)
    safe = np.where(fit, number[:, DIFFERENT], 1)
    expected = np.where(fit, number[:, SAME] * total[:, DIFFERENT] / safe, 0).sum(axis=-1)
    found = np.where(fit, total[:, SAME], 0).sum(axis=-1)
    return np.divide(found, expected, out=np.full(found.shape, np.nan), where=expected > 0)
