"""Measure attnscope against :mod:`reference` and print one table; see README.md beside this."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from attnscope.engines import Descent, Flow, Linear, Memory, Observable, Record, Solution
from attnscope.models import BagAttention, TwoLayer, classifier
from attnscope.models.classifiers import ClassifierKind
from attnscope.models.objective import BagObjective
from attnscope.tasks import TopicWords
from peak import peak_kilobytes
from reference import Reference

LR = 0.1
TASK = TopicWords()
DIM = 15
WORDS = TASK.topic_words
REFERENCE_STEPS = 100


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


def record(points: int) -> list[Record]:
    def norms(model: nn.Module) -> Tensor:
        assert isinstance(model, BagAttention)
        return model.embeddings_of(slice(WORDS)).norm(dim=1)

    def scores(model: nn.Module) -> Tensor:
        assert isinstance(model, BagAttention)
        return model.scores()[:WORDS].clone()

    read = (Observable("score", scores, ("word",)), Observable("norm", norms, ("word",)))
    return [Record(read, Linear(points))]


def seconds(work: Callable[[], object]) -> float:
    """Processor time: on one thread it is the wall clock's, less what other processes took."""
    start = time.process_time()
    work()
    return time.process_time() - start


def reference_seconds(reference: Reference, steps: int = REFERENCE_STEPS) -> float:
    """Time of one step."""
    return seconds(lambda: [reference.step(LR) for _ in range(steps)]) / steps


def flow_row(case: Case, engine: Flow, epochs: int, repeats: int = 5) -> tuple[str, str]:
    """Measure how many times faster the flow is than so many epochs of the reference."""
    reference = case.reference()
    reference_seconds(reference, 10)
    engine.run(case.model(), case.objective, time=1.0, record=record(2))
    ratios, steps, flows = [], [], []
    solution: Solution | None = None
    for _ in range(repeats):
        model = case.model()
        step = reference_seconds(reference, REFERENCE_STEPS // 2)
        start = time.process_time()
        solution = engine.run(model, case.objective, time=epochs * LR, record=record(100))
        flow = time.process_time() - start
        step = (step + reference_seconds(reference, REFERENCE_STEPS // 2)) / 2
        ratios.append(epochs * step / flow)
        steps.append(step)
        flows.append(flow)
    assert solution is not None
    how = (
        f"{solution.evaluations} evaluations, {solution.rejected} rejected steps, "
        + (f"{solution.plain_steps} plain steps at kinks, " if solution.plain_steps else "")
        + f"{1e3 * median(flows):.0f} ms; reference {1e3 * median(steps):.2f} ms a step, "
        f"{repeats * REFERENCE_STEPS} steps timed, times {epochs:,}; {spread(ratios)}"
    )
    return f"{median(ratios):.0f}x", how


def descent_row(case: Case, pieces: int = 5, steps: int = 1000) -> tuple[str, str]:
    """Run both step by step in turns; gradient descent has no memory, so pieces add up."""
    reference, model, engine = case.reference(), case.model(), Descent(lr=LR)
    ratios, difference = [], 0.0
    for _ in range(pieces):
        slow = seconds(lambda: [reference.step(LR) for _ in range(steps)])
        fast = seconds(lambda: engine.run(model, case.objective, time=steps * LR, record=record(2)))
        ratios.append(slow / fast)
        gap = (model.scores() - reference.tensors["s"]).detach().abs().max()
        difference = max(difference, float(gap))
    how = (
        f"{pieces * steps:,} real steps of both; largest difference of a score {difference:.1e} "
        f"(target < 1e-4); {spread(ratios)}"
    )
    return f"{median(ratios):.1f}x", how


def accuracy_row(case: Case, points: int = 11, until: float = 500.0) -> tuple[str, str]:
    """Compare the topic words' scores with DOP853 in double precision, on the padded gradient."""
    sink = Memory()
    solution = Flow().run(
        case.model(), case.objective, time=until, record=record(points), sink=sink
    )
    exact = case.reference(torch.float64).flow(sink.times[0], 1e-10)["s"][:, :WORDS]
    difference = np.abs(sink.arrays[0]["score"] - exact).max()
    how = f"{points} times, {WORDS} words; {solution.evaluations} evaluations"
    return f"{difference:.1e}", how


def gap_row(case: Case, until: float = 500.0) -> tuple[str, str]:
    """Compare the flow, plain and corrected, with gradient descent at LR, at 101 times."""

    def scores(engine: Flow | Descent) -> np.ndarray:
        sink = Memory()
        engine.run(case.model(), case.objective, time=until, record=record(101), sink=sink)
        return sink.arrays[0]["score"]

    descent = scores(Descent(lr=LR))
    plain, corrected = (
        np.abs(scores(Flow(lr=LR, correct=correct)) - descent).max() for correct in (False, True)
    )
    return f"{plain:.4f}, {corrected:.1e}", "101 times, 8 words; flow, then flow with correct=True"


class Discard(Memory):
    """A sink that keeps nothing."""

    def put(self, record: int, point: int, values: Sequence[Tensor]) -> None:
        """Drop the readings."""


def peak_memory(points: int) -> int:
    """Return the peak resident size, in kilobytes, of a process of its own."""
    command = [sys.executable, __file__, "flow", str(points)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def flow_and_tell_memory(points: int) -> None:
    case = Case("FC")
    Flow().run(case.model(), case.objective, time=500.0, record=record(points), sink=Discard())
    print(peak_kilobytes())


def memory_row() -> tuple[str, str]:
    few, many = peak_memory(100), peak_memory(10_000)
    return f"{many / few:.2f}x", f"{many / 1024:.0f} MB against {few / 1024:.0f} MB"


def help_row(repeats: int = 5) -> tuple[str, str]:
    command = shutil.which("attnscope", path=str(Path(sys.executable).parent))
    if command is None:
        return "-", "skipped: no command attnscope beside this Python"
    line = [command, "--help"]
    if subprocess.run(line, capture_output=True, check=False).returncode != 0:
        return "-", "skipped: attnscope --help does not work here"
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(line, capture_output=True, check=False)
        times.append(time.perf_counter() - start)
    return f"{median(times):.2f} s", f"median of {repeats}, after one to warm up"


def spread(ratios: list[float]) -> str:
    return f"{len(ratios)} ratios from {min(ratios):.3g} to {max(ratios):.3g}"


def main() -> None:
    fixed, trained, layers = Case("FC"), Case("TC"), Case("TL")
    long = Case("TC", std=0.1**0.5)
    rows: list[tuple[str, str, Callable[[], tuple[str, str]]]] = [
        ("Flow, 5,000 epochs, FC", ">= 100x", lambda: flow_row(fixed, Flow(), 5_000)),
        ("Flow, 5,000 epochs, TC", ">= 100x", lambda: flow_row(trained, Flow(), 5_000)),
        ("Flow(lr=0.1), 5,000 epochs, TL", "-", lambda: flow_row(layers, Flow(lr=LR), 5_000, 3)),
        ("Flow, 60,000 epochs, TC, std √0.1", ">= 500x", lambda: flow_row(long, Flow(), 60_000)),
        ("Descent, 5,000 steps, FC", ">= 3x", lambda: descent_row(fixed)),
        ("Flow against DOP853 at 1e-10, FC", "< 1e-4", lambda: accuracy_row(fixed)),
        ("Flow against DOP853 at 1e-10, TC", "< 1e-4", lambda: accuracy_row(trained)),
        ("Flow against GD at 0.1, FC", "< 0.01, < 1e-3", lambda: gap_row(fixed)),
        ("Flow against GD at 0.1, TC", "< 0.01, < 1e-3", lambda: gap_row(trained)),
        ("Flow against GD at 0.1, TL", "< 0.01, < 1e-3", lambda: gap_row(layers)),
        ("Memory, 10,000 record points / 100", "< 1.2x", memory_row),
        ("attnscope --help", "< 0.3 s", help_row),
    ]
    console = Console(width=None if sys.stdout.isatty() else 150)
    table = Table("What", "Measured", "Target", "How", title="One thread, Lu 2021's task")
    for name, target, measure in rows:
        with console.status(name):
            measured, how = measure()
        table.add_row(name, measured, target, how)
    console.print(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["flow"]:
        flow_and_tell_memory(int(sys.argv[2]))
    else:
        main()
