"""Measure a landscape of 51 × 51 points against one forward pass a point.

Prints one table. Everything runs on one thread. The model is the transformer of Song 2024 on short
texts, trained for a few steps so that its landscape is not flat; both sides are in evaluation mode,
keep no graph and see the same sequences.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import FixedLoss
from attnscope.probes.landscapes.directions import move, random_directions, still
from attnscope.probes.landscapes.landscape import landscape
from attnscope.tasks.sequence_rows import Batch

LENGTH, SEQUENCES, STEPS = 128, 16, 40
AXIS = np.linspace(-1.0, 1.0, 51)


def made_up(count: int, seed: int) -> Batch:
    """Texts of random letters; those of label 1 have more of the first ten."""
    source = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (count,), generator=source)
    ids = torch.randint(1, 97, (count, LENGTH), generator=source)
    few = torch.rand(count, LENGTH, generator=source) < 0.15 * labels[:, None]
    return Batch(torch.where(few, ids % 10 + 1, ids), None, labels)


def trained(kernel: str) -> KernelClassifier:
    model = KernelClassifier(257, LENGTH, 2, kernel=kernel, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        batch = made_up(16, step)
        loss = F.cross_entropy(model(batch.ids), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def one_pass_a_point(model: KernelClassifier, loss: FixedLoss) -> tuple[np.ndarray, float]:
    """Return the losses, and the processor time in seconds."""
    directions = random_directions(model, ("W_Q", "W_K"))
    found = np.empty((len(AXIS), len(AXIS)))
    began = time.process_time()
    with still(model) as start, torch.inference_mode():
        for i, b in enumerate(AXIS):
            for j, a in enumerate(AXIS):
                move(model, start, directions, (a, b))
                found[i, j] = loss(model).item()
    return found, time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    table = Table(title=f"{len(AXIS)} × {len(AXIS)} points, {SEQUENCES} texts of {LENGTH} tokens")
    for name in ("kernel", "one pass a point", "landscape()", "ratio", "passes", "largest error"):
        table.add_column(name, justify="right")
    kernels = sys.argv[1:] or ["softmax", "gaussian"]
    for kernel in kernels:
        model, loss = trained(kernel), FixedLoss(made_up(SEQUENCES, 10_000))
        directions = random_directions(model, ("W_Q", "W_K"))
        began = time.process_time()
        fast = landscape(model, loss, directions, AXIS, AXIS)
        ours = time.process_time() - began
        slow, theirs = one_pass_a_point(model, loss)
        error = float(np.abs(fast.loss / slow - 1).max())
        table.add_row(
            kernel,
            f"{theirs:.1f} s",
            f"{ours:.1f} s",
            f"{theirs / ours:.2f}",
            f"{fast.evaluations:,} of {slow.size:,}",
            f"{error:.1e}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
