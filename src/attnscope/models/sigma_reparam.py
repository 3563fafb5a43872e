r"""σReparam of Zhai et al. 2023: a weight whose spectral norm is one number that is learned.

.. math::

    \hat W = \frac{\gamma}{\sigma(W)} W ,

with :math:`\sigma(W)` the largest singular value. It is estimated by one step of power iteration at
every training step: :math:`\sigma = u^\top W v`, differentiated through W but not through u and v.
Attention logits cannot grow faster than the gains γ of queries and keys, which keeps entropy from
collapsing at learning rates at which plain weights do::

    from attnscope.models import sigma_reparam
    sigma_reparam(model)  # every nn.Linear in it; then make the optimizer
    ...
    fold_sigma_reparam(model)  # ordinary weights again, for saving
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from attnscope.errors import AttnscopeError

Gain = Literal["norm", "one"]


class SigmaReparam(nn.Module):
    """The parametrization of one matrix: its gain, and the vectors of the power iteration.

    Args:
        weight: the matrix as it is now; more than two axes are flattened behind the first.
        gain: where γ begins: at the ``"norm"`` of the weight, so that nothing changes at first, or
            at ``"one"``.

    Raises:
        AttnscopeError: the weight is no matrix, or its norm is 0 or not finite.
    """

    def __init__(self, weight: Tensor, gain: Gain = "norm") -> None:
        super().__init__()
        if weight.ndim < 2:
            raise AttnscopeError(
                f"a weight of shape {tuple(weight.shape)}: expected a matrix, which has a spectral "
                "norm."
            )
        left, values, right = torch.linalg.svd(_wide(weight), full_matrices=False)
        sigma = values[0]
        if not 0 < float(sigma) < float("inf"):
            raise AttnscopeError(
                f"a weight of shape {tuple(weight.shape)} with the spectral norm {float(sigma):g}: "
                "expected a finite one above 0, since the weight is divided by it."
            )
        start = sigma if gain == "norm" else torch.ones_like(sigma)
        self.gain = nn.Parameter(start.to(weight.dtype).clone())
        self.register_buffer("u", left[:, 0].clone())
        self.register_buffer("v", right[0].clone())
        self.u: Tensor
        self.v: Tensor

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight with the spectral norm γ."""
        wide = _wide(weight)
        if self.training and torch.is_grad_enabled():
            with torch.no_grad():
                self.u.copy_(nn.functional.normalize(wide.detach() @ self.v, dim=0))
                self.v.copy_(nn.functional.normalize(wide.detach().T @ self.u, dim=0))
        # The backward pass needs u and v as they are now, and the next call writes into them.
        sigma = self.u.clone() @ (wide @ self.v.clone())
        return (self.gain / sigma).to(weight.dtype) * weight


def sigma_reparam(
    model: nn.Module,
    *,
    gain: Gain = "norm",
    where: Callable[[str, nn.Module], bool] = lambda name, module: isinstance(module, nn.Linear),
) -> nn.Module:
    """Reparametrize the weights of a model in place, and return it.

    Make the optimizer afterwards: the gains are new parameters.

    Args:
        model: any module.
        gain: where the gains begin, see :class:`SigmaReparam`.
        where: which modules; it is asked with their names. Each must have a ``weight``.

    Raises:
        AttnscopeError: there is no such module, or one is reparametrized already.
    """
    chosen = [(name, module) for name, module in model.named_modules() if where(name, module)]
    if not chosen:
        raise AttnscopeError(
            f"{type(model).__name__} has no module to reparametrize: expected an nn.Linear, or "
            "where= to choose others."
        )
    for name, module in chosen:
        if parametrize.is_parametrized(module, "weight"):
            raise AttnscopeError(
                f"the weight of '{name}' has a parametrization already: expected a plain one."
            )
    for _, module in chosen:
        made = SigmaReparam(module.weight.detach(), gain)
        parametrize.register_parametrization(module, "weight", made)
    return model


def fold_sigma_reparam(model: nn.Module) -> nn.Module:
    """Make plain weights of reparametrized ones, with the values they have now, in place."""
    for module in model.modules():
        if parametrize.is_parametrized(module, "weight") and any(
            isinstance(each, SigmaReparam)
            for each in module.parametrizations.weight  # type: ignore[union-attr]
        ):
            training = module.training
            module.eval()
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
            module.train(training)
    return model


def _wide(weight: Tensor) -> Tensor:
    """Return the weight as a matrix in single precision or more."""
    return weight.flatten(1).to(torch.promote_types(weight.dtype, torch.float32))
