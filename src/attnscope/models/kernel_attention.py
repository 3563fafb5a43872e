"""Multi-head attention with a kernel of one's choice: the model of Song 2024.

    head_h = S_h X W_h^V,   MH(X) = (head_1, ..., head_H) W^O = Σ_h S_h X W_h^V W_h^O,

with S_h the weights that the kernel gives to queries X W_h^Q and keys X W_h^K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError, nearest
from attnscope.models.kernels import ByHand, Kernel, attend_eagerly, by_hand
from attnscope.models.kernels import kernel as kernel_of

MATRICES = ("W_Q", "W_K", "W_V", "W_O")
"""The matrices of a layer, by name."""


class KernelAttention(nn.Module):
    """A layer of attention with H heads and a kernel that can be exchanged.

    Parameters are ``W_Q``, ``W_K``, ``W_V (head, width, head_width)``, ``W_O (head, head_width,
    outputs)`` and, with ``bias``, ``b_Q``, ``b_K``, ``b_V (head, head_width)``, ``b_O (outputs)``.
    Entries are uniform within ±1/√(number of inputs) at the start, as in ``nn.Linear``; biases too.

    Args:
        width: D, entries of a token.
        heads: H.
        head_width: d, entries of a query; width/heads unless given.
        outputs: entries of an output token; ``width`` unless given. With 1 the axis is left out.
        kernel: name of the kernel, one of :data:`attnscope.models.kernels.KERNELS`, or a kernel.
            Setting :attr:`kernel` to another name exchanges it, also in the middle of training;
            :meth:`use` takes a kernel with settings of its own.
        trained: matrices that learn. Biases learn with their matrix.
        dropout: share of the weights that are left out in training.
        bias: add biases.
        generator: source of the initial values.

    Attributes:
        eager: compute the weights by plain operations. It is needed for ``torch.func``;
            ``torch.autograd`` can differentiate the faster path twice.
    """

    W_Q: nn.Parameter
    W_K: nn.Parameter
    W_V: nn.Parameter
    b_Q: nn.Parameter | None
    b_K: nn.Parameter | None
    b_V: nn.Parameter | None
    b_O: nn.Parameter | None

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int | None = None,
        outputs: int | None = None,
        *,
        kernel: str | Kernel = "softmax",
        trained: Sequence[str] = MATRICES,
        dropout: float = 0.0,
        bias: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for name, number in {"width": width, "heads": heads}.items():
            if number < 1:
                raise AttnscopeError(f"{name} = {number}: expected 1 or more.")
        if head_width is None:
            if width % heads:
                raise AttnscopeError(
                    f"heads = {heads} with width = {width}: expected a number of heads that "
                    "divides the width, or a head_width."
                )
            head_width = width // heads
        outputs = width if outputs is None else outputs
        for name, number in {"head_width": head_width, "outputs": outputs}.items():
            if number < 1:
                raise AttnscopeError(f"{name} = {number}: expected 1 or more.")
        if not 0 <= dropout < 1:
            raise AttnscopeError(f"dropout = {dropout}: expected a share from 0 to below 1.")
        for name in trained:
            if name not in MATRICES:
                raise AttnscopeError(
                    f"trained = {tuple(trained)}: expected some of {', '.join(MATRICES)}."
                    f"{nearest(str(name), MATRICES)}"
                )
        self.width, self.heads, self.head_width, self.outputs = width, heads, head_width, outputs
        self.dropout, self.eager = dropout, False
        self.use(kernel)

        def uniform(fan_in: int, *shape: int) -> nn.Parameter:
            values = 2 * torch.rand(shape, generator=generator) - 1
            return nn.Parameter(values / math.sqrt(fan_in))

        for name in MATRICES[:3]:
            self.register_parameter(name, uniform(width, heads, width, head_width))
            made = uniform(width, heads, head_width) if bias else None
            self.register_parameter(f"b_{name[-1]}", made)
        self.W_O = uniform(heads * head_width, heads, head_width, outputs)
        self.register_parameter("b_O", uniform(heads * head_width, outputs) if bias else None)
        for name in MATRICES:
            if name not in trained:
                self.get_parameter(name).requires_grad_(False)
                if bias:
                    self.get_parameter(f"b_{name[-1]}").requires_grad_(False)

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self._kernel.name

    @kernel.setter
    def kernel(self, name: str) -> None:
        self.use(name)

    @property
    def weighing(self) -> Kernel:
        """The kernel itself."""
        return self._kernel

    def use(self, kernel: str | Kernel) -> None:
        """Exchange the kernel, for one of a name or for one of one's own; the parameters stay."""
        self._kernel: Kernel = kernel_of(kernel) if isinstance(kernel, str) else kernel

    @property
    def by_hand(self) -> ByHand | None:
        """The kernel's passes written out, unless there are none or :attr:`eager` is set."""
        return None if self.eager else by_hand(self.weighing)

    def _project(self, x: Tensor, which: str) -> Tensor:
        """Return X W_h for all heads, shape ``(batch, head, n, d)``."""
        if x.ndim != 3 or x.shape[-1] != self.width:
            raise AttnscopeError(
                f"input of shape {tuple(x.shape)}: expected (batch, tokens, {self.width})."
            )
        flat = getattr(self, f"W_{which}").transpose(0, 1).reshape(self.width, -1)
        out = (x @ flat).view(*x.shape[:2], self.heads, self.head_width)
        bias = getattr(self, f"b_{which}")
        return (out if bias is None else out + bias).transpose(1, 2)

    def queries_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, each of shape ``(batch, head, n, d)``."""
        return self._project(x, "Q"), self._project(x, "K")

    def weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return S, shape ``(batch, head, n, n)``, before dropout."""
        q, k = self.queries_keys(x)
        return self._kernel.weights(q, k, _for_heads(mask, x))

    def features(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return B, shape ``(batch n, head width)``, with block rows [S_i1 X_i, ..., S_iH X_i].

        With no biases and y_i in R^n the outputs are B w, w_h = W_h^V W_h^O.
        """
        mixed = self.weights(x, mask) @ x[:, None]
        return mixed.transpose(1, 2).reshape(-1, self.heads * self.width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return MH(X), shape ``(batch, n, outputs)``, or ``(batch, n)`` if ``outputs`` is 1.

        Args:
            x: tokens, shape ``(batch, n, width)``.
            mask: true where there is a token, shape ``(batch, n)``.
        """
        q, k = self.queries_keys(x)
        v, keys = self._project(x, "V"), _for_heads(mask, x)
        dropout = self.dropout if self.training else 0.0
        if self.eager:
            heads = attend_eagerly(self._kernel, q, k, v, keys, dropout)
        else:
            heads = self._kernel(q, k, v, keys, dropout)
        out = heads.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)
        if self.b_O is not None:
            out = out + self.b_O
        return out.squeeze(-1) if self.outputs == 1 else out


def _for_heads(mask: Tensor | None, x: Tensor) -> Tensor | None:
    if mask is None:
        return None
    if mask.shape != x.shape[:2] or mask.dtype != torch.bool:
        raise AttnscopeError(
            f"mask of {mask.dtype} and shape {tuple(mask.shape)}: expected booleans of shape "
            f"{tuple(x.shape[:2])}, true where there is a token."
        )
    return mask[:, None]
