"""A training step of the transformer of Song 2024 at n = 64 tokens and batches of 64.

The floor is what its matrix products would take at the rate that this machine reaches on large
square ones, measured in the same turn. Dropout is compared with no dropout, and the step with the
one that PyTorch's own modules and memory make.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F

from attnscope.engines.memory import SETTINGS, keep_freed_memory
from attnscope.engines.parameters import FlatParameters
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.stems import Patches
from harness import Measured, Row, seconds, spread, turns

BATCH, WINDOW, PATCH, MARGIN = 64, 16, 2, 1
TOKENS, WIDTH, HIDDEN, HEADS, HEAD, LAYERS = 64, 64, 128, 2, 32, 2
SQUARE = 512
TURNS, STEPS = 7, 8


def products() -> float:
    """Multiplications and additions in the matrix products of a step, forward and backward.

    A product of two matrices that both learn, or both lead to what does, needs two more of its
    size for its derivative; the first, of patches, one.
    """
    rows = BATCH * TOKENS
    layer = rows * (4 * WIDTH * HEADS * HEAD + 2 * WIDTH * HIDDEN)
    attention = 2 * BATCH * HEADS * TOKENS**2 * HEAD
    stem = rows * (PATCH + 2 * MARGIN) ** 2 * WIDTH
    head = BATCH * (WIDTH * 128 + 128 * 2)
    return 2.0 * (3 * (LAYERS * (layer + attention) + head) + 2 * stem)


def peak() -> float:
    """Return operations a second of a large product, the best of three."""
    a = torch.randn(SQUARE, SQUARE, generator=torch.Generator().manual_seed(0))
    return 2 * SQUARE**3 / min(seconds(lambda: a @ a, 20) for _ in range(3))


def step(kernel: str, dropout: float) -> Callable[[], object]:
    """Return a training step as the engine makes it: loss, gradient, AdamW."""
    stem = partial(Patches, WINDOW, PATCH, margin=MARGIN)
    model = KernelClassifier(
        256, WINDOW**2, 2, kernel=kernel, dropout=dropout, pooling="max", stem=stem
    ).train()
    source = torch.Generator().manual_seed(1)
    ids = torch.randint(256, (BATCH, WINDOW**2), generator=source)
    labels = torch.randint(2, (BATCH,), generator=source)
    flat = FlatParameters(model)
    gradient = torch.empty_like(flat.vector)
    flat.vector.grad = gradient
    adam = torch.optim.Adam([flat.vector], lr=1e-4, weight_decay=0.01, decoupled_weight_decay=True)

    def once() -> None:
        flat.value_and_gradient(lambda m: F.cross_entropy(m(ids), labels), model, gradient)
        adam.step()

    return once


def dropped(kernel: str) -> Measured:
    """Compare steps with and without dropout."""
    keep_freed_memory()
    found = turns(step(kernel, 0.0), step(kernel, 0.1), TURNS, calls=(STEPS, STEPS))
    how = f"{1 / found.ratio:.2f} times; {found.how}"
    return Measured(found.reference, found.ours, how, found.ratios)


def against_products(kernel: str) -> Measured:
    """Compare a step with what its products would take at the machine's peak."""
    keep_freed_memory()
    once = step(kernel, 0.0)
    once(), once()
    floors, took = [], []
    for _ in range(TURNS):
        floors.append(products() / peak())
        took.append(seconds(once, STEPS))
    ratios = tuple(a / b for a, b in zip(floors, took, strict=True))
    rate = products() / median(floors) / 1e9
    how = (
        f"{median(took) / median(floors):.2f} times its products, {products() / 1e9:.2f} GFLOP at "
        f"{rate:.0f} GFLOP/s; {spread(ratios)}"
    )
    return Measured(median(floors), median(took), how, ratios)


def print_step(keep: bool) -> None:
    """Print the seconds of a step in this process."""
    if keep:
        keep_freed_memory()
    once = step("softmax", 0.0)
    once(), once()
    print(median(seconds(once, STEPS) for _ in range(3)))


def memory() -> Measured:
    """Compare steps in processes of their own, for the setting is the process's and for good."""
    shown = {name: value for name, value in os.environ.items() if name not in SETTINGS}

    def one(keep: str) -> float:
        command = [sys.executable, __file__, keep]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=shown)
        return float(done.stdout)

    pairs = [(one("returned"), one("kept")) for _ in range(3)]
    ratios = tuple(slow / fast for slow, fast in pairs)
    slow, fast = (median(side) for side in zip(*pairs, strict=True))
    return Measured(slow, fast, spread(ratios), ratios)


AT = "n = 64, batch 64"
ROWS = (
    *(
        Row(f"song2024_step.dropout_{name}", f"a step with dropout, {kernel}, {AT}",
            "the same step without", "drawing and applying the factors",
            partial(dropped, kernel))
        for name, kernel in (("softmax", "softmax"), ("gaussian", "gaussian"))
    ),
    *(
        Row(f"song2024_step.products_{name}", f"a training step, {kernel}, {AT}",
            "its matrix products at the measured peak", "1: products alone",
            partial(against_products, kernel))
        for name, kernel in (("softmax", "softmax"), ("gaussian", "gaussian"))
    ),
    Row("song2024_step.memory", f"a step with freed memory kept, {AT}",
        "memory returned to the system", "pages made anew", memory),
)  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    print_step(sys.argv[1] == "kept")
