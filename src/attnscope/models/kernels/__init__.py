"""Attention kernels: how much a query weighs a key. One small file a kernel.

    S = kernel("gaussian").weights(q, k)          # (..., n, n)
    out = kernel("gaussian")(q, k, v)             # S v, with little memory

``weights`` is made of plain PyTorch operations: it can be differentiated as often as one likes,
and ``torch.func`` may go through it. A call takes a faster path that keeps at most one n × n matrix
for the backward pass, two with softmax and dropout, and none of long sequences with softmax.
``torch.autograd`` can differentiate that path twice as well, for Hessians.

:mod:`attnscope.models.kernels.switch` exchanges the kernel of a trained model within a bound, and
:mod:`attnscope.models.kernels.row_sums` holds the sums of rows or the shares within them.
"""

from __future__ import annotations

from attnscope.errors import AttnscopeError, nearest
from attnscope.models.kernels._inputs import Kernel, attend_eagerly
from attnscope.models.kernels.by_hand import ByHand, GaussianByHand, SoftmaxByHand
from attnscope.models.kernels.gaussian import Gaussian, NormalisedGaussian
from attnscope.models.kernels.linear import Linear
from attnscope.models.kernels.softmax import Softmax

_BY_NAME: dict[str, Kernel] = {
    made.name: made for made in (Softmax(), Gaussian(), NormalisedGaussian(), Linear())
}

_BY_HAND: dict[str, ByHand] = {
    "softmax": SoftmaxByHand(),
    "gaussian": GaussianByHand(),
    "normalised-gaussian": SoftmaxByHand(gaussian=True),
}

KERNELS = tuple(_BY_NAME)
"""Names that :func:`kernel` knows."""


def kernel(name: str) -> Kernel:
    """Return the kernel of a name, one of :data:`KERNELS`."""
    if name not in _BY_NAME:
        raise AttnscopeError(
            f"kernel = {name!r}: expected one of {', '.join(KERNELS)}.{nearest(str(name), KERNELS)}"
        )
    return _BY_NAME[name]


def by_hand(kernel: Kernel) -> ByHand | None:
    """Return a kernel's passes written out; ``None`` of one that has a name but other settings."""
    return _BY_HAND.get(kernel.name) if kernel == _BY_NAME.get(kernel.name) else None


__all__ = [
    "KERNELS",
    "ByHand",
    "Gaussian",
    "Kernel",
    "Linear",
    "NormalisedGaussian",
    "Softmax",
    "attend_eagerly",
    "by_hand",
    "kernel",
]
