r"""What heads share, and what single positions get: sinks, twins, and the scale of logits.

Weights have the shape ``(row, head, query, key)``; ``visible`` and ``asking`` are the masks of
:mod:`attnscope.probes.attention_shape`.
"""

from __future__ import annotations

import numpy as np

from attnscope.probes.entropy_floor import entropy_floor

SINK_KEYS = 4
"""Queries that see fewer keys have little choice, and do not count for a sink."""


def received(weights: np.ndarray, visible: np.ndarray, asking: np.ndarray) -> np.ndarray:
    """Return the attention that each position gets, shape ``(head, key)``.

    It is the mean over rows and over queries that see four keys or more; a query that does not see
    the position counts as 0. NaN without such queries.

    >>> weights = np.zeros((1, 1, 4, 4)); weights[..., 0] = 1.0
    >>> see = np.ones((1, 4, 4), dtype=bool)
    >>> received(weights, see, np.ones((1, 4), dtype=bool))
    array([[1., 0., 0., 0.]])
    """
    counted = asking & (visible.sum(axis=-1) >= SINK_KEYS)
    number = int(counted.sum())
    if not number:
        return np.full((weights.shape[1], weights.shape[3]), np.nan)
    total = np.einsum("rhqk,rq->hk", weights, counted.astype(weights.dtype))
    return np.asarray(total / number)


def nearest_head(weights: np.ndarray, asking: np.ndarray) -> np.ndarray:
    r"""Return how far each head is from the head of its layer that attends most like it.

    The distance is the total variation :math:`\frac12 \sum_k |a_k - b_k|`, mean over the queries
    that count: 0 for two heads that do the same. NaN for a layer of one head.
    """
    heads = weights.shape[1]
    count = asking.sum()
    if heads < 2 or not count:
        return np.full(heads, np.nan)
    kept = np.moveaxis(weights, 1, 0)[:, asking]
    nearest = np.full(heads, np.inf)
    for one in range(heads - 1):
        apart = np.abs(kept[one + 1 :] - kept[one]).sum(axis=(1, 2)) / (2 * count)
        nearest[one] = min(nearest[one], apart.min())
        nearest[one + 1 :] = np.minimum(nearest[one + 1 :], apart)
    return nearest


def logit_scale(weights: np.ndarray, visible: np.ndarray, asking: np.ndarray) -> np.ndarray:
    r"""Return the norm of the centred logits of a query, mean over queries, per head.

    Softmax forgets a constant for each query and nothing else, so with :math:`l_k = \ln a_k` over
    the keys that are seen it is :math:`s = \|l - \bar l\|_2`, the scale in the floor of Zhai et al.
    (2023) in its form for one row. A weight that underflowed counts as the smallest number of its
    format. Queries that see one key only do not count.
    """
    scales, counted = _scales(weights, visible, asking)
    number = int(counted.sum())
    if not number:
        return np.full(weights.shape[1], np.nan)
    return np.asarray(np.where(counted[:, None], scales, 0.0).sum(axis=(0, 2)) / number)


def floor_of_entropy(weights: np.ndarray, visible: np.ndarray, asking: np.ndarray) -> np.ndarray:
    """Return the least entropy that the logits of a query allow, mean over queries, per head.

    Each row has its own scale and its own number of keys (Zhai et al. 2023, for one row). A query
    that sees one key only has the floor 0, and the entropy 0. The mean is over the same queries as
    that of :func:`~attnscope.probes.attention_shape.entropy`, which is never below it.
    """
    scales, counted = _scales(weights, visible, asking)
    number = int(asking.sum())
    if not number:
        return np.full(weights.shape[1], np.nan)
    floors = entropy_floor(scales, np.maximum(visible.sum(axis=-1), 2)[:, None])
    return np.asarray(np.where(counted[:, None], floors, 0.0).sum(axis=(0, 2)) / number)


def _scales(
    weights: np.ndarray, visible: np.ndarray, asking: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scale of every row, (row, head, query), and which queries count."""
    seen = visible.sum(axis=-1)
    there = visible[:, None]
    logs = np.where(there, np.log(np.maximum(weights, np.finfo(weights.dtype).tiny)), 0.0)
    size = np.maximum(seen, 1)[:, None]
    # Centred first: the difference of two sums of squares would lose half of the digits.
    logs = np.where(there, logs - (logs.sum(axis=-1) / size)[..., None], 0.0)
    return np.sqrt((logs**2).sum(axis=-1)), asking & (seen > 1)
