"""When does attention start? Predicted from a run in which it never does. Beyond Li 2023.

Keys W^K (d_a × words), queries W^Q, and S = W^Kᵀ W^Q, which enters the loss by the attention
logits S/√d_a. Near S = 0 only the first order in S counts, so with G(t) = ∂L/∂S at S = 0

    dW^K/dt = -W^Q G(t)ᵀ,    dW^Q/dt = -W^K G(t).

G(t) does not depend on W^K and W^Q: it is read off a run with attention frozen at uniform. For
the top singular triple (u, σ, w) of G, x = W^K u and y = W^Q w obey x' = -σy, y' = -σx: x - y
grows as exp(I(t)), I(t) = ∫σ dt, and x + y shrinks. If the pair (u, w) turns slowly
(:func:`rotation`) and the entries start i.i.d. with standard deviation ε, |x - y|² = 2ε²d_a on
average at the start, and

    ‖S‖₂ ≈ (ε² d_a/2) exp(2 I(t)),    onset where it reaches 1.

This is the leading order. Where σ is not far above the second singular value, or the noise is not
small, the other directions count: :func:`attnscope.theory.li2023.expected_norms` is the same
average with the whole of G, and :func:`attnscope.theory.li2023.propagate` needs no average either.
Predict with these.

G is by S, *before* the division by √d_a. Whoever has ∂L/∂A for logits A = S/√d_a divides by √d_a
first; :func:`attnscope.theory.li2023.score_gradient` does so. Time is learning rate × step. With
gradient descent at rate η a step multiplies x - y by 1 + ησ, so σ becomes log(1 + ησ)/η. Adam
rescales the tiny gradients of W^K and W^Q, and nothing here applies to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.integrate import cumulative_trapezoid

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64

Verdict = Literal["reached", "not reached", "starts above"]
COARSE = 0.1
"""Record points around an onset may be so far apart, as a part of the onset. Between two points all
that is known is that the level was passed; points a whole onset apart were once wrong by 93 %."""


@dataclass(frozen=True)
class Onset:
    """When ‖S‖₂ reached a level.

    Args:
        time: interpolated time, NaN unless the verdict is "reached".
        verdict: "reached"; "not reached" before the last time; "starts above" when it was at the
            level from the beginning, so that there is no onset to speak of.
        between: the recorded times before and after it.
    """

    time: float
    verdict: Verdict
    between: tuple[float, float] = (math.nan, math.nan)

    @property
    def coarse(self) -> bool:
        """Whether the record points are too far apart to say when, :data:`COARSE`."""
        before, after = self.between
        return self.verdict == "reached" and after - before > COARSE * self.time

    def __str__(self) -> str:
        if self.coarse:
            before, after = self.between
            return (
                f"onset between t = {before:.6g} and {after:.6g}: record points are too far apart "
                "to say when"
            )
        if self.verdict == "reached":
            return f"onset at t = {self.time:.6g}"
        if self.verdict == "not reached":
            return "no onset before the last time"
        return "no onset: attention is not near uniform at the start"


def growth_exponent(times: Numbers, sigma: Numbers, lr: float | None = None) -> np.ndarray:
    """I(t) = ∫σ dt from the first time on, by the trapezoid rule.

    Args:
        times: learning rate × step, ascending, shape ``(time,)``.
        sigma: largest singular value of G(t), shape ``(time,)``.
        lr: η of gradient descent, which replaces σ by f = log(1 + ησ)/η and the integral by a sum
            over steps. A step takes G at its beginning, so up to O(η²) the sum is the integral
            less (η/2)(f(t) - f(0)). None for gradient flow.
    """
    times, sigma = check_times(times), float64(sigma)
    if sigma.shape != times.shape or (sigma < 0).any():
        raise AttnscopeError(
            f"sigma of shape {sigma.shape}: expected a singular value, 0 or more, for each of "
            f"{len(times)} times."
        )
    if lr is None:
        return np.asarray(cumulative_trapezoid(sigma, times, initial=0.0))
    rate = np.log1p(_positive("lr", lr) * sigma) / lr
    return np.asarray(cumulative_trapezoid(rate, times, initial=0.0) - lr / 2 * (rate - rate[:1]))


def predicted_norms(
    times: Numbers, sigma: Numbers, eps: float, d_a: int, lr: float | None = None
) -> np.ndarray:
    """‖W^Kᵀ W^Q‖₂ ≈ (ε² d_a/2) exp(2 I(t)), shape ``(time,)``; infinite beyond what floats hold.

    This follows the fastest direction alone. At the very start the others add up to more.
    """
    with np.errstate(over="ignore"):
        return np.exp(_log_norms(times, sigma, eps, d_a, lr))


def predicted_onset(
    times: Numbers,
    sigma: Numbers,
    eps: float,
    d_a: int,
    lr: float | None = None,
    level: float = 1.0,
    initial_norm: float | None = None,
) -> Onset:
    """When (ε² d_a/2) exp(2 I(t)) reaches the level.

    Args:
        times: learning rate × step, ascending, shape ``(time,)``.
        sigma: largest singular value of G(t) with frozen uniform attention, shape ``(time,)``.
        eps: ε, standard deviation of the initial entries of W^K and W^Q.
        d_a: rows of W^K and W^Q.
        lr: η of gradient descent; None for gradient flow.
        level: the norm that counts as onset.
        initial_norm: ‖W^Kᵀ W^Q‖₂ of the actual initial matrices, if they are at hand. All
            directions count in it, so it may be above the level where the formula is not.
    """
    log_norms = _log_norms(times, sigma, eps, d_a, lr)
    if initial_norm is not None and initial_norm >= level:
        return Onset(math.nan, "starts above")
    return _crossing(float64(times), log_norms, level)


def measured_onset(times: Numbers, norms: Numbers, level: float = 1.0) -> Onset:
    """When a recorded or propagated ‖W^Kᵀ W^Q‖₂ reaches the level for the first time.

    Between two times the norm is taken to grow exponentially.

    >>> print(measured_onset([0, 99, 101], [1e-4, 1e-1, 1e1]))
    onset at t = 100
    >>> print(measured_onset([0, 10, 20], [1e-4, 1e-1, 1e1]))
    onset between t = 10 and 20: record points are too far apart to say when
    """
    times, norms = check_times(times), float64(norms)
    if norms.shape != times.shape or np.isnan(norms).any() or (norms < 0).any():
        raise AttnscopeError(
            f"norms of shape {norms.shape}: expected a norm, 0 or more and not NaN, for each of "
            f"{len(times)} times."
        )
    with np.errstate(divide="ignore"):
        return _crossing(times, np.log(norms), level)


def top_singular(gradients: Numbers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest singular values of G(t) with their pairs.

    Args:
        gradients: G, shape ``(time, key, query)``.

    Returns:
        σ, shape ``(time,)``; u, shape ``(time, key)``; w, shape ``(time, query)``.
    """
    left, sigma, right = np.linalg.svd(_matrices(gradients), full_matrices=False)
    return sigma[:, 0], left[:, :, 0], right[:, 0, :]


def rotation(gradients: Numbers) -> np.ndarray:
    """How far the top singular pair of G turns from each time to the next, 1 - |cos|.

    The rank-one prediction assumes that this is small. It is also large, and harmless, when the
    two largest singular values are equal: then any pair of their space is as good.

    Args:
        gradients: G, shape ``(time, key, query)``.

    Returns:
        Of u and of w, shape ``(time - 1, 2)``.
    """
    _, left, right = top_singular(gradients)
    cosines = [np.abs((side[1:] * side[:-1]).sum(axis=-1)) for side in (left, right)]
    return np.maximum(0.0, 1 - np.stack(cosines, axis=-1))


def check_times(times: Numbers) -> np.ndarray:
    """Return the times as an array, or raise when they do not ascend."""
    times = float64(times)
    if times.ndim != 1 or len(times) == 0 or not (np.diff(times) > 0).all():
        raise AttnscopeError(
            f"times of shape {times.shape}: expected one or more times, strictly ascending."
        )
    return times


def _matrices(gradients: Numbers) -> np.ndarray:
    gradients = float64(gradients)
    if gradients.ndim != 3:
        raise AttnscopeError(
            f"gradients of shape {gradients.shape}: expected (time, key, query), a matrix G a time."
        )
    return gradients


def _log_norms(
    times: Numbers, sigma: Numbers, eps: float, d_a: int, lr: float | None
) -> np.ndarray:
    start = 2 * math.log(_positive("eps", eps)) + math.log(_positive("d_a", d_a) / 2)
    return start + 2 * growth_exponent(times, sigma, lr)


def _crossing(times: np.ndarray, log_norms: np.ndarray, level: float) -> Onset:
    target = math.log(_positive("level", level))
    above = np.flatnonzero(log_norms >= target)
    if len(above) == 0:
        return Onset(math.nan, "not reached")
    at = int(above[0])
    if at == 0:
        return Onset(math.nan, "starts above")
    before, after = log_norms[at - 1], log_norms[at]
    # From an exact zero, or to an overflow, there is no exponential: the later time is all we know.
    span = after - before
    part = (target - before) / span if np.isfinite(span) else 1.0
    found = float(times[at - 1] + part * (times[at] - times[at - 1]))
    return Onset(found, "reached", (float(times[at - 1]), float(times[at])))


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise AttnscopeError(f"{name} = {value:g}: expected a number above 0.")
    return value
