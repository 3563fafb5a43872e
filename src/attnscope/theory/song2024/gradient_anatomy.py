"""Where a gradient gets lost: its norm by matrix, and the Jacobian of the weights.

The gradient by W^Q and W^K goes through the derivative of a row s of S by its exponents:

    softmax:   diag(s) - ssᵀ,   squared Frobenius norm Σs² - 2Σs³ + (Σs²)²,
    Gaussian:  diag(s),         squared Frobenius norm Σs².

The first vanishes when a row attends to one token alone; the second when all weights of the row
are small, that is when the query is far from every key. The outputs vanish then as well.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import MATRICES, KernelAttention
from attnscope.models.kernel_regression import SquaredError


def gradient_norms(model: KernelAttention, loss: SquaredError) -> Tensor:
    """Return ‖∂f/∂W‖_F for W^Q, W^K, W^V and W^O, also of those that do not learn."""
    values = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    # Readings are taken while gradients are off.
    with torch.enable_grad():
        out = functional_call(model, values, (loss.x,))
        f = 0.5 / loss.unit * (out - loss.y).square().sum()
        parts = torch.autograd.grad(f, [values[name] for name in MATRICES])
    return torch.stack([part.norm() for part in parts])


def jacobian_norm(weights: Tensor, kernel: str) -> Tensor:
    """Return the Frobenius norm of the derivative of every row of S by its exponents.

    Args:
        weights: S, shape ``(..., n, n)``.
        kernel: ``"softmax"``, ``"normalised-gaussian"`` or ``"gaussian"``.

    Returns:
        Shape ``(..., n)``. For rows that sum to one it is below 1.
    """
    squares = weights.square().sum(dim=-1)
    if kernel == "gaussian":
        return squares.sqrt()
    if kernel not in ("softmax", "normalised-gaussian"):
        raise AttnscopeError(
            f"kernel = {kernel!r}: expected softmax, normalised-gaussian or gaussian."
        )
    # Rounding may leave a tiny negative number where a row attends to one token alone.
    cubes = weights.pow(3).sum(dim=-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def saturated_share(weights: Tensor, kernel: str, least: float = 0.01) -> Tensor:
    """Return the share of rows whose Jacobian norm is below ``least``."""
    return (jacobian_norm(weights, kernel) < least).to(weights.dtype).mean()
