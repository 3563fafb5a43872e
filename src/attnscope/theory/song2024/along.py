"""The certificate along a run: how long the rate of Theorem 1 is proven, and what always is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True, eq=False)
class Along:
    """What holds at the record points of runs; arrays end with the axis of time.

    Args:
        certified: whether μ >= β/2 at this and all earlier points, so that the rate of the start
            holds up to here.
        rate_bound: f(0) exp(-βt), a bound where ``certified``.
        path_bound: f(0) exp(-2∫μ), a bound everywhere.
        until: the last certified time; NaN if β is 0.
    """

    certified: np.ndarray
    rate_bound: np.ndarray
    path_bound: np.ndarray
    until: np.ndarray

    def verdict(self, end: float) -> str:
        """Say up to where global convergence is certified, for a single run."""
        if np.isnan(self.until):
            return "nothing certified: the constant of Theorem 1 is 0 at the start"
        if self.until >= end:
            return f"global convergence certified up to the end of the run, time {end:g}"
        return f"global convergence certified up to time {float(self.until):g} of {end:g}"


def along(times: Numbers, loss: Numbers, pl: Numbers, beta: Numbers) -> Along:
    """Follow the PL constant μ of a gradient flow.

    Between two record points the smaller of both μ counts. Exact is the bound with μ at every
    moment: take record points close enough for μ not to dip between them.

    Args:
        times: record points, shape ``(time,)``.
        loss: f, shape ``(..., time)``.
        pl: μ, shape ``(..., time)``.
        beta: β of Theorem 1 at the start, shape ``(...)``.
    """
    times, loss, pl, beta = (float64(part) for part in (times, loss, pl, beta))
    good = (pl >= beta[..., None] / 2) & (beta[..., None] > 0)
    certified = np.logical_and.accumulate(good, axis=-1)
    lower = np.minimum(pl[..., 1:], pl[..., :-1]) * np.diff(times)
    integral = np.concatenate([np.zeros_like(pl[..., :1]), np.cumsum(lower, axis=-1)], axis=-1)
    last = certified.sum(axis=-1) - 1
    until = np.where(last >= 0, times[np.maximum(last, 0)], np.nan)
    return Along(
        certified,
        loss[..., :1] * np.exp(-beta[..., None] * times),
        loss[..., :1] * np.exp(-2 * integral),
        until,
    )


def descent_path_bound(loss: float, pl: Numbers, lr: float) -> np.ndarray:
    """Return f_0 Π_j (1 - ημ_j), a bound of f_k for gradient descent with η <= 1/smoothness.

    Args:
        loss: f_0.
        pl: μ_0, ..., μ_{k-1}, at every step.
        lr: η.
    """
    factors = 1 - lr * float64(pl)
    return np.asarray(loss * np.concatenate([[1.0], np.cumprod(factors)]))
