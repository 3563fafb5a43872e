r"""What a start of size α makes of time: :math:`\tau = t / \log(1/\alpha)`, and its limit.

Stage k begins at :math:`T_k + c_k / \log(1/\alpha)` up to smaller terms: the limit :math:`T_k` is
that of the greedy algorithm, and :math:`c_k` holds the time of the jumps themselves. Two starts
remove it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnscope.errors import AttnscopeError

SMALLEST = 1e-150
"""α² must be a number that a double holds to all its digits, and so must its square's errors."""


def rescaled(size: float) -> float:
    """Return log(1/α), the unit of time.

    Raises:
        AttnscopeError: α is not below 1, or its square is no double.
    """
    check_size(size)
    return math.log(1 / size)


def check_size(size: float) -> None:
    """Refuse a start that is not small, and one whose products no double can hold."""
    if not SMALLEST <= size < 1:
        raise AttnscopeError(
            f"α = {size:g}: expected a start below 1, where log(1/α) is a time, and of "
            f"{SMALLEST:g} or more, since the products of the start, α², have to be doubles."
        )


def extrapolate(
    first: ArrayLike, first_size: float, second: ArrayLike, second_size: float
) -> np.ndarray:
    r"""Return the times at α → 0 from those at two sizes of the start.

    With :math:`L = \log(1/\alpha)`, :math:`T = (L_2 T_2 - L_1 T_1) / (L_2 - L_1)`.

    >>> print(extrapolate(2.042, 1e-8, 2.012, 1e-16).round(3))
    1.982
    """
    one, two = rescaled(first_size), rescaled(second_size)
    if one == two:
        raise AttnscopeError(f"α = {first_size:g} twice: expected two sizes to extrapolate from.")
    return np.asarray(
        (two * np.asarray(second, dtype=float) - one * np.asarray(first, dtype=float)) / (two - one)
    )


def first_time(gradient: np.ndarray) -> float:
    r"""Return when the first singular value of a product of full matrices appears, at α → 0.

    Near zero :math:`\dot L = G R, \dot R = G^\top L` with :math:`G = -\partial \ell / \partial W`
    at W = 0. The leading pair grows as :math:`e^{\sigma t}` from α, its product reaches 1 at
    :math:`t = \log(1/\alpha) / \sigma_{max}(G)`. Infinite where the gradient is zero.

    >>> first_time(np.diag([0.5, 0.25]))
    2.0
    """
    largest = float(np.linalg.norm(np.atleast_2d(gradient), 2))
    return 1 / largest if largest > 0 else math.inf
