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
from numpy.typing import ArrayLike
from scipy.optimize import brentq


def entropy_floor(scale: ArrayLike, keys: ArrayLike) -> np.ndarray:
    """Return the least entropy of a row of ``keys`` logits with this centred norm, in nats.

    >>> print(f"{entropy_floor(10.0, 64):.11f}")
    0.02920597797
    """
    s = np.asarray(scale, dtype=float)
    t = np.asarray(keys, dtype=float)
    others = np.maximum(t - 1, 1e-300)
    weight = others * np.exp(-s * np.sqrt(t / others))
    # s sqrt(T (T - 1)) beta is s sqrt(T / (T - 1)) times (T - 1) beta.
    floor = np.log1p(weight) + s * np.sqrt(t / others) * weight / (1 + weight)
    return np.asarray(np.where(t > 1, floor, 0.0))


def tight_row(scale: float, keys: int) -> np.ndarray:
    """Return the logits of this centred norm that have the least entropy."""
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
    return float(brentq(lambda s: float(entropy_floor(s, keys)) - entropy, 0.0, top, xtol=1e-13))
