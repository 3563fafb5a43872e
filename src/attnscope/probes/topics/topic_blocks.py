"""A matrix over words, averaged over the blocks that topics make of it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import xarray as xr

BLOCKS = ("mask column", "same topic", "different topic", "diagonal", "mask row")
"""What the numbers of :func:`block_means` are, in this order."""
MASK_COLUMN, SAME, DIFFERENT, DIAGONAL, MASK_ROW = range(len(BLOCKS))

Array = TypeVar("Array", np.ndarray, xr.DataArray)


def block_means(matrix: np.ndarray, topic: np.ndarray) -> np.ndarray:
    """Return the five numbers that describe a matrix which treats topics and words alike.

    Args:
        matrix: shape ``(..., word, word)`` with [MASK] first.
        topic: topic of every word, -1 for [MASK], shape ``(word,)``.

    Returns:
        Shape ``(..., 5)``: means of W_i0, of two words of one topic, of two topics, of W_ii, and
        the *largest* |W_0j|, which is to be zero.
    """
    itself, same, different = _places(topic)
    blocks = (matrix[..., 1:, 0], *(matrix[..., part] for part in (same, different, itself)))
    largest = np.abs(matrix[..., 0, :]).max(axis=-1)
    return np.stack([*(block.mean(axis=-1) for block in blocks), largest], axis=-1)


def block_matrix(means: np.ndarray, topic: np.ndarray) -> np.ndarray:
    """Return the matrix whose entries are the means of their blocks; its [MASK] row is zero.

    Args:
        means: of :func:`block_means`, shape ``(..., 5)``.
        topic: topic of every word, -1 for [MASK], shape ``(word,)``.
    """
    matrix = np.zeros((*means.shape[:-1], len(topic), len(topic)))
    matrix[..., 1:, 0] = means[..., [MASK_COLUMN]]
    for part, block in zip(_places(topic), (DIAGONAL, SAME, DIFFERENT), strict=True):
        matrix[..., part] = means[..., [block]]
    return matrix


def block_gap(means: Array, words: int) -> Array:
    """Average same-topic minus different-topic entry, the word itself included (Theorems 1, 2).

    Args:
        means: of :func:`block_means`, shape ``(..., 5)``.
        words: v, words of each topic.
    """
    same = ((words - 1) * means[..., SAME] + means[..., DIAGONAL]) / words
    return same - means[..., DIFFERENT]


def contrast(matrix: np.ndarray, topic: np.ndarray) -> np.ndarray:
    """Average of same-topic minus different-topic entries, over the spread of the latter.

    The diagonal takes no part: a Gram matrix has a large one whatever its topics are.

    Args:
        matrix: shape ``(..., word, word)`` with [MASK] first.
        topic: topic of every word, -1 for [MASK], shape ``(word,)``.
    """
    _, same, different = _places(topic)
    others = matrix[..., different]
    return np.asarray((matrix[..., same].mean(-1) - others.mean(-1)) / others.std(-1))


def permuted(topic: np.ndarray, seed: int) -> np.ndarray:
    """Return the topics of the words permuted at random; [MASK] still has none."""
    return np.concatenate([topic[:1], np.random.default_rng(seed).permutation(topic[1:])])


def _places(topic: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where a word meets itself, another of its topic, and one of another topic."""
    words = (topic[:, None] >= 0) & (topic >= 0)
    alike = words & (topic[:, None] == topic)
    itself = alike & np.eye(len(topic), dtype=np.bool_)
    return itself, alike & ~itself, words & ~alike
