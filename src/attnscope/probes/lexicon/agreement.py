"""Do two quantities point at the same position? Agreement and its yardsticks, Snell 2021.

Quantities are arrays ``(..., position)``: attention, the lexical probe, saliency. The leading axes
(sentence, target word) number the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnscope.errors import AttnscopeError

TOP = 0.05
"""The share of positions that counts as the top (Snell 2021 eq 10)."""


@dataclass(frozen=True)
class DefinedMean:
    """A mean over the rows on which a quantity is defined.

    Args:
        value: the mean.
        count: rows it was taken over.
        left_out: rows on which the quantity is not defined.
    """

    value: float
    count: int
    left_out: int


@dataclass(frozen=True)
class Contextual:
    """What a model's performance was when its attention agreed better than a given value.

    Args:
        xi: the performance ξ; the last one, ξ*, if that never happened.
        reached: whether it happened.
        index: the first point of the curve at which it did, or ``None``.
    """

    xi: float
    reached: bool
    index: int | None


def agreement(
    u: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, top: float = TOP
) -> NDArray[np.float64]:
    """Tell how surely the largest position of u is among the top positions of v (eq 10).

    With L the positions that are not masked and k = ⌈top · L⌉, Snell 2021 writes
    A(u, v) = 1[ |{j: v_j > v_{argmax u}}| < top · L ], the same as 1[argmax u is one of the k
    largest of v] while values differ. Values of tables of counts often do not, and a rule that
    lets ties agree favours tables with many. So there is one rule for ties, on both sides: they
    are broken at random, and A is the expectation. For a position i that g of v exceed, one of e
    equal ones (itself counted),

        P(i is one of the k largest) = min(1, max(0, (k - g)/e)),

    and A is its mean over the positions at which u is largest. A u that says nothing, or a v that
    says nothing, comes to k/L, what chance has (:func:`random_baseline`). A is not symmetric. With
    one position A = 1.

    Args:
        u: shape ``(..., position)``; read in double precision, so that values which differ stay
            different.
        v: the same shape.
        mask: true where there is a position; of that shape or one that broadcasts to it.
        top: the share of positions, above 0 and up to 1.

    Returns:
        0 to 1 for each row, shape ``(...)``, 0 or 1 where there are no ties; NaN for a row without
        a position.

    Raises:
        AttnscopeError: for shapes that differ, or NaN at a position that is not masked.

    >>> agreement([1.0, 0.0], [5.0, 1.0]), agreement([1.0, 1.0], [5.0, 1.0])
    (array(1.), array(0.5))
    """
    one, other, kept = together(u, v, mask)
    lengths = kept.sum(axis=-1)
    if not one.size:
        return np.full(lengths.shape, np.nan)
    # Minus infinity may be a value of its own (log 0), so positions are first ranked by the mask.
    largest = np.where(kept, one, -np.inf).max(axis=-1, keepdims=True)
    best = kept & (one == largest)
    chances = _chances(other, kept, top_count(lengths, top))
    with np.errstate(invalid="ignore"):
        found = np.where(best, chances, 0.0).sum(axis=-1) / best.sum(axis=-1)
    return np.where(lengths > 0, found, np.nan)


def _chances(
    values: NDArray[np.float64], kept: NDArray[np.bool_], room: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how likely each position is one of the ``room`` largest, ties broken at random."""
    # NaN sorts last, behind the infinity that a logarithm of 0 becomes.
    lowest_first = np.where(kept, -values, np.nan)
    order = np.argsort(lowest_first, axis=-1)
    ranked = np.take_along_axis(lowest_first, order, axis=-1)
    place = np.arange(values.shape[-1])
    first = np.ones(ranked.shape, dtype=bool)
    first[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    above = np.maximum.accumulate(np.where(first, place, 0), axis=-1)
    ends = np.where(first, place, values.shape[-1])
    following = np.full(ranked.shape, values.shape[-1])
    following[..., :-1] = np.minimum.accumulate(ends[..., :0:-1], axis=-1)[..., ::-1]
    chance = np.clip((room[..., None] - above) / (following - above), 0.0, 1.0)
    out = np.empty_like(chance)
    np.put_along_axis(out, order, chance, axis=-1)
    return out


def top_count(lengths: ArrayLike, top: float = TOP) -> NDArray[np.int64]:
    """How many positions are the top of L: n < top · L and n < ⌈top · L⌉ are the same."""
    if not 0 < top <= 1:
        raise AttnscopeError(f"top is {top}: expected a share above 0 and up to 1.")
    # 0.07 * 100 is a little more than 7 in floating point, which is not to make it 8.
    exact = np.round(top * np.asarray(lengths, dtype=float), 9)
    return np.ceil(exact).astype(np.int64)


def mean_defined(values: ArrayLike) -> DefinedMean:
    """Average the values that are defined, that is not NaN, and count the others.

    Raises:
        AttnscopeError: if none is defined.
    """
    flat = np.asarray(values, dtype=float).ravel()
    known = flat[~np.isnan(flat)]
    if not len(known):
        raise AttnscopeError(
            f"none of the {len(flat)} values is defined, so they have no mean: expected one row "
            "at least with positions enough."
        )
    return DefinedMean(float(known.mean()), len(known), len(flat) - len(known))


def mean_agreement(
    u: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, top: float = TOP
) -> DefinedMean:
    """Average :func:`agreement` over all rows that have a position."""
    return mean_defined(agreement(u, v, mask, top))


def random_baseline(lengths: ArrayLike, top: float = TOP) -> float:
    """Expected agreement with a v in random order, Â: the mean of ⌈top · L⌉ / L over the rows.

    Exact, with ties or without. It is above ``top`` because of the rounding.

    Args:
        lengths: L of each row; rows of length 0 are left out.
        top: as for :func:`agreement`.

    Raises:
        AttnscopeError: if a length is negative or not an integer, or if none is above 0.
    """
    counts = np.atleast_1d(np.asarray(lengths)).ravel()
    if counts.size and (not np.issubdtype(counts.dtype, np.integer) or counts.min() < 0):
        raise AttnscopeError(
            f"lengths hold {counts.dtype} values from {counts.min()} on: expected integers, 0 or "
            "more."
        )
    counts = counts[counts > 0]
    if not counts.size:
        raise AttnscopeError("no length is above 0: expected one at least.")
    return float((top_count(counts, top) / counts).mean())


def shuffled_baseline(
    u: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, top: float = TOP, *, seed: int
) -> DefinedMean:
    """Estimate Â as the released code does: shuffle v once in every row and take the agreement."""
    one, other, kept = together(u, v, mask)
    dice = np.random.default_rng(seed).random(one.shape)
    # Sorted by the dice, masked positions last: the k-th kept position gets the k-th of those.
    order = np.argsort(np.where(kept, dice, 2.0), axis=-1, kind="stable")
    places = np.argsort(~kept, axis=-1, kind="stable")
    shuffled = other.copy()
    np.put_along_axis(shuffled, places, np.take_along_axis(other, order, axis=-1), axis=-1)
    return mean_agreement(one, shuffled, kept, top)


def contextual(
    agreement_curve: Sequence[float], performance_curve: Sequence[float], value: float
) -> Contextual:
    """Say how far training is when its attention agrees better than ``value`` (eq 11).

    ξ = p̂(inf{τ: A(α, α̂(τ)) > value}), with a strict >.

    Args:
        agreement_curve: A(α, α̂(τ)) of a second run at its checkpoints, in order.
        performance_curve: its performance p̂(τ) at the same checkpoints.
        value: A(u, v).

    Raises:
        AttnscopeError: for curves of different length, without a point, or with NaN.
    """
    curve = np.asarray(agreement_curve, dtype=float)
    performance = np.asarray(performance_curve, dtype=float)
    if curve.ndim != 1 or curve.shape != performance.shape or not len(curve):
        raise AttnscopeError(
            f"curves of shape {curve.shape} and {performance.shape}: expected one dimension and as "
            "many points, one at least."
        )
    if np.isnan(curve).any() or np.isnan(performance).any() or np.isnan(value):
        raise AttnscopeError("a curve or the value is NaN: expected numbers.")
    above = np.flatnonzero(curve > value)
    if not len(above):
        return Contextual(float(performance[-1]), False, None)
    return Contextual(float(performance[above[0]]), True, int(above[0]))


def together(
    u: ArrayLike, v: ArrayLike, mask: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return two quantities and their mask as arrays of one shape, or say why they are not."""
    one, other = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if one.shape != other.shape or not one.ndim:
        raise AttnscopeError(
            f"u has the shape {one.shape} and v {other.shape}: expected the same, (..., position)."
        )
    given = np.ones(one.shape, dtype=bool) if mask is None else np.asarray(mask)
    if given.dtype != bool:
        raise AttnscopeError(f"the mask is {given.dtype}: expected bool.")
    try:
        kept = np.broadcast_to(given, one.shape)
    except ValueError:
        raise AttnscopeError(
            f"the mask has the shape {given.shape}: expected {one.shape}, or one that broadcasts "
            "to it."
        ) from None
    for name, array in (("u", one), ("v", other)):
        wrong = np.argwhere(kept & np.isnan(array))
        if len(wrong):
            at = tuple(int(i) for i in wrong[0])
            raise AttnscopeError(
                f"{name} is NaN at {at} and {len(wrong) - 1} other positions that are not masked: "
                "expected numbers."
            )
    return one, other, kept
