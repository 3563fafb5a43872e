"""W^V alone: a linear least-squares problem, which tells the threshold HD >= Nn exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True)
class ValueOnly:
    """What W^V can do while W^Q, W^K and W^O stay.

    Args:
        residual: smallest f relative to ½‖y‖² over all W^V.
        rank: rank of B.
        labels: N n, the rows of B.
    """

    residual: float
    rank: int
    labels: int

    @property
    def can_fit(self) -> bool:
        """Whether every y can be fitted: B has full row rank."""
        return self.rank == self.labels


def value_only(features: Numbers, y: Numbers) -> ValueOnly:
    """Solve min_w ‖B w - y‖² for one label a token; w_h = W_h^V W_h^O takes any value.

    It holds as long as no W_h^O is zero. Descent on W^V goes to the same minimum, but at the rate
    σ_min²(B) it may take for ever.

        >>> value_only([[1.0, 0.0], [0.0, 0.0]], [3.0, 4.0])
        ValueOnly(residual=0.64, rank=1, labels=2)
    """
    features, y = float64(features), float64(y).ravel()
    if features.ndim != 2 or len(features) != len(y) or not np.any(y):
        raise AttnscopeError(
            f"B of shape {features.shape} and {len(y)} labels: expected a label for each row, not "
            "all zero."
        )
    w, _, rank, _ = np.linalg.lstsq(features, y)
    rest = y - features @ w
    return ValueOnly(float(rest @ rest / (y @ y)), int(rank), len(y))
