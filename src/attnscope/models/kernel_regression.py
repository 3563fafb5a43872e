"""The regression of Song 2024: one layer of kernel attention and the sum of squared errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import MATRICES, KernelAttention


class SquaredError:
    """f = ½ Σ_i ‖MH(X_i) - y_i‖², problem (5) of Song 2024, as a loss of the model alone.

    The constant before the sum is not legible in the poster; with ½ its Theorem 1 comes out as
    printed, see :mod:`attnscope.theory.song2024.certificate`.

    Args:
        x: sequences, shape ``(N, n, D)``.
        y: labels, shape ``(N, n)``, or ``(N, n, outputs)``.
        unit: the loss is divided by it. Gradient flow takes ``unit`` times as long for the same
            path, so that starts of different scale can share an axis of time.
        mask: true where there is a token, shape ``(N, n)``; labels of padding do not count.
    """

    def __init__(self, x: Tensor, y: Tensor, unit: float = 1.0, mask: Tensor | None = None) -> None:
        if x.ndim != 3 or y.shape[:2] != x.shape[:2]:
            raise AttnscopeError(
                f"x of shape {tuple(x.shape)} and y of shape {tuple(y.shape)}: expected (N, n, D) "
                "and (N, n) or (N, n, outputs)."
            )
        if not 0 < unit < math.inf:
            raise AttnscopeError(f"unit = {unit}: expected a finite number above 0.")
        self.x, self.y, self.unit, self.mask = x, y, unit, mask
        self._tokens = np.ascontiguousarray(x.detach().cpu().reshape(-1, x.shape[-1]).numpy())
        self._labels = y.detach().cpu().numpy()[..., None]

    def residual(self, model: nn.Module) -> Tensor:
        """Return MH(X) - y, of real tokens alone if there is a mask."""
        if self.mask is None:
            return cast(Tensor, model(self.x)) - self.y
        # Chosen, not multiplied by 0: labels of padding may be anything, NaN too.
        return cast(Tensor, model(self.x, self.mask))[self.mask] - self.y[self.mask]

    def __call__(self, model: nn.Module) -> Tensor:
        """Return f over the unit."""
        return 0.5 / self.unit * self.residual(model).square().sum()

    def value_and_gradient(self, model: nn.Module, out: Tensor) -> float | None:
        """Write the gradient into ``out`` and return the loss, an order faster than autograd.

        With w_h = W_h^V W_h^O, u = X w_h, o = S_h u, and r the residual, the derivative of f by
        the exponents is S_kj r_k (u_j - o_k) for softmax and S_kj r_k u_j for Gaussian weights.

        Returns:
            The loss, or ``None`` if this has to go through autograd: other kernels and layers.
        """
        if (
            type(model) is not KernelAttention
            or model.kernel not in ("softmax", "gaussian")
            or model.outputs != 1
            or model.b_O is not None
            or self.mask is not None
            or not (out.is_cpu and out.is_contiguous())
        ):
            return None
        value, gradients = self._gradients(model)
        start, flat = 0, out.numpy()
        for name, p in model.named_parameters():
            if p.requires_grad:
                np.divide(gradients[name].ravel(), self.unit, out=flat[start : start + p.numel()])
                start += p.numel()
        return value / self.unit

    def _gradients(self, model: KernelAttention) -> tuple[float, dict[str, np.ndarray]]:
        """Return f and its gradient by the matrices that learn; arrays begin with (head, N).

        NumPy needs a third of the time that PyTorch needs for matrices as small as these.
        """
        n, d, heads = self.x.shape[1], model.head_width, model.heads
        tokens, root = self._tokens, math.sqrt(d)
        w_q, w_k, w_v, w_o = (model.get_parameter(name).detach().numpy() for name in MATRICES)
        q = (tokens @ w_q).reshape(heads, -1, n, d)
        k = (tokens @ w_k).reshape(heads, -1, n, d)
        u = (tokens @ (w_v @ w_o)).reshape(heads, -1, 1, n)
        s = q @ k.swapaxes(2, 3)
        softmax = model.kernel == "softmax"
        if softmax:
            s -= s.max(axis=3, keepdims=True)
        else:
            s -= 0.5 * np.einsum("hikd,hikd->hik", q, q)[..., None]
            s -= 0.5 * np.einsum("hikd,hikd->hik", k, k)[..., None, :]
            np.minimum(s, 0.0, out=s)
        s /= root
        np.exp(s, out=s)
        if softmax:
            s /= s.sum(axis=3, keepdims=True)
        o = s @ u.swapaxes(2, 3)
        r = o.sum(axis=0) - self._labels
        value = 0.5 * float(np.vdot(r, r))
        gradients: dict[str, np.ndarray] = {}
        if model.W_V.requires_grad or model.W_O.requires_grad:
            du = (s.swapaxes(2, 3) @ r).reshape(heads, -1, 1)
            dw = tokens.T @ du
            gradients = {"W_V": dw @ w_o.swapaxes(1, 2), "W_O": w_v.swapaxes(1, 2) @ dw}
        if model.W_Q.requires_grad or model.W_K.requires_grad:
            s *= r / root
            s *= u - o if softmax else u
            dq, dk = s @ k, s.swapaxes(2, 3) @ q
            if not softmax:
                dq -= q * s.sum(axis=3)[..., None]
                dk -= k * s.sum(axis=2)[..., None]
            gradients["W_Q"] = tokens.T @ dq.reshape(heads, -1, d)
            gradients["W_K"] = tokens.T @ dk.reshape(heads, -1, d)
        return value, gradients

    def relative(self, model: nn.Module) -> Tensor:
        """Return f/(½‖y‖²): 1 is what an output of zero leaves."""
        labels = self.y if self.mask is None else self.y[self.mask]
        return self.residual(model).square().sum() / labels.square().sum()


def kernel_regression(
    width: int,
    heads: int,
    head_width: int,
    *,
    kernel: str = "softmax",
    trained: Sequence[str] = ("W_Q", "W_K", "W_V"),
    query_scale: float = 1.0,
    value_scale: float = 1.0,
    output_scale: float = 1.0,
    seed: int = 0,
) -> KernelAttention:
    """Return attention with one output a token, in double precision, with a start by scales.

    Entries are normal with standard deviation ``query_scale``/√D in W^Q and W^K,
    ``value_scale``/√D in W^V and ``output_scale``/√(Hd) in W^O: with all scales 1 and X ~ N(0, 1)
    queries, keys, values and the sum over values have entries of size 1. The same seed gives the
    same directions at every scale and for every kernel.
    """
    scales = {"query_scale": query_scale, "value_scale": value_scale, "output_scale": output_scale}
    for name, scale in scales.items():
        if not 0 <= scale < math.inf:
            raise AttnscopeError(f"{name} = {scale}: expected a finite number, 0 or more.")
    model = KernelAttention(width, heads, head_width, 1, kernel=kernel, trained=trained).double()
    source = torch.Generator().manual_seed(seed)
    sizes = {
        "W_Q": query_scale / math.sqrt(width),
        "W_K": query_scale / math.sqrt(width),
        "W_V": value_scale / math.sqrt(width),
        "W_O": output_scale / math.sqrt(heads * head_width),
    }
    with torch.no_grad():
        for name, size in sizes.items():
            parameter = model.get_parameter(name)
            drawn = torch.randn(parameter.shape, dtype=torch.float64, generator=source)
            parameter.copy_(size * drawn)
    return model
