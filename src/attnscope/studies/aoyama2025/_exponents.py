"""The exponent of a power law, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def slopes(sizes: Sequence[float] | np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the slope of log tokens over log size, (seed,); NaN where a head is missing.

    Args:
        sizes: of batches or contexts.
        tokens: until a head appeared, shape ``(seed, size)``.

    >>> print(slopes([1.0, 4.0, 16.0], np.array([[3.0, 6.0, 12.0]])))
    [0.5]
    """
    x = np.log(sizes) - np.log(sizes).mean()
    return np.asarray(np.log(tokens) @ x / (x @ x))
