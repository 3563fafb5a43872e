"""Where a function of one number is zero, by halving: slow, sure, and without SciPy."""

from __future__ import annotations

from collections.abc import Callable


def root_between(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function changes its sign between two numbers, to the last bit.

    Args:
        function: continuous, of opposite signs at the two ends.
        low: one end.
        high: the other, above it.

    >>> root_between(lambda x: x * x - 2, 0.0, 2.0) == 2**0.5
    True
    """
    sign = function(low) > 0
    while low < (middle := (low + high) / 2) < high:
        if (function(middle) > 0) == sign:
            low = middle
        else:
            high = middle
    return high
