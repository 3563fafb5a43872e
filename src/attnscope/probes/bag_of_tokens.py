"""What counting tokens alone can do: a linear classifier that knows nothing of their order."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from torch import Tensor

from attnscope.tasks.sequence_rows import Sequences

RIDGE = 1e-2
"""Penalty of squared weights, relative to the variance of a standardised feature."""
LONGEST = 5.0
"""Standardised counts are cut here, for rare tokens have wild ones."""
PART = 1000


def bag_accuracy(
    train: Sequences, test: Sequences, train_rows: Tensor, test_rows: Tensor, vocabulary: int
) -> float:
    """Return the test accuracy of least squares on the share that each token has of a sequence."""
    seen, labels = _shares(train, train_rows, vocabulary)
    unseen, truth = _shares(test, test_rows, vocabulary)
    mean, scale = seen.mean(axis=0), seen.std(axis=0)
    scale[scale == 0] = 1.0
    seen, unseen = (np.clip((x - mean) / scale, -LONGEST, LONGEST) for x in (seen, unseen))
    square = seen.T @ seen / len(seen) + RIDGE * np.eye(vocabulary)
    target = 2.0 * labels - 1
    weights = linalg.solve(square, seen.T @ (target - target.mean()) / len(seen), assume_a="pos")
    guess = unseen @ weights + target.mean() > seen.mean(axis=0) @ weights
    return float((guess == (truth == 1)).mean())


def _shares(sequences: Sequences, rows: Tensor, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    shares, labels = [], []
    for part in rows.split(PART):
        batch = sequences.batch(part)
        ids = batch.ids.numpy()
        there = np.ones_like(ids, dtype=bool) if batch.mask is None else batch.mask.numpy()
        flat = (ids + vocabulary * np.arange(len(ids))[:, None])[there]
        counts = np.bincount(flat, minlength=vocabulary * len(ids)).reshape(len(ids), vocabulary)
        shares.append(counts / counts.sum(axis=1, keepdims=True))
        labels.append(batch.labels.numpy())
    return np.concatenate(shares), np.concatenate(labels)
