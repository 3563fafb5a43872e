"""Kendall's rank correlation, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnscope.probes.lexicon.agreement import together

_AT_ONCE = 2**21
"""Pairs of positions that are compared at once; they take some bytes each."""


def kendall_tau(u: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Kendall's τ_b of two quantities in each row.

    τ_b = (C - D) / √(n_u n_v), with C and D the pairs of positions that u and v put in the same and
    in opposite order, and n_u, n_v the pairs without a tie in u and in v. Every pair is looked at,
    so that a row of length L takes L² steps.

    Args:
        u: shape ``(..., position)``.
        v: the same shape.
        mask: true where there is a position; of that shape or one that broadcasts to it.

    Returns:
        Shape ``(...)``; NaN where τ_b is not defined: fewer than two positions, or u or v is the
        same at all of them. :func:`~attnscope.probes.agreement.mean_defined` leaves those out and
        counts them.

    Raises:
        AttnscopeError: for shapes that differ, or NaN at a position that is not masked.
    """
    one, other, kept = together(u, v, mask)
    shape, length = one.shape[:-1], one.shape[-1]
    rows = int(np.prod(shape, dtype=int))
    one, other, kept = (
        one.reshape(rows, length),
        other.reshape(rows, length),
        kept.reshape(rows, length),
    )
    if not one.size:
        return np.full(shape, np.nan)
    # Rows of about one length together, each group cut to its longest.
    ends = np.where(kept.any(axis=1), length - kept[:, ::-1].argmax(axis=1), 0)
    order = np.argsort(ends, kind="stable")
    tau = np.full(rows, np.nan)
    start = 0
    while start < rows:
        step = max(1, _AT_ONCE // max(1, int(ends[order[start]]) ** 2))
        here = order[start : start + step]
        width = int(ends[here[-1]])
        # Longer rows at the end of the group may be too many for that.
        here = here[: max(1, _AT_ONCE // max(1, width**2))]
        width = int(ends[here[-1]])
        start += len(here)
        some = kept[here, :width]
        both = some[:, :, None] & some[:, None, :]
        first = _order(one[here, :width]) * both
        second = _order(other[here, :width]) * both
        concordant = np.einsum("rij,rij->r", first, second, dtype=np.int64)
        # Each product of two counts of pairs stays exact: both are below 2**31.
        untied = np.count_nonzero(first, axis=(1, 2)) * np.count_nonzero(second, axis=(1, 2))
        defined = untied > 0
        tau[here[defined]] = concordant[defined] / np.sqrt(untied[defined])
    return tau.reshape(shape)


def _order(values: NDArray[np.float64]) -> NDArray[np.int8]:
    # Differences would make NaN of two infinities.
    later, earlier = values[:, :, None], values[:, None, :]
    return (later > earlier).astype(np.int8) - (later < earlier).astype(np.int8)
