"""The vector field of a flow: the gradient of a loss that must be smooth, finite and no dice."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnscope.engines.parameters import FlatParameters, Loss
from attnscope.errors import AttnscopeError


class GradientField:
    """∇L at the current parameters, counted; with ``ahead``, ∇L(θ + ahead·∇L(θ)).

    A model in training mode may write into its buffers whenever it is called, as batch
    normalisation does. Points that were only tried must not count there: each evaluation begins
    with the buffers of the last point that was kept.
    """

    def __init__(self, model: nn.Module, loss: Loss, flat: FlatParameters, ahead: float) -> None:
        self.model, self.loss, self.flat, self.ahead = model, loss, flat, ahead
        self.evaluations = 0
        self._moving: list[tuple[str, Tensor, Tensor]] = []

    def __call__(self, out: Tensor) -> float:
        """Write the gradient at the current parameters into ``out``; return the loss."""
        for _, buffer, kept in self._moving:
            buffer.copy_(kept)
        value = self.plain(out)
        if self.ahead:
            self.flat.vector.add_(out, alpha=self.ahead)
            self.plain(out)
        return value

    def plain(self, out: Tensor) -> float:
        """Evaluate the gradient itself."""
        self.evaluations += 1
        return self.flat.value_and_gradient(self.loss, self.model, out)

    def keep(self) -> None:
        """Let the buffers stay as the last evaluation left them."""
        for _, buffer, kept in self._moving:
            kept.copy_(buffer)

    def first(self, out: Tensor) -> float:
        """Evaluate for the first time, and refuse what no flow can follow.

        Raises:
            AttnscopeError: loss or gradient is not finite, or the loss is not the same when it is
                computed again.
        """
        buffers = list(self.model.named_buffers())
        versions = [buffer._version for _, buffer in buffers]
        dice = torch.get_rng_state()
        point = self.flat.vector.clone() if self.ahead else self.flat.vector
        value = self(out)
        self.flat.vector.copy_(point)
        self._moving = [
            (name, buffer, buffer.clone())
            for (name, buffer), version in zip(buffers, versions, strict=True)
            if buffer._version != version
        ]
        if not math.isfinite(value):
            raise AttnscopeError(f"the loss is {value} at time 0: expected a finite number.")
        if not torch.isfinite(out).all():
            raise AttnscopeError(
                f"the loss is {value:.6g} at time 0 and the gradient by '{self.culprit(out)}' is "
                "not finite: expected finite numbers."
            )
        if not torch.equal(dice, torch.get_rng_state()):
            self.check_same(value, out, 0.0)
        return value

    def check_same(self, value: float, gradient: Tensor, time: float) -> None:
        """Evaluate again where ``value`` and ``gradient`` were found.

        Raises:
            AttnscopeError: the second time gives something else.
        """
        again = torch.empty_like(gradient)
        found = self(again)
        apart = float((again - gradient).norm())
        size = float(gradient.norm())
        # Sums over threads may come in another order; noise is far larger.
        if abs(found - value) > 1e-4 * abs(value) or apart > 1e-2 * size:
            raise AttnscopeError(
                f"the loss is {value:.6g} and then {found:.6g} at the same parameters (time "
                f"{time:g}), and the gradient differs by {apart / (size or 1.0):.2g} of its norm: "
                "expected a loss without randomness. model.eval() turns dropout off; data and "
                "noise are drawn once, before; Descent trains with randomness."
            )

    def broken(self, time: float, before: float, h: float, state: Tensor, slope: Tensor) -> str:
        """Say what is not finite within ``h`` after ``time``, however short the step."""
        out = torch.empty_like(slope)
        torch.sub(state, slope, alpha=h, out=self.flat.vector)
        after = self(out)
        what = f"{after}"
        if math.isfinite(after) and not torch.isfinite(out).all():
            what = f"the gradient by '{self.culprit(out)}' was not finite"
        wanted = "finite numbers"
        if after == -math.inf:
            wanted = "a loss that has a lower bound, and this one falls for ever"
        return (
            f"broke down at time {time:g}: the loss was {before:.6g} there and {what} right after; "
            f"expected {wanted}"
        )

    def state(self) -> dict[str, Tensor]:
        """Return the buffers that move, for a checkpoint."""
        return {f"buffer.{name}": kept for name, _, kept in self._moving}

    def restore(self, tensors: dict[str, Tensor], evaluations: int) -> None:
        """Go back to where a checkpoint was taken."""
        self.evaluations = evaluations
        self._moving = [
            (name, buffer, torch.empty_like(buffer).copy_(tensors[f"buffer.{name}"]))
            for name, buffer in self.model.named_buffers()
            if f"buffer.{name}" in tensors
        ]

    def culprit(self, gradient: Tensor) -> str:
        """Return the name of the first parameter whose gradient is not finite."""
        names = {id(p): name for name, p in self.model.named_parameters()}
        parts = zip(self.flat.tensors, self.flat.parts(gradient), strict=True)
        return next((names[id(p)] for p, g in parts if not torch.isfinite(g).all()), "none")
