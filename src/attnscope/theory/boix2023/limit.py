r"""Where the flow of some products ends, while all others stay at zero.

In the limit α → 0 the factors of a product that has grown are equal up to sign, so that
:math:`\dot w_i = 2 |w_i| g_i(w)` with :math:`g = -\partial L / \partial w`. It is integrated in
:math:`\log |w_i|`, which keeps signs, and never meets the loss at w = 0 again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

Gradient = Callable[[np.ndarray], np.ndarray]
"""Returns -∂L/∂w at w."""
SEED = 1e-6
"""Size at which a product enters; its place in the limit does not depend on it."""
STILL = 1e-9
"""A gradient by the active products so small has come to rest."""
LONGEST = 1e4
"""The flow is given up at this time; every step of it is longer than the last near a rest."""


@dataclass(frozen=True)
class RestLimit:
    """Where the active products came to.

    Args:
        products: w, zero where not active.
        still: whether they came to rest; otherwise a minimum lies at infinity, or takes for ever.
        gone: active products that went back to zero, against the theorem's conditions.
    """

    products: np.ndarray
    still: bool
    gone: tuple[int, ...]


def restricted_limit(
    gradient: Gradient, start: np.ndarray, active: Sequence[int], entering: int, sign: float
) -> RestLimit:
    """Return the limit of the flow of the active products.

    Args:
        gradient: of the loss, negative, by all products.
        start: the plateau before.
        active: products that may move, the entering one included.
        entering: the one that begins at a tiny value.
        sign: of that value.
    """
    at = np.asarray(active)
    point = np.array(start, dtype=float)
    point[entering] = sign * SEED
    signs = np.sign(point[at])
    work = np.zeros_like(point)

    def place(logs: np.ndarray) -> np.ndarray:
        work[at] = signs * np.exp(logs)
        return work

    def slope(time: float, logs: np.ndarray) -> np.ndarray:
        return 2 * signs * gradient(place(logs))[at]

    def moving(time: float, logs: np.ndarray) -> float:
        return float(np.abs(slope(time, logs)).max()) - STILL

    moving.terminal = True  # type: ignore[attr-defined]
    solved = solve_ivp(
        slope, (0, LONGEST), np.log(np.abs(point[at])), "LSODA", rtol=1e-8, atol=1e-8, events=moving
    )
    end = np.array(place(solved.y[:, -1]))
    gone = tuple(int(i) for i in at if abs(end[i]) < SEED)
    return RestLimit(end, bool(solved.status == 1), gone)
