"""Dropout that costs little beside the matrix products of a step.

PyTorch draws a number in double precision for every entry, one after the other, and so dropout
takes nearly as long as everything else in a small transformer. Here 16 random bits decide: NumPy's
SFC64 makes them 64 at a time, begun anew at every call with a number from PyTorch's global source.
So a run is as reproducible as before, and a checkpoint that keeps PyTorch's source keeps this.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

BITS = 16
"""Random bits of an entry; a share is rounded to 2⁻¹⁶."""


def realised(share: float) -> float:
    """Return the share that is left out, rounded to 16 bits, but neither nothing nor all.

    Example:
        >>> realised(0.25), round(realised(0.1), 6)
        (0.25, 0.100006)
    """
    return min(max(round(share * 2**BITS), 1), 2**BITS - 1) / 2**BITS


def kept(x: Tensor, share: float) -> Tensor:
    """Return what multiplies each entry of ``x``: 0 with probability ``share``, else 1/(1 - share).

    Args:
        x: of whose shape, type and device the result is.
        share: above 0 and below 1; on the CPU it is that of :func:`realised`, so that the mean of
            what is dropped stays what it was.
    """
    if x.device.type != "cpu":
        return torch.empty_like(x).bernoulli_(1 - share).div_(1 - share)
    seed, share = int(torch.randint(2**62, ())), realised(share)
    raw = np.random.SFC64(seed).random_raw(-(-x.numel() * BITS // 64))
    stays = raw.view(np.uint16)[: x.numel()] >= round(share * 2**BITS)
    kind = np.float64 if x.dtype == torch.float64 else np.float32
    factor = torch.from_numpy(np.multiply(stays, kind(1 / (1 - share)))).view(x.shape)
    return factor if factor.dtype == x.dtype else factor.to(x.dtype)


def drop(x: Tensor, share: float, training: bool = True) -> Tensor:
    """Return ``x`` with a share of its entries left out and the others larger; ``x`` at rest."""
    return x * kept(x, share) if training and share else x
