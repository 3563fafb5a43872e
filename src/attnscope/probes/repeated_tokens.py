r"""Heads that look for what came before, told on random words that come twice.

A row is :math:`w_1 \dots w_n w_1 \dots w_n` with random words, so nothing but its first half tells
what its second half says. In the second half a head looks

- one place behind the first occurrence of its word, :math:`n - 1` back: **induction**, the
  prefix-matching score of Olsson et al. (2022);
- at the first occurrence itself, :math:`n` back: **duplicate token**;
- one back, in the whole row: **previous token**, the other half of an induction circuit.

Weights have the shape ``(row, head, query, key)``.
"""

from __future__ import annotations

import numpy as np


def repeated_ids(rows: int, length: int, words: int, seed: int = 0) -> np.ndarray:
    """Return rows of random words that come twice, and a word more if the length is odd.

    >>> first, *_ = repeated_ids(1, 5, 100)
    >>> bool((first[:2] == first[2:4]).all() and first[4] == first[0])
    True
    """
    half = length // 2
    chance = np.random.default_rng(seed)
    # No word twice in a half, where there are enough: then every word has one first occurrence.
    draw = (
        np.argsort(chance.random((rows, words)), axis=1)[:, :half]
        if half <= words <= 2**16
        else chance.integers(0, words, (rows, half))
    )
    return np.tile(draw, (1, 3))[:, :length]


def looking_back(weights: np.ndarray, back: int, first: int) -> np.ndarray:
    """Return the attention to the key ``back`` places before the query, per head.

    Args:
        weights: attention of a layer to itself.
        back: places.
        first: the first query that counts.
    """
    queries = np.arange(max(first, back), weights.shape[-2])
    if not queries.size:
        return np.full(weights.shape[1], np.nan)
    return np.asarray(weights[:, :, queries, queries - back].mean(axis=(0, 2)))


def induction(weights: np.ndarray) -> np.ndarray:
    """Return the prefix-matching score of every head, 1 for a perfect induction head."""
    half = weights.shape[-1] // 2
    return looking_back(weights, half - 1, half)


def duplicate_token(weights: np.ndarray) -> np.ndarray:
    """Return the attention to the first occurrence of the query's own word, per head."""
    half = weights.shape[-1] // 2
    return looking_back(weights, half, half)


def previous_token(weights: np.ndarray) -> np.ndarray:
    """Return the attention to the word before the query, per head."""
    return looking_back(weights, 1, 1)
