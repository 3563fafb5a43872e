"""Which method takes the next step of a flow, and why.

Where accuracy limits the steps Dormand and Prince's method is the cheapest. Where stability does,
at h·λ = 3.3 of the largest eigenvalue λ of the Hessian, the Chebyshev method is. Every accepted
step bounds λ from below for nothing; only where it says that stability is the limit are gradients
spent on λ itself.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from torch import Tensor

from attnscope.engines.chebyshev import Chebyshev
from attnscope.engines.runge_kutta import DormandPrince, Workspace

Method = Literal["dormand-prince", "chebyshev"]

EDGE = 1.5
"""Steps of Dormand-Prince's beyond this h·λ count as limited by stability."""
SIGNS = 2
"""So many more of them than of others change the method; as many short steps change it back."""
EVERY = 8
"""Accepted Chebyshev steps from one look at the largest eigenvalue to the next."""
MOST_READINGS = 2000
"""Readings of the largest eigenvalue that are kept; beyond, every second one is."""
TRIES = 12
"""Gradients at most for an estimate that does not begin from a good one."""


class Choice:
    """The two methods, the one in use, and what it takes to change it.

    Args:
        work: the vectors that both share.
        forced: the method to use throughout; chosen on the way unless given.
    """

    def __init__(self, work: Workspace, forced: Method | None) -> None:
        self.forced = forced
        self.smooth, self.sharp = DormandPrince(work), Chebyshev(work)
        self.method: DormandPrince | Chebyshev = self.smooth
        if forced == "chebyshev":
            self.method = self.sharp
        self.signs = self.age = 0
        self.bound = 0.0
        self.sharpness: list[tuple[float, float]] = []
        self.switches: list[str] = []

    def start(self) -> None:
        """Look at the largest eigenvalue before the first step, if the method needs it."""
        if self.method is self.sharp:
            self._measure(0.0, TRIES)

    def longest(self) -> float:
        """Return the longest step that the method in use can take."""
        return self.sharp.longest if self.method is self.sharp else math.inf

    def before(self, h: float) -> None:
        """Look at the slopes of a step of length ``h``, right before it is accepted."""
        self.bound = self.method.sharpness(h)

    def accepted(self, time: float, h: float) -> bool:
        """Hear of a step of length ``h`` that ended at ``time``; return whether methods changed.

        It is called when the workspace stands at the end of that step.
        """
        if self.method is self.smooth:
            return self.forced is None and self._sharpens(time, h)
        self.sharp.radius = max(self.sharp.radius, self.bound)
        self.age += 1
        if self.age >= EVERY:
            self._measure(time, 2)
        self.signs = self.signs + 1 if h * self.sharp.radius < EDGE else 0
        if self.forced is None and self.signs >= SIGNS:
            self._change(
                self.smooth,
                f"time {time:g}: dormand-prince, since accuracy limits steps to {h:.3g} where "
                f"an eigenvalue of {self.sharp.radius:.3g} allows {3.3 / self.sharp.radius:.3g}",
            )
            return True
        return False

    def refused(self, time: float) -> None:
        """Hear of a step that was refused: the largest eigenvalue may have grown."""
        if self.method is self.sharp and self.age > 0:
            self._measure(time, 3)

    def look(self, time: float) -> float:
        """Return the largest eigenvalue where the workspace stands, from a few gradients."""
        self._measure(time, TRIES if self.sharp.direction is None else 3)
        return self.sharp.radius

    def limit(self, h: float) -> str:
        """Say that stability limits steps of length ``h``, if it does and another method helps."""
        if self.forced != self.smooth.name or h * self.bound < EDGE:
            return ""
        return (
            f"stability limits them to {h:.3g} where the largest eigenvalue is {self.bound:.3g} or "
            "more; expected method = None, which finds a method for that"
        )

    def leave(self, time: float) -> None:
        """Go back to Dormand-Prince's, at a kink."""
        if self.forced is None and self.method is self.sharp:
            self._change(self.smooth, f"time {time:g}: dormand-prince, after a kink")

    def _sharpens(self, time: float, h: float) -> bool:
        self.signs = self.signs + 1 if h * self.bound > EDGE else max(0, self.signs - 1)
        if self.signs < SIGNS:
            return False
        self._measure(time, TRIES, self.smooth.work.right)
        self.signs = 0
        if self.sharp.eigenvalue * h < EDGE:
            return False
        self._change(
            self.sharp,
            f"time {time:g}: chebyshev, since steps of {h:.3g} met the limit of stability, "
            f"{3.3 / self.sharp.radius:.3g}, of an eigenvalue of {self.sharp.radius:.3g}",
        )
        return True

    def _measure(self, time: float, tries: int, start: Tensor | None = None) -> None:
        self.age = 0
        self.sharp.measure(tries, start)
        self.sharpness.append((time, self.sharp.eigenvalue))
        if len(self.sharpness) > MOST_READINGS:
            self.sharpness = self.sharpness[::2]

    def _change(self, method: DormandPrince | Chebyshev, why: str) -> None:
        self.method, self.signs = method, 0
        self.switches.append(why)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what :meth:`restore` needs: tensors and JSON values."""
        sharp = self.sharp
        tensors = {} if sharp.direction is None else {"direction": sharp.direction}
        return tensors, {
            "method": self.method.name,
            "radius": (sharp.radius, sharp.eigenvalue),
            "signs": (self.signs, self.age),
            "sharpness": self.sharpness,
            "switches": self.switches,
        }

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go back to where a checkpoint was taken."""
        if "method" not in values:  # written when there was only one
            return
        self.method = self.sharp if values["method"] == self.sharp.name else self.smooth
        self.sharp.radius, self.sharp.eigenvalue = values["radius"]
        self.signs, self.age = values["signs"]
        self.sharpness = [(time, value) for time, value in values["sharpness"]]
        self.switches = list(values["switches"])
        if "direction" in tensors:
            self.sharp.direction = tensors["direction"].to(self.sharp.work.state.device, copy=True)
