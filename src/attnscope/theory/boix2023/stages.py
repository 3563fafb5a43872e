r"""The greedy algorithm that training follows as its start shrinks to zero (theorem of section 3).

For :math:`w = u v` entry by entry and :math:`g = -\partial L / \partial w`, gradient flow has
:math:`\frac{d}{dt} \log |u_i \pm v_i| = \pm g_i` exactly. Write
:math:`|u_i \pm v_i| = \alpha^{b_i^\pm}` and :math:`\tau = t / \log(1/\alpha)`: on a plateau the
exponents move in straight lines, :math:`\dot b_i^\pm = \mp g_i`, and the first one that arrives at
0 ends it. So all exponents *remember* what every earlier plateau did to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnscope.theory.boix2023.limit import Gradient, restricted_limit

REST = 1e-7
"""A gradient below this part of that at zero moves nothing any more."""


@dataclass(frozen=True)
class Stage:
    """A product that leaves zero, and the plateau it leads to.

    Args:
        time: T, in units of log(1/α).
        entry: which product.
        products: w on the plateau that follows.
        runner_up: the product that would have been next.
        gap: how much later it would have been, in the same units; infinite without one. At a tie
            the theorem says nothing.
    """

    time: float
    entry: int
    products: np.ndarray
    runner_up: int
    gap: float


@dataclass(frozen=True)
class Stages:
    """Stages in order, and in words why there are no more."""

    stages: tuple[Stage, ...]
    ended: str

    @property
    def times(self) -> np.ndarray:
        """T of every stage."""
        return np.array([stage.time for stage in self.stages])

    @property
    def entries(self) -> tuple[int, ...]:
        """The products in the order in which they leave zero."""
        return tuple(stage.entry for stage in self.stages)


def greedy_stages(
    gradient: Gradient, size: int, until: float, *, remember: bool = True, lr: float = 0.0
) -> Stages:
    r"""Return the stages up to a time.

    Args:
        gradient: returns -∂L/∂w at w.
        size: how many products there are.
        until: the last time that is of interest, in units of log(1/α).
        remember: exponents keep what earlier plateaus did to them, as they do. ``False`` sets them
            back to 1 at each stage, which is wrong from the third stage on.
        lr: of gradient descent, for which :math:`u \pm v` is multiplied by :math:`1 \pm \eta g` in
            every step: rates become :math:`\log(1 \pm \eta g) / \eta`. 0 is the flow.

    Example:
        Two products, each with its own target: g = a - w. The second waits for its own exponent
        only, so its time does not depend on the first.

        >>> targets = np.array([2.0, 0.5])
        >>> found = greedy_stages(lambda w: targets - w, 2, 10.0)
        >>> print(found.times.round(6), found.entries, found.stages[1].products.round(6))
        [0.5 2. ] (0, 1) [2.  0.5]
    """
    up, down = np.ones(size), np.ones(size)
    point, time = np.zeros(size), 0.0
    active: list[int] = []
    stages: list[Stage] = []
    rest = REST * float(np.abs(gradient(point)).max())
    while True:
        slopes = np.array(gradient(point), dtype=float)
        slopes[active] = 0.0
        slopes[np.abs(slopes) <= rest] = 0.0
        rising, falling = _rate(slopes, lr), _rate(-slopes, lr)
        wait = np.full(size, math.inf)
        np.divide(up, rising, out=wait, where=slopes > 0)
        np.divide(down, falling, out=wait, where=slopes < 0)
        if not np.isfinite(wait).any():
            return Stages(tuple(stages), "no product has a gradient any more")
        order = np.argsort(wait, kind="stable")
        entry, delay = int(order[0]), float(wait[order[0]])
        time += delay
        if time > until:
            return Stages(tuple(stages), f"the next stage is at {time:.4g}, after {until:g}")
        up, down = up - rising * delay, down - falling * delay
        if not remember:
            up, down = np.ones(size), np.ones(size)
        active.append(entry)
        end = restricted_limit(gradient, point, active, entry, float(np.sign(slopes[entry])))
        point = end.products
        gap = float(wait[order[1]]) - delay if size > 1 else math.inf
        runner = int(order[1]) if size > 1 else entry
        stages.append(Stage(time, entry, point, runner, gap))
        if end.gone or not end.still:
            what = f"product {end.gone[0]} went back to 0" if end.gone else "it has no minimum"
            return Stages(tuple(stages), f"behind stage {len(stages)} {what}: no plateau")


def _rate(slopes: np.ndarray, lr: float) -> np.ndarray:
    """Return at which rate the logarithm of u + v grows, step by step."""
    if lr == 0:
        return slopes
    return np.asarray(np.log1p(np.maximum(lr * slopes, -1 + 1e-12)) / lr)
