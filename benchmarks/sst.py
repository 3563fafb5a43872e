"""Training on real text, SST-2, against :mod:`reference`: 17,440 words, d = 200, Attn-TC.

Needs the data: ``attnscope data get sst2``, or ATTNSCOPE_DATA.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import cache

import torch
from torch import Tensor, nn

from attnscope.datasets.load import labelled
from attnscope.engines import Flow, Linear, Memory, Observable, Record
from attnscope.models import BagAttention, classifier
from attnscope.models.objective import BagObjective
from attnscope.tasks.text_bags import TextBags, text_bags
from harness import Measured, Row, seconds, turns
from peak import peak_kilobytes
from reference import Reference

LR, DIM, EPOCHS, POINTS = 0.1, 200, 20_000, 200
EAGER_EPOCHS = 10


@cache
def data() -> TextBags:
    return text_bags(labelled("sst2"))


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


def gradient() -> Measured:
    """Time one loss and gradient, both ways in turns, and compare what they give."""
    text = data()
    slow, objective, fast = reference(text), BagObjective(text.train), model(text)
    out = torch.empty(sum(p.numel() for p in fast.parameters()))
    found = turns(slow.gradient, lambda: objective.value_and_gradient(fast, out), 3, calls=(1, 5))
    exact = slow.gradient()
    reached = [out[: exact[0].numel()].view_as(exact[0]), out[exact[0].numel() :][: len(exact[1])]]
    gap = max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(reached, exact, strict=False)
    )
    how = f"gradients of v and s differ by {gap:.0e} of the largest; {found.how}"
    return Measured(found.reference, found.ours, how, found.ratios)


def flow() -> Measured:
    """Time 20,000 epochs by flow against real epochs of the reference, taken around it."""
    text = data()
    slow, objective = reference(text), BagObjective(text.train)
    before = seconds(lambda: slow.step(LR), EAGER_EPOCHS // 2)
    start = time.process_time()
    solution = Flow(lr=LR).run(
        model(text), objective, time=EPOCHS * LR, record=record(text), sink=Memory()
    )
    flow = time.process_time() - start
    step = (before + seconds(lambda: slow.step(LR), EAGER_EPOCHS // 2)) / 2
    how = (
        f"{solution.evaluations} gradients, {solution.rejected} rejected steps, {POINTS} points; "
        f"reference {1e3 * step:.0f} ms an epoch, {EAGER_EPOCHS} timed"
    )
    return Measured(EPOCHS * step, flow, how)


def memory() -> Measured:
    """Measure the peak resident size of a process that does the flow and keeps all readings."""
    data()
    command = [sys.executable, __file__]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(1024, int(done.stdout) / 1024, "scores and norms of all words kept")


EAGER = "padded v[X], autograd, PyTorch"
ROWS = (
    Row("sst.gradient", "one loss and gradient on SST-2", EAGER, "memory bandwidth", gradient),
    Row(
        "sst.flow", "20,000 epochs of Attn-TC on SST-2 by flow", EAGER, "number of gradients", flow
    ),
    Row(
        "sst.memory", "peak memory of that flow", "1 GB", "200 readings of all words", memory, "MB"
    ),
)


if __name__ == "__main__":
    torch.set_num_threads(1)
    text = data()
    Flow(lr=LR).run(
        model(text), BagObjective(text.train), time=EPOCHS * LR, record=record(text), sink=Memory()
    )
    print(peak_kilobytes())
