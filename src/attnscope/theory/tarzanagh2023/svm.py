r"""The support vector machine of a choice of tokens, Att-SVM, with its dual.

For inputs i with tokens t and features :math:`k_{it}`, and a chosen token :math:`\alpha_i` of each,

.. math::

    \theta_{mm} = \arg\min \|\theta\|_2 \quad \text{subject to} \quad
        (k_{i \alpha_i} - k_{it}) \cdot \theta \ge 1 \quad \text{for all } i, t \ne \alpha_i .

It is a least-distance problem, which non-negative least squares solve exactly (Lawson and Hanson
1974, chapter 23): no solver of quadratic programs is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

ACTIVE = 1e-7
"""A margin within this of 1 is active."""
EMPTY = 1e-10
"""A residual below this leaves no point that satisfies all constraints."""


@dataclass(frozen=True, eq=False)
class AttentionSvm:
    """What keeps chosen tokens apart from the others, with the largest margin.

    Args:
        direction: θ_mm; NaN if no θ keeps them apart.
        dual: λ ≥ 0, shape ``(input, token)``: θ_mm = Σ λ_it (k_iα - k_it), Σλ = ‖θ_mm‖².
        margins: (k_iα - k_it)·θ_mm, shape ``(input, token)``; infinite for the chosen token.
    """

    direction: np.ndarray
    dual: np.ndarray
    margins: np.ndarray

    @property
    def feasible(self) -> bool:
        """Whether some θ keeps the chosen tokens apart."""
        return bool(np.isfinite(self.direction).all())

    @property
    def growth(self) -> float:
        """‖θ_mm‖, which d‖θ‖/d log t goes to."""
        return float(np.linalg.norm(self.direction))

    @property
    def support(self) -> np.ndarray:
        """Tokens whose constraint is active, shape ``(input, token)``."""
        return np.asarray(self.margins < 1 + ACTIVE)


def least_distance(rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the x of least norm with ``rows @ x >= bounds``, and its dual; ``None`` if none is.

    >>> x, dual = least_distance(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> print(x, dual)
    [0.5 0. ] [0.25 0.  ]
    """
    if not len(rows) or (bounds <= 0).all():
        return np.zeros(rows.shape[1]), np.zeros(len(rows))
    system = np.vstack([rows.T, bounds])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights, _ = nnls(system, target, maxiter=100 * len(rows) + 100)
    residual = system @ weights - target
    if -residual[-1] < EMPTY:
        return None
    return -residual[:-1] / residual[-1], weights / -residual[-1]


def attention_svm(features: np.ndarray, chosen: np.ndarray) -> AttentionSvm:
    """Return the Att-SVM of a choice of tokens.

    An input of one token has no constraint: its token is chosen whatever θ is.

    Args:
        features: k, shape ``(input, token, entry)``.
        chosen: α, number of the chosen token of each input.

    Example:
        >>> keys = np.array([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]])
        >>> found = attention_svm(keys, np.array([0]))
        >>> print(f"{found.growth**2 / 2:.5f}", found.support[0])
        0.49505 [False False  True]
    """
    inputs, tokens, entries = features.shape
    apart = features[np.arange(inputs), chosen][:, None] - features
    others = np.arange(tokens) != np.asarray(chosen)[:, None]
    rows = apart[others]
    found = least_distance(rows, np.ones(len(rows)))
    dual, margins = np.zeros((inputs, tokens)), np.full((inputs, tokens), np.inf)
    if found is None:
        return AttentionSvm(np.full(entries, np.nan), dual * np.nan, margins * np.nan)
    direction, dual[others] = found
    margins[others] = rows @ direction
    return AttentionSvm(direction, dual, margins)
