"""Measure Gaussian attention against the form that one would write down first.

Prints one table. Everything runs on one thread; both sides see the same numbers, take turns, and
ratios are of processor times within one turn. Memory is the growth of the largest resident size
over a forward and a backward pass, each side in a fresh process.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from attnscope.models.kernels import kernel
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


def speed_row(ours: str, theirs: str, repeats: int = 3) -> tuple[str, str]:
    """Time both sides in turns, forward and backward."""
    parts, fast_s, slow_s, gap = inputs(), [], [], 0.0
    for _ in range(repeats):
        start = time.process_time()
        fast = both_passes(SIDES[ours], parts)
        middle = time.process_time()
        slow = both_passes(SIDES[theirs], parts)
        fast_s.append(middle - start)
        slow_s.append(time.process_time() - middle)
        pairs = zip(fast, slow, strict=True)
        gap = max(gap, *(float((a - b).abs().max() / b.abs().max()) for a, b in pairs))
    ratios = [slow / fast for slow, fast in zip(slow_s, fast_s, strict=True)]
    how = (
        f"{1e3 * median(fast_s):.0f} ms against {1e3 * median(slow_s):.0f} ms; largest difference "
        f"of output or gradient, over the largest entry, {gap:.1e}; {repeats} ratios from "
        f"{min(ratios):.3g} to {max(ratios):.3g}"
    )
    return f"{median(ratios):.1f}x", how


def grown_megabytes(side: str) -> float:
    """Measure one side in a process of its own."""
    command = [sys.executable, __file__, "--peak", side]
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


def memory_row(ours: str, theirs: str) -> tuple[str, str]:
    """Compare the peaks of both sides."""
    small, large = grown_megabytes(ours), grown_megabytes(theirs)
    square = BATCH * HEADS * LENGTH**2 * 4 / 2**20
    how = (
        f"{small:.0f} MB against {large:.0f} MB; one n × n matrix for all heads is {square:.0f} MB"
    )
    return f"{small / large:.3f}", how


def main() -> None:
    rows: list[tuple[str, str, Callable[[], tuple[str, str]]]] = [
        ("Gaussian, speed", ">= 5x", lambda: speed_row("gaussian", "broadcast")),
        ("Gaussian, memory", "<= 1/4", lambda: memory_row("gaussian", "broadcast")),
        ("Softmax, speed", "-", lambda: speed_row("softmax", "unfused")),
        ("Softmax, memory", "-", lambda: memory_row("softmax", "unfused")),
    ]
    console = Console(width=None if sys.stdout.isatty() else 150)
    title = (
        f"One thread, float32, forward and backward: n = {LENGTH}, d = {WIDTH}, H = {HEADS}, "
        f"batch {BATCH}"
    )
    table = Table("What", "Measured", "Target", "How", title=title)
    for name, target, measure in rows:
        with console.status(name):
            measured, how = measure()
        table.add_row(name, measured, target, how)
    console.print(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--peak"]:
        print_peak(sys.argv[2])
    else:
        main()
