r"""The least entropy that attention logits of a scale allow (Zhai et al. 2023, theorem 3.1).

For a row of T logits with centred norm :math:`s = \|l - \bar l\|_2`, and with
:math:`\beta = \exp(-s \sqrt{T / (T-1)})`,

.. math::

    H \ge E(s, T) = \ln(1 + (T-1) \beta) + \frac{s \sqrt{T (T-1)} \, \beta}{1 + (T-1) \beta}.

The paper states it with :math:`s = \|W_K W_Q^\top\|_2 \|X X^\top\|_2`, which bounds every row and
is far larger than any; for a row's own scale it is sharp. One logit against T - 1 equal ones
attains it. :math:`E(0, T) = \ln T`, and E falls with s, at last as :math:`T s e^{-s}`.
"""

from __future__ import annotations

import numpy as np

from attnscope.engines.root import root_between
from attnscope.errors import AttnscopeError
from attnscope.probes.entropy_floor import entropy_floor
from attnscope.theory.arrays import Numbers, float64

__all__ = ["entropy_floor", "largest_scale", "row_scale", "spectral_scale", "tight_row"]


def row_scale(logits: Numbers, visible: np.ndarray | None = None) -> np.ndarray:
    """Return the centred norm of rows of logits, over the last axis.

    Args:
        logits: any shape; what a query may not see may be -inf.
        visible: where a query may look; where logits are above -inf unless given. A row of one key
            has the scale 0.
    """
    rows = float64(logits)
    see = np.isfinite(rows) if visible is None else visible
    count = np.maximum(see.sum(axis=-1, keepdims=True), 1)
    kept = np.where(see, rows, 0.0)
    centred = np.where(see, kept - kept.sum(axis=-1, keepdims=True) / count, 0.0)
    return np.asarray(np.sqrt((centred**2).sum(axis=-1)))


def spectral_scale(keys: Numbers, queries: Numbers, tokens: Numbers) -> np.ndarray:
    r"""Return :math:`\|W_K W_Q^\top\|_2 \|X X^\top\|_2`, the scale of the paper's floor.

    Logits are :math:`X W_K W_Q^\top X^\top`; a factor of 1/√d belongs into the weights.

    Args:
        keys: W_K, shape ``(d, head)``.
        queries: W_Q, shape ``(d, head)``.
        tokens: X, shape ``(..., T, d)``.
    """
    weights = np.linalg.norm(float64(keys) @ float64(queries).T, 2)
    return np.asarray(weights * np.linalg.norm(float64(tokens), 2, axis=(-2, -1)) ** 2)


def tight_row(scale: float, keys: int) -> np.ndarray:
    """Return the logits of this centred norm that have the least entropy.

    Raises:
        AttnscopeError: there is one key only, or the scale is negative.
    """
    if keys < 2:
        raise AttnscopeError(
            f"keys = {keys}: expected 2 or more; a query that sees one key has entropy 0 whatever "
            "its logit is."
        )
    if not scale >= 0:
        raise AttnscopeError(f"scale = {scale:g}: expected a norm, 0 or more.")
    row = np.full(keys, -scale / np.sqrt(keys * (keys - 1)))
    row[0] = scale * np.sqrt((keys - 1) / keys)
    return row


def largest_scale(entropy: float, keys: float) -> float:
    """Return the scale up to which every row has at least this entropy, the root of the floor.

    Args:
        entropy: in nats, above 0 and below ``ln(keys)``.
        keys: that a query sees, two or more.

    >>> print(f"{largest_scale(float(entropy_floor(3.0, 20)), 20):.9f}")
    3.000000000
    """
    if not 0 < entropy < np.log(keys):
        return 0.0 if entropy > 0 else np.inf
    top = 1.0
    while entropy_floor(top, keys) > entropy:
        top *= 2
    return root_between(lambda s: float(entropy_floor(s, keys)) - entropy, 0.0, top)
