"""A run interrupted anywhere and resumed is the run that was never interrupted, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from toys import (
    THETA,
    Continuing,
    Interrupter,
    Loss,
    Perceptron,
    attention,
    flat,
    louder,
    regression,
    topic_loss,
)

from attnscope.engines import (
    Checkpoint,
    Descent,
    Flow,
    Linear,
    Logarithmic,
    LossBelow,
    Memory,
    Observable,
    OneCycle,
    Outcome,
    Patience,
    Record,
    Solution,
    Switch,
)
from attnscope.models import KernelClassifier
from attnscope.tasks import TopicWordsData

pytestmark = pytest.mark.usefixtures("float64")

ENGINES = {
    "flow": Flow(),
    "flow corrected": Flow(lr=0.2, correct=True),
    "gd": Descent(lr=0.2),
    "adam": Descent(lr=0.02, optimizer="adam"),
    "minibatch": Descent(lr=0.2, batch_size=5, samples=12, seed=1),
    "minibatch adam": Descent(lr=0.02, optimizer="adam", batch_size=5, samples=12, seed=1),
    "one cycle": Descent(lr=0.02, optimizer="adam", schedule=OneCycle(warmup=5), clip=0.05),
    "switch": Descent(lr=0.2, switches=(Switch(at=1.4, change=louder),)),
}
RECORDS = (
    Record((THETA, Observable("loss", regression)), Linear(9)),
    Record((Observable("unused", lambda m: m.unused),), Logarithmic(6, 0.1), dim="rare"),  # type: ignore[arg-type,return-value]
)


@dataclass
class Case:
    """One kind of run, which can be started as often as one likes."""

    engine: Descent | Flow
    model: Callable[[], nn.Module]
    loss: Loss
    time: float
    stops: Callable[[], list[LossBelow | Patience]]
    records: tuple[Record, ...] = RECORDS

    def run(self, sink: Memory, resume: Checkpoint | None = None) -> tuple[Solution, nn.Module]:
        model = self.model()
        solution = self.engine.run(
            model,
            self.loss,
            time=self.time,
            record=self.records,
            sink=sink,
            stop=self.stops(),
            resume=resume,
        )
        return solution, model

    @cached_property
    def whole(self) -> tuple[Interrupter, Solution, nn.Module]:
        sink = Interrupter(10**9)
        return sink, *self.run(sink)

    def check(self, after: int) -> None:
        """Interrupt after some steps, resume on a fresh model, compare with the whole run."""
        whole, expected, straight = self.whole
        first = Interrupter(after)
        assert self.run(first)[0].outcome is Outcome.INTERRUPTED
        second = Continuing(first)
        found, resumed = self.run(second, first.reload())
        assert found == expected
        assert torch.equal(flat(resumed), flat(straight))
        for left, right in zip(second.arrays, whole.arrays, strict=True):
            assert left.keys() == right.keys()
            for name in left:
                np.testing.assert_array_equal(left[name], right[name])

    def steps(self) -> int:
        """Return how often a whole run asks its sink whether to go on."""
        return 10**9 - self.whole[0].left


def case(name: str, stops: Callable[[], list[LossBelow | Patience]] = list) -> Case:
    engine = ENGINES[name]
    rate = engine.lr if isinstance(engine, Descent) else 0.2
    return Case(engine, Perceptron, regression, rate * 16, stops)


@pytest.mark.parametrize("name", ENGINES)
def test_interrupted_at_any_step(name: str) -> None:
    it = case(name)
    steps = it.steps()
    assert steps >= 5
    for after in range(steps):
        it.check(after)


def patient() -> list[LossBelow | Patience]:
    """The measure has its minimum on the way, so that patience ends the run."""
    return [Patience(lambda m: (regression(m) - 0.15).abs(), patience=0.8, every=0.2)]


@pytest.mark.parametrize("name", ["flow", "flow corrected", "gd", "minibatch"])
def test_interrupted_with_patience(name: str) -> None:
    it = case(name, patient)
    it.time = 8.0
    assert it.whole[1].outcome is Outcome.STOPPED
    for after in range(0, it.steps(), 3):
        it.check(after)


def test_interrupted_before_the_loss_crosses() -> None:
    it = case("flow", lambda: [LossBelow(0.12)])
    it.time = 50.0
    assert it.whole[1].outcome is Outcome.STOPPED
    for after in range(it.steps()):
        it.check(after)


@pytest.mark.parametrize("engine", [Flow(), Descent(lr=0.5)], ids=["flow", "descent"])
def test_the_attention_model_in_single_precision(
    tiny: TopicWordsData, engine: Descent | Flow
) -> None:
    it = Case(
        engine,
        lambda: attention(tiny.train).float(),
        topic_loss(tiny.train),
        20.0,
        list,
        (Record((THETA,), Linear(7)),),
    )
    for after in (0, 3, 7):
        it.check(after)


def test_interrupted_twice() -> None:
    for name in ("flow", "adam", "minibatch"):
        it = case(name)
        _, expected, straight = it.whole
        first = Interrupter(2)
        it.run(first)
        second = Interrupter(1)
        assert it.run(second, first.reload())[0].outcome is Outcome.INTERRUPTED
        found, resumed = it.run(Memory(), second.reload())
        assert found == expected
        assert torch.equal(flat(resumed), flat(straight))


@pytest.mark.parametrize("name", ENGINES)
def test_a_checkpoint_can_be_resumed_from_twice(name: str) -> None:
    it = case(name)
    first = Interrupter(3)
    it.run(first)
    saved = first.reload()
    ends = [flat(it.run(Memory(), saved)[1]) for _ in range(2)]
    assert torch.equal(*ends)


def noisy(model: nn.Module) -> Tensor:
    return regression(model) + 0.1 * (torch.randn(2) * model.get_parameter("unused")).sum()


def test_a_loss_that_draws_random_numbers_goes_on_drawing_them() -> None:
    it = Case(Descent(lr=0.1), Perceptron, noisy, 1.0, list)
    torch.manual_seed(0)
    straight = it.whole[2]
    for after in (0, 4):
        torch.manual_seed(0)
        first = Interrupter(after)
        it.run(first)
        torch.manual_seed(99)
        _, resumed = it.run(Memory(), first.reload())
        assert torch.equal(flat(resumed), flat(straight))


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_dropout_of_a_transformer_goes_on_where_it_was(kernel: str) -> None:
    """Its factors come of another source, which is begun anew from PyTorch's at every call."""
    ids = torch.arange(12).view(3, 4) % 5

    def model() -> nn.Module:
        small = KernelClassifier(
            5, 4, 2, width=4, hidden=6, heads=2, head_width=2, kernel=kernel, dropout=0.4
        )
        return small.train()

    def loss(classifier: nn.Module) -> Tensor:
        return F.cross_entropy(classifier(ids), torch.tensor([0, 1, 0]))

    records = (Record((THETA,), Linear(4)),)
    it = Case(Descent(lr=0.05, optimizer="adam"), model, loss, 0.4, list, records)
    torch.manual_seed(0)
    straight = it.whole[2]
    for after in (0, 5):
        torch.manual_seed(0)
        first = Interrupter(after)
        it.run(first)
        torch.manual_seed(99)
        _, resumed = it.run(Memory(), first.reload())
        assert torch.equal(flat(resumed), flat(straight))


@pytest.mark.parametrize("name", ["flow", "gd", "adam"])
def test_a_tall_parameter(name: str) -> None:
    class Tall(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.linspace(-1, 1, 96).view(48, 2))

    def loss(model: nn.Module) -> Tensor:
        w = model.get_parameter("w")
        return torch.cosh(w).mean() + 0.1 * torch.sin(w.sum(1)).mean()

    def stops() -> list[LossBelow | Patience]:
        return [Patience(loss, patience=0.2, every=0.2)]

    records = (Record((THETA,), Linear(5)),)
    it = Case(ENGINES[name], Tall, loss, ENGINES[name].grid or 1.0, stops, records)
    it.time *= 200 if name == "flow" else 10
    for after in (0, 2, 4):
        it.check(after)
