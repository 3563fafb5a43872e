"""What the studies of Song 2024 share: the paper, how regression is read, tables by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from torch import nn

from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError
from attnscope.report import Cell, Table

CITATION = (
    "Song, Han, Zhang, Ding, Hong. Unraveling the Gradient Descent Dynamics of Transformers. "
    "NeurIPS 2024."
)
KERNELS = ("softmax", "gaussian")
SOLVED = -6.0
"""log10 of the relative loss below which a problem counts as solved."""
SLACK = 1e-6
"""Rounding and the solver's tolerance, in the logarithm of a loss."""
CUT = 1e-11
"""Relative loss below which the solver's tolerance speaks, and bounds are not judged."""


def layer(module: nn.Module) -> KernelAttention:
    """Return a model as what it is."""
    return cast(KernelAttention, module)


def least_loss(model: KernelAttention, loss: SquaredError) -> float:
    """Return the relative loss that no softmax weights can get below, with W^V and W^O fixed.

    u_h = X_i W_h^V W_h^O stays, and an output lies between Σ_h min_j u_hj and Σ_h max_j u_hj. A
    label outside leaves its distance, squared, for ever. Not known for other kernels: NaN.
    """
    if model.kernel != "softmax":
        return float(np.nan)
    u = (loss.x[:, None] @ (model.W_V @ model.W_O)).squeeze(-1).detach()
    low, high = u.amin(dim=2).sum(dim=1), u.amax(dim=2).sum(dim=1)
    beyond = (loss.y - high[:, None]).clamp(min=0) + (low[:, None] - loss.y).clamp(min=0)
    return float(beyond.square().sum() / loss.y.square().sum())


def tabulate(name: str, title: str, rows: Sequence[Mapping[str, Cell]]) -> Table:
    """Return a table whose rows say what stands in which column."""
    return Table(name, title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
