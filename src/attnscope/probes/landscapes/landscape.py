"""The loss over a plane θ* + a d₁ + b d₂ of the parameters of any module.

A picture of a plane takes many more points than the network has detail there. So the network is
evaluated at the Chebyshev points of the rectangle, as many as it takes, and the grid is read off
the polynomials through them. Points of the grid, evaluated besides, say how far off that is; where
it is not good enough, every point of the grid is evaluated.

Polynomials converge fast to what is analytic, such as attention, layer norm and GELU, and slowly to
what has kinks, such as ReLU. A loss may therefore come in two parts (:class:`StagedLoss`): what is
smooth is read off polynomials, and the rest, if it is cheap, is computed at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.probes.landscapes.chebyshev import points, reading
from attnscope.probes.landscapes.directions import Directions, move, still

PlainLoss = Callable[[Any], Tensor | float]
"""A loss of a model on data that stay the same."""

DEGREES = (8, 16, 32)
"""Degrees that are tried, in a and in b; the points of each are among those of the next."""
CHECKS = 12
"""Points of the grid that are evaluated to see how far off the polynomials are."""
SAFETY = 3.0
"""The largest of a few errors is below the largest of all; so they must be this much better."""


@runtime_checkable
class StagedLoss(Protocol):
    """A loss whose expensive part is smooth: ``loss(model) = finish(model, stage(model))``."""

    def __call__(self, model: Any) -> Tensor:
        """Return the loss."""

    def stage(self, model: Any) -> Tensor:
        """Return what is analytic in the parameters, such as features before the first ReLU."""

    def finish(self, model: Any, stage: Tensor) -> Tensor:
        """Return the loss from it, cheaply; ``model`` is at the same point."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """The loss over a grid in a plane.

    Args:
        a: steps along the first direction.
        b: steps along the second.
        loss: shape ``(len(b), len(a))``.
        center: loss at θ*.
        directions: what the plane is spanned by.
        evaluations: passes through the network.
        error: largest relative deviation from the loss at the points that were checked; 0 if all
            points were evaluated.
        words: all of this in a sentence, for a caption.
    """

    a: np.ndarray
    b: np.ndarray
    loss: np.ndarray
    center: float
    directions: Directions
    evaluations: int
    error: float
    words: str


@dataclass(frozen=True, eq=False)
class Profiles:
    """The loss along rays, one for every draw of a direction.

    Args:
        steps: along the ray.
        loss: shape ``(draw, step)``.
        words: how the directions were drawn.
    """

    steps: np.ndarray
    loss: np.ndarray
    words: str

    @property
    def mean(self) -> np.ndarray:
        """Return the mean over draws."""
        return np.asarray(self.loss.mean(0))

    @property
    def low(self) -> np.ndarray:
        """Return the lowest of all draws."""
        return np.asarray(self.loss.min(0))

    @property
    def high(self) -> np.ndarray:
        """Return the highest of all draws."""
        return np.asarray(self.loss.max(0))


def landscape(
    model: nn.Module,
    loss: PlainLoss,
    directions: Directions,
    a: np.ndarray,
    b: np.ndarray,
    *,
    tolerance: float = 1e-5,
) -> Landscape:
    """Compute the loss at θ* + a d₁ + b d₂ for all a and b, where θ* is where the model is.

    Args:
        model: comes back bit for bit as it was, also if the loss raises.
        loss: called as ``loss(model)``, in evaluation mode and without a graph.
        directions: two of them.
        a: steps along the first, rising.
        b: steps along the second, rising.
        tolerance: relative error that values may have; 0 evaluates every point.
    """
    if len(directions.labels) != 2:
        raise AttnscopeError(
            f"{len(directions.labels)} directions were given: expected two, which span a plane."
        )
    a, b = _axis("a", a), _axis("b", b)
    if not tolerance >= 0:
        raise AttnscopeError(f"tolerance = {tolerance}: expected 0 or more.")
    with still(model) as start:
        plane = _Plane(model, loss, directions, start)
        center = plane.loss_at(0.0, 0.0)
        if not np.isfinite(center):
            raise AttnscopeError(f"The loss at θ* is {center}: expected a finite number.")
        values, error, degree = plane.interpolated(a, b, tolerance)
        if values is None:
            values, error = plane.direct(a, b), 0.0
        evaluations = len(plane.stages)
    lost = int((~np.isfinite(values)).sum())
    how = (
        f"read off polynomials of degree {degree} in a and in b through {evaluations:,} passes, "
        f"within {error:.1g} of the loss at {CHECKS} points checked"
        if degree
        else "one pass a point"
    )
    words = f"Loss over {len(a)} × {len(b)} points, {directions.words}; {how}."
    if lost:
        words += f" {lost:,} points are not finite and left empty."
        values = np.where(np.isfinite(values), values, np.nan)
    return Landscape(a, b, values, center, directions, evaluations, error, words)


def profiles(
    model: nn.Module, loss: PlainLoss, draws: Sequence[Directions], steps: np.ndarray
) -> Profiles:
    """Compute the loss along the first direction of every draw."""
    steps = _axis("steps", steps)
    if not draws:
        raise AttnscopeError("No draws were given: expected one or more directions.")
    with still(model) as start:
        rays = [_Plane(model, loss, draw.ray(0), start) for draw in draws]
        found = [[ray.loss_at(step) for step in steps.tolist()] for ray in rays]
    words = f"{len(draws)} draws of {draws[0].words.rpartition(', draw')[0] or draws[0].words}"
    return Profiles(steps, np.array(found), words)


class _Plane:
    """The loss on a plane or a ray; the network is evaluated once a point."""

    def __init__(
        self, model: nn.Module, loss: PlainLoss, directions: Directions, start: dict[str, Tensor]
    ) -> None:
        self.model, self.directions, self.start = model, directions, start
        staged = isinstance(loss, StagedLoss)
        self._stage = loss.stage if staged else loss  # type: ignore[attr-defined]
        self._finish = loss.finish if staged else lambda _, value: value  # type: ignore[attr-defined]
        self.stages: dict[tuple[float, ...], Tensor] = {}

    def loss_at(self, *steps: float) -> float:
        return self.finish(steps, self.stage(*steps))

    def stage(self, *steps: float) -> Tensor:
        if steps not in self.stages:
            move(self.model, self.start, self.directions, steps)
            with torch.inference_mode():
                self.stages[steps] = torch.as_tensor(self._stage(self.model)).detach()
        return self.stages[steps]

    def finish(self, steps: tuple[float, ...], stage: Tensor) -> float:
        move(self.model, self.start, self.directions, steps)
        with torch.inference_mode():
            value = torch.as_tensor(self._finish(self.model, stage))
        if value.numel() != 1:
            shape = tuple(value.shape)
            raise AttnscopeError(f"The loss has shape {shape}: expected a single number.")
        return value.item()

    def direct(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([[self.loss_at(x, y) for x in a.tolist()] for y in b.tolist()])

    def interpolated(
        self, a: np.ndarray, b: np.ndarray, tolerance: float
    ) -> tuple[np.ndarray | None, float, int]:
        """Return values, error and degree; no values if no degree worth its cost is enough."""
        chance = np.random.default_rng(0)
        checks = chance.integers((len(b), len(a)), size=(CHECKS, 2)).tolist()
        passes = [degree for degree in DEGREES if (degree + 1) ** 2 <= 0.45 * len(a) * len(b)]
        found: list[tuple[int, float]] = []
        for degree in passes if tolerance else []:
            if _hopeless(found, passes[-1], tolerance):
                break
            reader = _Reader(self, a, b, degree)
            if not reader.finite:
                break
            error = max(self.deviation(float(a[j]), float(b[i]), reader(i, j)) for i, j in checks)
            if SAFETY * error <= tolerance:
                grid = [[reader(i, j) for j in range(len(a))] for i in range(len(b))]
                return np.array(grid), error, degree
            found.append((degree, error))
        return None, 0.0, 0

    def deviation(self, a: float, b: float, value: float) -> float:
        true = self.loss_at(a, b)
        return abs(value - true) / max(abs(true), np.finfo(float).tiny)


class _Reader:
    """Losses at points of the grid from polynomials through stages at Chebyshev points."""

    def __init__(self, plane: _Plane, a: np.ndarray, b: np.ndarray, degree: int) -> None:
        self.plane, self.a, self.b = plane, a, b
        xs, ys = points(a[0], a[-1], degree), points(b[0], b[-1], degree)
        nodes = [[plane.stage(x, y) for x in xs.tolist()] for y in ys.tolist()]
        self.like = nodes[0][0]
        stacked = [torch.stack([part.double().flatten() for part in row]) for row in nodes]
        self.nodes = torch.stack(stacked).cpu().numpy()
        self.along_a, self.along_b = reading(xs, a), reading(ys, b)
        self.finite = bool(np.isfinite(self.nodes).all())
        self.row, self.known = -1, np.empty(0)

    def __call__(self, i: int, j: int) -> float:
        if i != self.row:  # a whole row is read at once
            along = np.tensordot(self.along_b[i], self.nodes, axes=1)
            self.row, self.known = i, self.along_a @ along
        stage = torch.as_tensor(self.known[j]).to(self.like).view(self.like.shape)
        return self.plane.finish((float(self.a[j]), float(self.b[i])), stage)


def _hopeless(found: list[tuple[int, float]], degree: int, tolerance: float) -> bool:
    """Whether the error at a degree, if it goes on to fall geometrically, will be too large."""
    if len(found) < 2:
        return False
    (n, before), (m, now) = found[-2:]
    rate = min(1.0, now / before) ** (1 / (m - n)) if before else 0.0
    return now * rate ** (degree - m) > tolerance


def _axis(name: str, values: np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size < 2 or not (np.diff(array) > 0).all():
        raise AttnscopeError(f"{name} = {values!r}: expected two or more rising numbers.")
    if not np.isfinite(array).all():
        raise AttnscopeError(f"{name} = {values!r}: expected finite numbers.")
    return array
