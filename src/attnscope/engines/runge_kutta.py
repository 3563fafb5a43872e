"""One explicit Runge-Kutta step with error estimate and dense output.

The tableau is Dormand and Prince's pair of order 5(4), as SciPy tabulates it for its ``RK45``.
SciPy's stepper itself works on float64 NumPy arrays and measures the error by its root mean square,
which a large vocabulary dilutes: of 80,000 parameters 128 move, and their error looks 25 times
smaller than it is. Here stages are rows of one tensor, a stage is one matrix-vector product that
writes straight into the model's parameters, and the error is the largest coordinate's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.integrate import RK45
from torch import Tensor

Field = Callable[[Tensor], float]
"""Evaluates the gradient at the current parameters into the tensor; returns the loss there."""


class DormandPrince:
    """The integrator of dθ/dt = -∇L(θ): state, stages and coefficients.

    Args:
        vector: the parameters; written when a stage is evaluated.
        field: computes ∇L at ``vector``.
    """

    order = 5
    stages = 6

    def __init__(self, vector: Tensor, field: Field) -> None:
        self.vector = vector
        self.field = field
        self.state = vector.clone()
        self.next_state = vector.clone()
        # One row per stage, and one for the gradient at the end of the step, which is the first
        # stage of the next ("first same as last").
        self.slopes = vector.new_zeros(self.stages + 1, vector.numel())
        self._scale, self._error = torch.empty_like(vector), torch.empty_like(vector)
        kind = vector.dtype
        self._a = [torch.tensor(RK45.A[i, :i], dtype=kind) for i in range(self.stages)]
        self._b = torch.tensor(RK45.B, dtype=kind)
        self._e = torch.tensor(RK45.E, dtype=kind)

    def start(self) -> float:
        """Evaluate the first slope; return the loss at the start."""
        return self.evaluate(self.state, self.slopes[0])

    def evaluate(self, point: Tensor, out: Tensor) -> float:
        """Evaluate the slope at any point."""
        self.vector.copy_(point)
        return self.field(out)

    def attempt(self, h: float, rtol: float, atol: float) -> tuple[float, float]:
        """Try a step of length ``h``; return the scaled error and the loss at its end."""
        for i in range(1, self.stages):
            torch.addmv(self.state, self.slopes[:i].T, self._a[i] * -h, out=self.vector)
            self.field(self.slopes[i])
        torch.addmv(self.state, self.slopes[:-1].T, self._b * -h, out=self.next_state)
        self.vector.copy_(self.next_state)
        loss = self.field(self.slopes[-1])
        scale, error = torch.abs(self.state, out=self._scale), self._error
        torch.maximum(scale, torch.abs(self.next_state, out=error), out=scale)
        scale.mul_(rtol).add_(atol)
        # The largest and the smallest coordinate: a norm of infinite order, and NaN if one is.
        low, high = torch.aminmax(torch.mv(self.slopes.T, self._e * h, out=error).div_(scale))
        return max(-low.item(), high.item()), loss

    def accept(self) -> None:
        """Move to the end of the step just tried."""
        self.state, self.next_state = self.next_state, self.state
        self.slopes[0].copy_(self.slopes[-1])

    def interpolate(self, h: float, fraction: float) -> None:
        """Write the state at ``fraction`` of the step just tried into the parameters.

        The interpolant is of order 4 and needs no further evaluation.
        """
        powers = np.array([fraction, fraction**2, fraction**3, fraction**4])
        weights = torch.from_numpy(RK45.P @ (-h * powers))
        torch.addmv(self.state, self.slopes.T, weights.to(self.vector.dtype), out=self.vector)
