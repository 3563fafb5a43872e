"""Pairs of words in running text: one topic, two topics, or often together (Li 2023, section 6).

Everything is a sum over pairs of positions and a number of pairs, document by document. Means are
quotients of the two over all documents, so that a document counts as much as it has pairs, as in
the paper; intervals come from the bootstrap over documents (:mod:`attnscope.probes.bootstrap`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from attnscope.probes.bootstrap import pooled_mean

KINDS = ("same topic", "different topics", "co-occurring")
"""Different words of one topic; words without a common topic; those of the second kind that stand
together in the most documents (Table 2)."""
SAME, DIFFERENT, TOGETHER = range(3)
DISTANCES = (1, 3, 5, 9, 17, 33, 65, 129)
"""Where bins of the distance between two positions begin; the last one is open."""


def pair_kinds(words: np.ndarray, topics: np.ndarray, cooccurring: np.ndarray) -> np.ndarray:
    """Return which ordered pairs of positions are of which kind.

    Two positions with the same word are of no kind, a position and itself among them: attention of
    a word to itself says nothing about topics. Nor are pairs with a word without a topic.

    Args:
        words: number of the word at each position, shape ``(position,)``.
        topics: which topics each position's word stands for, shape ``(position, topic)``.
        cooccurring: numbers of the pairs of words that co-occur often, sorted; see
            :func:`pair_numbers`.

    Returns:
        Booleans of shape ``(3, position, position)``, in the order of :data:`KINDS`.
    """
    same, different = same_and_different(words, topics)
    often = np.zeros_like(different)
    if cooccurring.size:
        numbers = pair_numbers(words[:, None], words)
        places = np.searchsorted(cooccurring, numbers).clip(max=len(cooccurring) - 1)
        often = different & (cooccurring[places] == numbers)
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
    """Return one number for each unordered pair of word ids."""
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
    return pooled_mean(np.where(fit, sums[:, SAME], 0), expected, weights)


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
