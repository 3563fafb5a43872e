"""Gaussian attention against the form that one would write down first, forward and backward.

Memory is the growth of the largest resident size over both passes, each side in a fresh process.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from attnscope.models.kernels import kernel
from harness import Measured, Row, turns
from peak import peak_kilobytes

BATCH, HEADS, LENGTH, WIDTH = 4, 2, 1024, 32
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def broadcast(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Gaussian attention by all differences of a query and a key, n × n × d numbers."""
    distance = (q[..., :, None, :] - k[..., None, :, :]).pow(2).sum(dim=-1)
    return torch.exp(-distance / (2 * math.sqrt(q.shape[-1]))) @ v


def unfused_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax attention as one would write it down first."""
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


SIDES: dict[str, Attention] = {
    "gaussian": kernel("gaussian"),
    "broadcast": broadcast,
    "softmax": kernel("softmax"),
    "unfused": unfused_softmax,
}


def inputs(batch: int = BATCH) -> list[Tensor]:
    source = torch.Generator().manual_seed(0)
    shape = (batch, HEADS, LENGTH, WIDTH)
    return [torch.randn(shape, generator=source).requires_grad_() for _ in range(3)]


def both_passes(attend: Attention, parts: list[Tensor]) -> tuple[Tensor, ...]:
    out = attend(*parts)
    return out.detach(), *torch.autograd.grad(out, parts, torch.ones_like(out))


def speed(ours: str, theirs: str, repeats: int = 3) -> Measured:
    """Time both sides in turns, forward and backward."""
    parts = inputs()
    fast, slow = both_passes(SIDES[ours], parts), both_passes(SIDES[theirs], parts)
    gap = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(fast, slow, strict=True))
    found = turns(
        lambda: both_passes(SIDES[theirs], parts),
        lambda: both_passes(SIDES[ours], parts),
        repeats,
        warm=False,
    )
    # Two products forward and four backward, of n × n × d each.
    rate = 6 * 2 * BATCH * HEADS * LENGTH**2 * WIDTH / found.ours / 1e9
    how = (
        f"{rate:.0f} GFLOP/s; largest difference of output or gradient, over the largest entry, "
        f"{gap:.1e}; {found.how}"
    )
    return Measured(found.reference, found.ours, how, found.ratios)


def grown_megabytes(side: str) -> float:
    """Measure one side in a process of its own."""
    command = [sys.executable, __file__, side]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def print_peak(side: str) -> None:
    """Print by how much forward and backward raised the peak, in megabytes.

    A pass over a few tokens first: what a library allocates once does not count.
    """
    both_passes(SIDES[side], [part[:1, :, :8].detach().requires_grad_() for part in inputs(1)])
    parts = inputs()
    before = peak_kilobytes()
    both_passes(SIDES[side], parts)
    print((peak_kilobytes() - before) / 1024)


def memory(ours: str, theirs: str) -> Measured:
    """Compare the peaks of both sides."""
    square = BATCH * HEADS * LENGTH**2 * 4 / 2**20
    how = f"one n × n matrix for all heads is {square:.0f} MB"
    return Measured(grown_megabytes(theirs), grown_megabytes(ours), how)


SPREAD, UNFUSED = "(q - k)² spread out, PyTorch", "softmax(q k') v, PyTorch"
SIZE = f"n = {LENGTH}"
ROWS = (
    Row("song2024_kernels.gaussian", f"Gaussian attention, {SIZE}", SPREAD, "memory bandwidth",
        lambda: speed("gaussian", "broadcast")),
    Row("song2024_kernels.gaussian_memory", f"Gaussian attention, peak memory, {SIZE}", SPREAD,
        "an n × n matrix", lambda: memory("gaussian", "broadcast"), "MB"),
    Row("song2024_kernels.softmax", f"softmax attention, {SIZE}", UNFUSED, "matrix-product peak",
        lambda: speed("softmax", "unfused")),
    Row("song2024_kernels.softmax_memory", f"softmax attention, peak memory, {SIZE}", UNFUSED,
        "the output", lambda: memory("softmax", "unfused"), "MB"),
)  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    print_peak(sys.argv[1])
