"""Measure training on real text, SST-2, against :mod:`reference`; see README.md beside this.

Needs the data: ``attnscope data get sst2``, or ATTNSCOPE_DATA.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from attnscope.datasets.load import labelled
from attnscope.engines import Flow, Linear, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import BagAttention, classifier
from attnscope.models.objective import BagObjective
from attnscope.tasks.text_bags import TextBags, text_bags
from peak import peak_kilobytes
from reference import Reference

LR, DIM, EPOCHS, POINTS = 0.1, 200, 20_000, 200
REPEATS, REFERENCE_EPOCHS = 5, 20


def model(text: TextBags) -> BagAttention:
    """Build Attn-TC, the same at every call."""
    source = torch.Generator().manual_seed(0)
    head = classifier("TC", DIM, len(text.classes), generator=source)
    return BagAttention(len(text.words), DIM, head, generator=source)


def reference(text: TextBags) -> Reference:
    """Build the reference with the parameters of :func:`model`."""
    start = model(text)
    trained = {
        "v": start.embedding.data,
        "s": start.scores().data,
        "U": start.classifier.weight.data,
    }
    return Reference(text.train.ids, text.train.labels, trained, {}, text.train.mask)


def record(text: TextBags) -> list[Record]:
    """Read what Fig 7 and the SEN curves of the whole vocabulary need."""
    dev = BagObjective(text.dev)

    def bag(m: nn.Module) -> BagAttention:
        assert isinstance(m, BagAttention)
        return m

    def norms(m: nn.Module) -> Tensor:
        return bag(m).embeddings().norm(dim=1)

    read = (
        Observable("dev_loss", lambda m: dev(bag(m))),
        Observable("score", lambda m: bag(m).scores().clone(), ("word",)),
        Observable("norm", norms, ("word",)),
    )
    return [Record(read, Linear(POINTS))]


def gradient_row(text: TextBags) -> tuple[str, str]:
    """Time one loss and gradient, both ways in turns, and compare what they give."""
    slow, objective, fast = reference(text), BagObjective(text.train), model(text)
    out = torch.empty(sum(p.numel() for p in fast.parameters()))
    ratios, slows, fasts = [], [], []
    for _ in range(REPEATS + 1):
        start = time.process_time()
        exact = slow.gradient()
        middle = time.process_time()
        for _ in range(5):
            objective.value_and_gradient(fast, out)
        end = time.process_time()
        slows.append(middle - start)
        fasts.append((end - middle) / 5)
        ratios.append(slows[-1] / fasts[-1])
    reached = [out[: exact[0].numel()].view_as(exact[0]), out[exact[0].numel() :][: len(exact[1])]]
    gap = max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(reached, exact, strict=False)
    )
    how = (
        f"{1e3 * median(fasts[1:]):.1f} against {1e3 * median(slows[1:]):.0f} ms; gradients of v "
        f"and s differ by {gap:.0e} of the largest; "
        f"ratios {min(ratios[1:]):.1f} to {max(ratios[1:]):.1f}"
    )
    return f"{median(ratios[1:]):.1f}x", how


def flow_rows(text: TextBags) -> list[tuple[str, str, str, str]]:
    """Time 20,000 epochs by flow against 20 real epochs of the reference, taken around it."""
    slow, objective = reference(text), BagObjective(text.train)
    start = time.process_time()
    for _ in range(REFERENCE_EPOCHS // 2):
        slow.step(LR)
    before = time.process_time() - start
    start = time.process_time()
    solution = Flow(lr=LR).run(
        model(text), objective, time=EPOCHS * LR, record=record(text), sink=Memory()
    )
    flow = time.process_time() - start
    start = time.process_time()
    for _ in range(REFERENCE_EPOCHS // 2):
        slow.step(LR)
    step = (before + time.process_time() - start) / REFERENCE_EPOCHS
    how = f"{solution.evaluations} evaluations, {solution.rejected} rejected steps, {POINTS} points"
    return [
        (f"{EPOCHS:,} epochs of Attn-TC by flow", f"{flow:.1f} s", "< 60 s", how),
        (
            "the same, against the reference",
            f"{EPOCHS * step / flow:.0f}x",
            ">= 200x",
            f"reference {1e3 * step:.0f} ms an epoch, {REFERENCE_EPOCHS} timed, times {EPOCHS:,}",
        ),
    ]


def memory_row() -> tuple[str, str]:
    """Measure the peak resident size of a process that does the flow and keeps all readings."""
    command = [sys.executable, __file__, "flow"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return f"{int(done.stdout) / 1024:.0f} MB", f"{POINTS} points of scores and norms of all words"


def main() -> None:
    try:
        text = text_bags(labelled("sst2"))
    except AttnscopeError as error:
        sys.exit(f"skipped: {error}")
    console = Console(width=None if sys.stdout.isatty() else 150)
    table = Table("What", "Measured", "Target", "How", title="One thread, SST-2, d = 200")
    measured, how = gradient_row(text)
    table.add_row("one loss and gradient, against padded v[X]", measured, ">= 8x", how)
    for row in flow_rows(text):
        table.add_row(*row)
    measured, how = memory_row()
    table.add_row("peak memory of that flow", measured, "< 1 GB", how)
    console.print(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["flow"]:
        text = text_bags(labelled("sst2"))
        Flow(lr=LR).run(
            model(text),
            BagObjective(text.train),
            time=EPOCHS * LR,
            record=record(text),
            sink=Memory(),
        )
        print(peak_kilobytes())
    else:
        main()
