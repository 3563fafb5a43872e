"""One step of a stabilised explicit Runge-Kutta method of order 4, for where the loss is sharp.

Dormand and Prince's steps end at h·λ = 3.3. A Chebyshev method of s stages stays stable up to
h·λ = 0.33 s², so that a step n times as long costs √n times as much. The construction is that of
ROCK4 (Abdulle 2002, SIAM J. Sci. Comput. 23): its stability polynomial is w·P, where w has two
pairs of complex zeros and P, of degree s - 4, is orthogonal with the weight w²/√(1 - x²). P is run
by its recurrence of three terms, w as four Runge-Kutta stages that make the whole of order 4.

Nothing is tabulated but the zeros of w, as cubics in 1/s. They were found for |w·P| <= 0.95; since
the four last stages are computed from the recurrence as it is, order 4 is exact whatever they are.

Rounding in P is multiplied by w, which is (hλ)⁴/107 at the sharp end: in double precision that is
below the default tolerance up to hλ = 1,500, in single precision up to 10 or 20. The error estimate
sees it, and steps grow no longer than that.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnscope.engines.root import root_between
from attnscope.engines.runge_kutta import Workspace

MOST_STAGES = 200
SAFETY = 1.05
"""Stages are chosen for an eigenvalue so many times the estimate, which is one from below."""
ZEROS = np.array(
    [
        [198.469, 45.1394, 225.408, 409.103, 13.3932],
        [77.9113, 65.4158, -48.8635, 79.6787, 1.16163],
        [-15.5471, -9.36742, 0.492519, -20.8749, -0.132237],
        [15.0278, 8.12424, 1.48387, 21.9216, 0.306441],
    ]
)
"""s² (1 - Re x) and s² Im x of both zeros x, and s² (a - 1) of the point a that is z = 0: the
coefficients of 1/s³, 1/s², 1/s and 1."""
ESTIMATE = 0.05
"""Weight of the last slope in the error estimate: errors are then those of Dormand-Prince's."""


class Tableau(NamedTuple):
    """Coefficients of the method of s stages.

    Args:
        recurrence: μ, ν, κ of d ← ν d + κ d₋₁ - hμ∇L(θ + d), one row for each of s - 4 stages.
        a: the four last stages.
        b: the end of the step.
        error: the five last slopes in the error estimate, which is of order 3.
        limit: hλ up to which it is stable.
    """

    recurrence: list[tuple[float, float, float]]
    a: np.ndarray
    b: np.ndarray
    error: np.ndarray
    limit: float


@cache
def tableau(s: int) -> Tableau:
    """Compute the coefficients of the method of ``s`` stages, 5 or more."""
    r1, i1, r2, i2, offset = np.polyval(ZEROS, 1 / s) / s**2
    zeros, a = (1 - r1 + 1j * i1, 1 - r2 + 1j * i2), 1 + offset
    nodes = np.cos((np.arange(2 * s + 20) + 0.5) * np.pi / (2 * s + 20))
    weight = np.prod([np.abs(nodes - zero) ** 4 for zero in zeros], axis=0)
    # Stieltjes' procedure on Chebyshev nodes, where the sums are exact integrals. Polynomials are
    # scaled to 1 at a; `slope` is P'(a).
    scale = 1 / sum(2 * (1 / (a - zero)).real for zero in zeros)
    before, now, norm_before = np.zeros_like(nodes), np.ones_like(nodes), 1.0
    slope_before, slope, rows = 0.0, 0.0, []
    for j in range(s - 4):
        norm = weight @ now**2
        alpha = (weight * nodes) @ now**2 / norm
        # β of the polynomials as scaled: ⟨x p, p₋₁⟩/⟨p₋₁, p₋₁⟩.
        beta = (weight * nodes * now) @ before / norm_before if j else 0.0
        lead = (a - alpha) - beta
        rows.append((1 / lead, (a - alpha) / lead, -beta / lead))
        before, now, norm_before = now, ((nodes - alpha) * now - beta * before) / lead, norm
        slope_before, slope = slope, ((a - alpha) * slope + 1.0 - beta * slope_before) / lead
    scale = 1 / (1 / scale + slope)
    recurrence = [(scale * mu, nu, kappa) for mu, nu, kappa in rows]
    return Tableau(recurrence, *_finish(recurrence), (a + 1) / scale)


def _weights(at: np.ndarray) -> np.ndarray:
    """Return the elementary weights of a slope, given those of the point where it is taken.

    They belong to the trees •, [•], [•,•], [[•]], [•,•,•], [•,[•]], [[•,•]] and [[[•]]].
    """
    p1, p2, p3, q3 = at[:4]
    return np.array([1, p1, p1 * p1, p2, p1**3, p1 * p2, p3, q3])


def _finish(
    recurrence: list[tuple[float, float, float]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve the eight conditions of order 4 for the four last stages; return a, b and the error."""
    before, now = np.zeros(8), np.zeros(8)
    for mu, nu, kappa in recurrence:
        before, now = now, nu * now + kappa * before + mu * _weights(now)
    p1, p2, p3, q3 = now[:4]
    # What the last stages must add, as Butcher's product of the two methods says.
    w1 = 1 - p1
    w2 = 1 / 2 - p2 - w1 * p1
    w3 = 1 / 3 - p3 - w1 * p1**2 - 2 * w2 * p1
    u3 = 1 / 6 - q3 - w1 * p2 - w2 * p1
    w4 = 1 / 4 - now[4] - w1 * p1**3 - 3 * w2 * p1**2 - 3 * w3 * p1
    u4 = 1 / 8 - now[5] - w1 * p1 * p2 - w2 * (p1**2 + p2) - (w3 + u3) * p1
    v4 = 1 / 12 - now[6] - w1 * p3 - w2 * p1**2 - 2 * u3 * p1
    t4 = 1 / 24 - now[7] - w1 * q3 - w2 * p2 - u3 * p1

    def solve(last: float) -> tuple[np.ndarray, np.ndarray, float]:
        c = w1 * np.array([0, 0.25, 0.6, last])
        b = np.linalg.solve(np.vander(c, increasing=True).T, [w1, w2, w3, w4])
        ac3, ac4 = np.linalg.solve([b[2:], b[2:] * c[2:]], [u3, u4])
        a43 = ((v4 - b[2] * ac3 * c[1]) / b[3] - c[1] * ac4) / (c[2] * (c[2] - c[1]))
        a32, a42 = ac3 / c[1], (ac4 - a43 * c[2]) / c[1]
        a = np.array([[0, 0, 0], [c[1], 0, 0], [c[2] - a32, a32, 0], [c[3] - a42 - a43, a42, a43]])
        return a, b, float(b[3] * a43 * ac3 - t4)

    a, b, _ = solve(root_between(lambda last: solve(last)[2], 1.01, 1.09))
    # The slope at the end is a fifth one. One combination of five slopes vanishes to order 3.
    c = a.sum(axis=1)
    c, ac = np.append(c, b.sum()), np.append(a @ c[:3], b @ c)
    error = np.linalg.svd(np.array([np.ones(5), c, c * c, ac]))[2][-1]
    return a, b, ESTIMATE * error / error[-1]


class Chebyshev:
    """The stabilised method, its estimate of the largest eigenvalue, and that one's direction."""

    name = "chebyshev"
    order = 4
    safety = 0.75

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.stages = 5
        self.radius = self.eigenvalue = 0.0
        self.direction: Tensor | None = None

    @property
    def longest(self) -> float:
        """The longest step that is stable."""
        most = tableau(MOST_STAGES).limit
        return most / (SAFETY * self.radius) if self.radius > 0 else float("inf")

    def measure(self, tries: int, start: Tensor | None = None) -> float:
        """Improve the estimate of the largest eigenvalue by power iteration.

        A product with the Hessian is a difference of two gradients. The direction is kept from
        one time to the next.
        """
        work = self.work
        if start is not None or self.direction is None:
            self.direction = (work.slopes[0] if start is None else start).clone()
        direction, product = self.direction, work.slopes[5]
        apart = torch.finfo(direction.dtype).eps ** 0.5 * (1 + float(work.state.norm()))
        found = 0.0
        for _ in range(tries):
            length = float(direction.norm())
            if not 0 < length < float("inf"):
                self.direction = None
                break
            direction.div_(length)
            torch.add(work.state, direction, alpha=apart, out=work.vector)
            work.field(product)
            product.sub_(work.slopes[0]).div_(apart)
            self.eigenvalue = float(direction @ product)
            direction.copy_(product)
            last, found = found, float(product.norm())
            if abs(found - last) < 0.02 * found:
                break
        self.radius = found
        work.vector.copy_(work.state)
        return self.radius

    def attempt(self, h: float, rtol: float, atol: float) -> tuple[float, float]:
        """Try a step of length ``h``; return the scaled error and the loss at its end."""
        work, kind = self.work, self.work.vector.dtype
        need = SAFETY * h * self.radius
        self.stages = max(5, int((need / 0.34) ** 0.5))
        while tableau(self.stages).limit < need and self.stages < MOST_STAGES:
            self.stages += 1
        method, before, now = tableau(self.stages), work.left.zero_(), work.right.zero_()
        slope = work.slopes[0]
        for j, (mu, nu, kappa) in enumerate(method.recurrence):
            if j:
                torch.add(work.state, now, out=work.vector)
                slope = work.slopes[5]
                work.field(slope)
            before.mul_(kappa).add_(now, alpha=nu).add_(slope, alpha=-h * mu)
            before, now = now, before
        for i in range(4):
            weights = torch.tensor(method.a[i, :i] * -h, dtype=kind)
            torch.addmv(now, work.slopes[1 : 1 + i].T, weights, out=before)
            torch.add(work.state, before, out=work.vector)
            work.field(work.slopes[1 + i])
        torch.addmv(now, work.slopes[1:5].T, torch.tensor(method.b * -h, dtype=kind), out=before)
        torch.add(work.state, before, out=work.next_state)
        work.vector.copy_(work.next_state)
        loss = work.field(work.slopes[-1])
        return work.error(self._rows(method.error * h), rtol, atol), loss

    def sharpness(self, h: float) -> float:
        """Return a lower bound of the largest eigenvalue, from the step just tried."""
        method = tableau(self.stages)
        return self.work.sharpness(self._rows(np.append((method.b - _last(method)) * h, 0)), 4)

    def interpolate(self, h: float, fraction: float) -> None:
        """Write the state at ``fraction`` of the step just tried into the parameters.

        The interpolant is Hermite's cubic on states and slopes of both ends.
        """
        work, x = self.work, fraction
        torch.lerp(work.state, work.next_state, x * x * (3 - 2 * x), out=work.vector)
        work.vector.add_(work.slopes[0], alpha=-h * x * (1 - x) ** 2)
        work.vector.add_(work.slopes[-1], alpha=h * x * x * (1 - x))

    def _rows(self, weights: np.ndarray) -> Tensor:
        """Put weights of the four last stages and of the end where their slopes are kept."""
        rows = self.work.vector.new_zeros(7)
        rows[1:5], rows[6] = torch.from_numpy(weights[:4].copy()), float(weights[4])
        return rows


def _last(method: Tableau) -> np.ndarray:
    return np.append(method.a[3], 0.0)
