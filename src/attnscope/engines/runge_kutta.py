"""One explicit Runge-Kutta step with error estimate and dense output.

The tableau is Dormand and Prince's pair of order 5(4). SciPy's stepper of that pair works on
float64 NumPy arrays and measures the error by its root mean square, which a large vocabulary
dilutes: of 80,000 parameters 128 move, and their error looks 25 times smaller than it is. Here
stages are rows of one tensor, a stage is one matrix-vector product that writes straight into the
model's parameters, and the error is the largest coordinate's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attnscope.engines.dormand_prince import DENSE, END, ERROR, STAGES

Field = Callable[[Tensor], float]
"""Evaluates the gradient at the current parameters into the tensor; returns the loss there."""


class Workspace:
    """The state of dθ/dt = -∇L(θ), and the vectors that a step needs, whichever method takes it.

    Args:
        vector: the parameters; written when a stage is evaluated.
        field: computes ∇L at ``vector``.
    """

    vectors = 11
    """Vectors as long as the parameters that are held, beside the parameters."""

    def __init__(self, vector: Tensor, field: Field) -> None:
        self.vector = vector
        self.field = field
        self.state = vector.clone()
        self.next_state = vector.clone()
        # One row per stage, and one for the gradient at the end of the step, which is the first
        # stage of the next ("first same as last").
        self.slopes = vector.new_zeros(7, vector.numel())
        self.left, self.right = torch.empty_like(vector), torch.empty_like(vector)

    def evaluate(self, point: Tensor, out: Tensor) -> float:
        """Evaluate the slope at any point."""
        self.vector.copy_(point)
        return self.field(out)

    def accept(self) -> None:
        """Move to the end of the step just tried."""
        self.state, self.next_state = self.next_state, self.state
        self.slopes[0].copy_(self.slopes[-1])

    def error(self, weights: Tensor, rtol: float, atol: float) -> float:
        """Return the largest coordinate of an error, a sum of slopes, in units of its tolerance."""
        scale, error = torch.abs(self.state, out=self.left), self.right
        torch.maximum(scale, torch.abs(self.next_state, out=error), out=scale)
        scale.mul_(rtol).add_(atol)
        # The largest and the smallest coordinate: a norm of infinite order, and NaN if one is.
        low, high = torch.aminmax(torch.mv(self.slopes.T, weights, out=error).div_(scale))
        return max(-low.item(), high.item())

    def sharpness(self, weights: Tensor, row: int) -> float:
        """Bound the largest eigenvalue from below by two slopes at hand (Hairer, Wanner, IV.2).

        It is ‖g(a) - g(b)‖/‖a - b‖ of the end a of the step just tried and of the stage b in
        ``row``, where a - b is the sum of slopes with ``weights``. The difference is left in
        ``right``: where stability limits the steps it lies along the sharpest direction.
        """
        apart = float(torch.mv(self.slopes.T, weights, out=self.left).norm())
        bend = float(torch.sub(self.slopes[-1], self.slopes[row], out=self.right).norm())
        return bend / apart if apart > 0 else 0.0


class DormandPrince:
    """The pair of order 5(4): the method of choice where the loss is not sharp."""

    name = "dormand-prince"
    order = 5
    safety = 0.85
    """Of the next step, as a part of what the last error suggests."""
    stages = 6

    def __init__(self, work: Workspace) -> None:
        self.work = work
        kind = work.vector.dtype
        self._a = [torch.tensor(row, dtype=kind) for row in STAGES]
        self._b = torch.tensor(END, dtype=kind)
        self._e = torch.tensor(ERROR, dtype=kind)
        self._apart = self._b.new_zeros(7)
        self._apart[:6] = self._b
        self._apart[:5] -= self._a[5]

    def attempt(self, h: float, rtol: float, atol: float) -> tuple[float, float]:
        """Try a step of length ``h``; return the scaled error and the loss at its end."""
        work = self.work
        for i in range(1, self.stages):
            torch.addmv(work.state, work.slopes[:i].T, self._a[i] * -h, out=work.vector)
            work.field(work.slopes[i])
        torch.addmv(work.state, work.slopes[:-1].T, self._b * -h, out=work.next_state)
        work.vector.copy_(work.next_state)
        loss = work.field(work.slopes[-1])
        return work.error(self._e * h, rtol, atol), loss

    def sharpness(self, h: float) -> float:
        """Return a lower bound of the largest eigenvalue, from the step just tried."""
        return self.work.sharpness(self._apart * h, 5)

    def interpolate(self, h: float, fraction: float) -> None:
        """Write the state at ``fraction`` of the step just tried into the parameters.

        The interpolant is of order 4 and needs no further evaluation.
        """
        work = self.work
        powers = np.array([fraction, fraction**2, fraction**3, fraction**4])
        weights = torch.from_numpy(DENSE @ (-h * powers)).to(work.vector.dtype)
        torch.addmv(work.state, work.slopes.T, weights, out=work.vector)
