"""How fast a loss can fall at most: the largest eigenvalue of the tangent kernel.

With r the residual and J its derivative by everything that learns, f = ½‖r‖² and

    df/dt = -‖Jᵀr‖² >= -2 λ_max(JJᵀ) f.

No bound on the loss can fall faster than that at the start, unless r is the first eigenvector of
JJᵀ, as it is with a single label. Theorem 1 of Song 2024 has the other side of it: W^V alone, and
the smallest singular value.
"""

from __future__ import annotations

import torch
from torch.func import functional_call, jacrev

from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError


def fastest_rate(model: KernelAttention, loss: SquaredError) -> float:
    """Return 2 λ_max(JJᵀ) over the loss's unit, per unit of time; 0 if nothing learns."""
    learns = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    if not learns:
        return 0.0
    fixed = {name: p.detach() for name, p in model.named_parameters() if name not in learns}

    def output(values: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(model, {**fixed, **values}, (loss.x,)).reshape(-1)

    eager, model.eager = model.eager, True
    try:
        parts = jacrev(output)(learns)
    finally:
        model.eager = eager
    jacobian = torch.cat([part.flatten(1) for part in parts.values()], dim=1)
    return 2 * float(torch.linalg.matrix_norm(jacobian, 2).square()) / loss.unit
