"""Lu 2021's own task, against training as one would write it down first, :mod:`reference`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Descent, Flow, Linear, Memory, Observable, Record
from attnscope.engines.parameters import flattened
from attnscope.models import BagAttention, TwoLayer, classifier
from attnscope.models.classifiers import ClassifierKind
from attnscope.models.objective import BagObjective
from attnscope.tasks import TopicWords
from harness import Measured, Row, Skip, seconds, spread, turns
from peak import peak_kilobytes
from reference import Reference

LR = 0.1
TASK = TopicWords()
DIM = 15
WORDS = TASK.topic_words
STEPS = 50
"""Real steps of the reference that are timed around a flow."""


class Case:
    """One model on the task, as attnscope has it and as the reference has it."""

    def __init__(self, kind: ClassifierKind, std: float = 1e-3) -> None:
        self.kind, self.std = kind, std
        self.bags = TASK.sample(0).train
        self.objective = BagObjective(self.bags)

    def model(self, dtype: torch.dtype = torch.float32) -> BagAttention:
        """Build the model, the same at every call."""
        generator = torch.Generator().manual_seed(0)
        head = classifier(self.kind, DIM, TASK.topics, generator=generator)
        model = BagAttention(TASK.vocabulary, DIM, head, std=self.std, generator=generator)
        return model.to(dtype)

    def reference(self, dtype: torch.dtype = torch.float32) -> Reference:
        """Build the reference with the parameters of :meth:`model`."""
        model = self.model(dtype)
        head = model.classifier
        trained = {"v": model.embedding.data, "s": model.scores().data}
        if self.kind == "FC":
            return Reference(self.bags.ids, self.bags.labels, trained, {"U": head.weight})
        trained["U"] = head.weight.data
        if isinstance(head, TwoLayer):
            trained |= {"b": head.bias, "U2": head.readout, "b2": head.readout_bias}
        return Reference(self.bags.ids, self.bags.labels, trained, {})


case = cache(Case)


def record(points: int) -> list[Record]:
    def norms(model: nn.Module) -> Tensor:
        assert isinstance(model, BagAttention)
        return model.embeddings_of(slice(WORDS)).norm(dim=1)

    def scores(model: nn.Module) -> Tensor:
        assert isinstance(model, BagAttention)
        return model.scores()[:WORDS].clone()

    read = (Observable("score", scores, ("word",)), Observable("norm", norms, ("word",)))
    return [Record(read, Linear(points))]


def flow(kind: ClassifierKind, engine: Flow, epochs: int, std: float = 1e-3) -> Measured:
    """Time a flow, and real steps of the reference before and after it."""
    here = case(kind, std)
    reference = here.reference()
    reference.step(LR)
    engine.run(here.model(), here.objective, time=1.0, record=record(2))
    slow, fast = [], []
    for _ in range(3):
        model = here.model()
        before = seconds(partial(reference.step, LR), STEPS)
        start = time.process_time()
        solution = engine.run(model, here.objective, time=epochs * LR, record=record(100))
        fast.append(time.process_time() - start)
        after = seconds(partial(reference.step, LR), STEPS)
        slow.append(epochs * (before + after) / 2)
    ratios = tuple(a / b for a, b in zip(slow, fast, strict=True))
    with flattened(model) as flat:
        out = torch.empty_like(flat.vector)
        gradient = seconds(lambda: flat.value_and_gradient(here.objective, model, out), STEPS)
    kinks = f", {solution.plain_steps} plain steps at kinks" if solution.plain_steps else ""
    how = (
        f"{solution.evaluations} gradients of {1e3 * gradient:.2f} ms, "
        f"{solution.evaluations * gradient / median(fast):.0%} of the time{kinks}; reference "
        f"{1e3 * median(slow) / epochs:.2f} ms an epoch, {6 * STEPS} timed; {spread(ratios)}"
    )
    return Measured(median(slow), median(fast), how, ratios)


def descent(pieces: int = 3, steps: int = 500) -> Measured:
    """Run both step by step in turns; gradient descent has no memory, so pieces add up."""
    here, engine = case("FC"), Descent(lr=LR)
    reference, model = here.reference(), here.model()

    def slow() -> None:
        for _ in range(steps):
            reference.step(LR)

    found = turns(
        slow,
        lambda: engine.run(model, here.objective, time=steps * LR, record=record(2)),
        pieces,
        warm=False,
    )
    gap = float((model.scores() - reference.tensors["s"]).detach().abs().max())
    how = f"{pieces * steps:,} steps of both; scores differ by {gap:.1e}; {found.how}"
    return Measured(found.reference, found.ours, how, found.ratios)


def accuracy(kind: ClassifierKind, points: int = 11, until: float = 500.0) -> Measured:
    """Compare the topic words' scores with DOP853 in double precision, on the padded gradient."""
    here, sink = case(kind), Memory()
    solution = Flow().run(
        here.model(), here.objective, time=until, record=record(points), sink=sink
    )
    exact = here.reference(torch.float64).flow(sink.times[0], 1e-10)["s"][:, :WORDS]
    difference = float(np.abs(sink.arrays[0]["score"] - exact).max())
    how = f"largest difference of a score, {points} times; {solution.evaluations} gradients"
    return Measured(1e-4, difference, how)


def gap(kind: ClassifierKind, until: float = 500.0) -> Measured:
    """Compare the flow, plain and corrected, with gradient descent at LR, at 101 times."""
    here = case(kind)

    def scores(engine: Flow | Descent) -> np.ndarray:
        sink = Memory()
        engine.run(here.model(), here.objective, time=until, record=record(101), sink=sink)
        return sink.arrays[0]["score"]

    descending = scores(Descent(lr=LR))
    plain, corrected = (
        float(np.abs(scores(Flow(lr=LR, correct=correct)) - descending).max())
        for correct in (False, True)
    )
    how = f"largest difference of a score: {plain:.4f}, with correct=True {corrected:.1e}"
    return Measured(plain, corrected, how)


class Discard(Memory):
    """A sink that keeps nothing."""

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Drop the readings."""


def peak(points: int) -> float:
    """Return the peak resident size, in megabytes, of a process of its own."""
    command = [sys.executable, __file__, str(points)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def memory() -> Measured:
    return Measured(peak(100), peak(10_000))


def start_of_command(repeats: int = 5) -> Measured:
    """Time ``attnscope --help`` by the clock, in turns with a Python that does nothing."""
    command = shutil.which("attnscope", path=str(Path(sys.executable).parent))
    if command is None:
        raise Skip("no command attnscope beside this Python.")
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats + 1):
        for ours, words in ((False, [sys.executable, "-c", ""]), (True, [command, "--help"])):
            start = time.perf_counter()
            subprocess.run(words, capture_output=True, check=True)
            times[ours].append(time.perf_counter() - start)
    return Measured(median(times[False][1:]), median(times[True][1:]), "by the clock")


EAGER = "padded batches, autograd, PyTorch, as many real steps"
GRADIENTS = "number of gradients, and memory bandwidth in each"
ROWS = (
    Row("lu2021.flow_fc", "5,000 epochs of Attn-FC by flow", EAGER, GRADIENTS,
        lambda: flow("FC", Flow(), 5_000)),
    Row("lu2021.flow_tc", "5,000 epochs of Attn-TC by flow", EAGER, GRADIENTS,
        lambda: flow("TC", Flow(), 5_000)),
    Row("lu2021.flow_tl", "5,000 epochs of Attn-TL by flow, lr = 0.1", EAGER,
        "number of gradients: ReLU kinks", lambda: flow("TL", Flow(lr=LR), 5_000)),
    Row("lu2021.flow_long", "60,000 epochs of Attn-TC by flow, std √0.1", EAGER, GRADIENTS,
        lambda: flow("TC", Flow(), 60_000, 0.1**0.5)),
    Row("lu2021.descent", "gradient descent, Attn-FC, a step", EAGER, "memory bandwidth", descent),
    Row("lu2021.accuracy_fc", "flow against DOP853 at 1e-10, Attn-FC", "1e-4", "tolerance",
        lambda: accuracy("FC"), "score"),
    Row("lu2021.accuracy_tc", "flow against DOP853 at 1e-10, Attn-TC", "1e-4", "tolerance",
        lambda: accuracy("TC"), "score"),
    Row("lu2021.gap_fc", "corrected flow against gradient descent, Attn-FC", "flow",
        "order 2 in lr", lambda: gap("FC"), "score"),
    Row("lu2021.gap_tc", "corrected flow against gradient descent, Attn-TC", "flow",
        "order 2 in lr", lambda: gap("TC"), "score"),
    Row("lu2021.gap_tl", "corrected flow against gradient descent, Attn-TL", "flow",
        "ReLU kinks", lambda: gap("TL"), "score"),
    Row("lu2021.memory", "peak memory, 10,000 record points", "100 record points",
        "the interpreter", memory, "MB"),
    Row("lu2021.help", "attnscope --help", "python -c ''", "starting Python", start_of_command),
)  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = case("FC")
    points = record(int(sys.argv[1]))
    Flow().run(here.model(), here.objective, time=500.0, record=points, sink=Discard())
    print(peak_kilobytes())
