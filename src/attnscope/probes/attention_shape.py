r"""How attention is spread over keys, one number a head.

Weights have the shape ``(row, head, query, key)``. Two masks say what they are weights of:
``visible``, shape ``(row, query, key)``, is where a query may look, so that a causal query at
position 3 is spread over four keys and padding is no key at all; ``asking``, shape
``(row, query)``, is which queries count. Every number is the mean over the rows and queries that
count, NaN for a head without any.
"""

from __future__ import annotations

import numpy as np

from attnscope.errors import AttnscopeError


def visible_pairs(weights: np.ndarray) -> np.ndarray:
    """Return where any head looks, shape ``(row, query, key)``.

    A mask makes a weight exactly 0; a softmax without one does so only when it underflows, which
    for a pair of positions takes all heads at once.
    """
    return np.asarray((_four(weights) > 0).any(axis=1))


def entropy(weights: np.ndarray, asking: np.ndarray | None = None) -> np.ndarray:
    r"""Return :math:`H = -\sum_k a_k \ln a_k` in nats, per head.

    >>> entropy(np.full((1, 1, 1, 4), 0.25)) / np.log(4)
    array([1.])
    """
    weights = _four(weights)
    return _mean(_entropies(weights), asking)


def relative_entropy(
    weights: np.ndarray, visible: np.ndarray, asking: np.ndarray | None = None
) -> np.ndarray:
    r"""Return :math:`H / \ln L` per head, with L the number of keys that a query sees.

    It is 1 for uniform attention at any length, and 0 for attention to one key. Queries that see
    one key only have no choice and do not count.
    """
    weights = _four(weights)
    seen = visible.sum(axis=-1)
    share = _entropies(weights) / np.log(np.maximum(seen, 2))[:, None]
    return _mean(share, _and(asking, seen > 1))


def largest_weight(weights: np.ndarray, asking: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of the key that a query looks at most, per head."""
    return _mean(_four(weights).max(axis=-1), asking)


def distance_to_uniform(
    weights: np.ndarray, visible: np.ndarray, asking: np.ndarray | None = None
) -> np.ndarray:
    r"""Return the total variation to uniform attention, :math:`\frac12 \sum_k |a_k - 1/L|`.

    The sum is over the L keys that a query sees. It is 0 for uniform attention and 1 - 1/L for
    attention to one key. Queries that see one key only do not count.
    """
    weights = _four(weights)
    seen = visible.sum(axis=-1)
    even = visible / np.maximum(seen, 1)[..., None].astype(weights.dtype)
    apart = np.abs(weights - even[:, None]).sum(axis=-1) / 2
    return _mean(apart, _and(asking, seen > 1))


def logit_range(
    weights: np.ndarray,
    visible: np.ndarray,
    asking: np.ndarray | None = None,
    largest: bool = False,
) -> np.ndarray:
    r"""Return the largest attention logit minus the smallest one, over the keys a query sees.

    Softmax forgets a constant for each query and nothing else, so the range is
    :math:`\ln \max_k a_k - \ln \min_k a_k`. A weight that underflowed counts as the smallest number
    of its format, which makes the range a lower bound.

    Args:
        weights: attention.
        visible: where a query may look.
        asking: which queries count.
        largest: the largest range of all queries in place of the mean.
    """
    weights = _four(weights)
    there = visible[:, None]
    tiny = np.finfo(weights.dtype).tiny
    # The logarithm grows with the weight, so it is taken of the two that count.
    top = np.log(np.maximum(weights.max(axis=-1, where=there, initial=0), tiny))
    low = np.log(np.maximum(weights.min(axis=-1, where=there, initial=np.inf), tiny))
    known = _and(asking, np.asarray(visible.any(axis=-1)))
    ranges = np.where(known[:, None], top - low, np.nan)
    if largest:
        counted = np.where(known[:, None], top - low, -np.inf).max(axis=(0, 2), initial=-np.inf)
        return np.where(np.isfinite(counted), counted, np.nan)
    return _mean(ranges, known)


def mass_on(
    weights: np.ndarray, places: np.ndarray, asking: np.ndarray | None = None
) -> np.ndarray:
    """Return the attention that goes to chosen places, per head.

    Args:
        weights: attention.
        places: booleans, shape ``(row, query, key)``. Queries without a place count as 0.
        asking: which queries count.
    """
    return _mean((_four(weights) * places[:, None]).sum(axis=-1), asking)


def positions_among(visible: np.ndarray, positions: tuple[int, ...]) -> np.ndarray:
    """Return where keys stand at given positions, padding not counted; ``(row, query, key)``.

    Args:
        visible: where a query may look; a key that no query sees is padding.
        positions: 0 is the first key of a row that is no padding, -1 the last one.
    """
    real = visible.any(axis=1)
    count = real.sum(axis=-1, keepdims=True)
    place = np.cumsum(real, axis=-1) - 1
    chosen = np.zeros_like(real)
    for position in positions:
        chosen |= place == (position if position >= 0 else count + position)
    return np.broadcast_to((chosen & real)[:, None, :], visible.shape)


def effective_rank(weights: np.ndarray, asking: np.ndarray | None = None) -> np.ndarray:
    r"""Return the effective rank of the attention matrix, mean over rows (Roy and Vetterli 2007).

    It is :math:`\exp(-\sum_i p_i \ln p_i)` with :math:`p_i = \sigma_i / \sum_j \sigma_j` from the
    singular values: 1 when all queries look at the same keys in the same way, and the number of
    queries when each looks at a key of its own. Queries that do not count are left out.
    """
    weights = _four(weights)
    if asking is not None:
        weights = weights * asking[:, None, :, None]
    values = np.linalg.svd(weights, compute_uv=False)
    total = values.sum(axis=-1, keepdims=True)
    share = values / np.where(total > 0, total, 1)
    ranks = np.exp(-(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=-1))
    return _mean(ranks[..., None], total.any(axis=1))


def _entropies(weights: np.ndarray) -> np.ndarray:
    # With a weight of 0 the logarithm of the smallest number is multiplied by it, and that is 0.
    logs = np.log(np.maximum(weights, np.finfo(weights.dtype).tiny))
    return np.asarray(-np.einsum("...k,...k->...", weights, logs))


def _four(weights: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights)
    if weights.ndim != 4:
        raise AttnscopeError(f"weights of shape {weights.shape}: expected (row, head, query, key).")
    return weights


def _and(asking: np.ndarray | None, known: np.ndarray) -> np.ndarray:
    return known if asking is None else asking & known


def _mean(values: np.ndarray, asking: np.ndarray | None) -> np.ndarray:
    """Average ``(row, head, query)`` over the queries that count."""
    if asking is None:
        asking = np.ones((values.shape[0], values.shape[2]), dtype=bool)
    count = asking.sum()
    total = np.where(asking[:, None], values, 0).sum(axis=(0, 2))
    return np.asarray(total / (count if count else np.nan))
