"""A landscape of 51 × 51 points against one forward pass a point.

The model is the transformer of Song 2024 on short
texts, trained for a few steps so that its landscape is not flat; both sides are in evaluation mode,
keep no graph and see the same sequences. Passes of the reference take equally long, so that every
ninth of them is timed, and values are compared there.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import FixedLoss
from attnscope.probes.landscapes.directions import move, random_directions, still
from attnscope.probes.landscapes.landscape import landscape
from attnscope.tasks.sequence_rows import Batch
from harness import Measured, Row

LENGTH, SEQUENCES, STEPS = 128, 16, 40
AXIS = np.linspace(-1.0, 1.0, 51)
THIRD = 3


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
    """Return the losses at every ninth point, and the processor time for all points."""
    directions = random_directions(model, ("W_Q", "W_K"))
    few = AXIS[::THIRD]
    found = np.empty((len(few), len(few)))
    began = time.process_time()
    with still(model) as start, torch.inference_mode():
        for i, b in enumerate(few):
            for j, a in enumerate(few):
                move(model, start, directions, (a, b))
                found[i, j] = loss(model).item()
    return found, (time.process_time() - began) * len(AXIS) ** 2 / found.size


def compare(kernel: str) -> Measured:
    model, loss = trained(kernel), FixedLoss(made_up(SEQUENCES, 10_000))
    directions = random_directions(model, ("W_Q", "W_K"))
    began = time.process_time()
    fast = landscape(model, loss, directions, AXIS, AXIS)
    ours = time.process_time() - began
    slow, theirs = one_pass_a_point(model, loss)
    error = float(np.abs(fast.loss[::THIRD, ::THIRD] / slow - 1).max())
    how = f"{fast.evaluations:,} passes of {fast.loss.size:,}; largest relative error {error:.1e}"
    return Measured(theirs, ours, how)


ROWS = tuple(
    Row(
        f"song2024_landscape.{kernel}",
        f"landscape of 51 × 51 points, {kernel}",
        "one forward pass a point",
        "number of passes",
        partial(compare, kernel),
    )
    for kernel in ("softmax", "gaussian")
)
