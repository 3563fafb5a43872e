"""Nothing is tied to the CPU: on `meta`, which refuses to mix, and on a device that only counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.catalogue import load, names
from attnscope.engines import Descent, Given, Linear, Memory, Observable, Record
from attnscope.engines.placement import placed
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.topic_objective import TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.tasks.topic_documents import TopicDocuments, TopicStream
from fake_device import FAKE, fake_device
from toy_study import Bowl, Point

META = torch.device("meta")
SHIFT = torch.zeros(2)
pytestmark = pytest.mark.xdist_group("devices")  # Images and texts are prepared once.


FEWER = {
    "song2024.pathfinder": {"train": 2000, "test": 600, "held_out": 64, "last": 64},
    "song2024.text": {"held_out": 64, "last": 64},
}
"""Images and texts that a few steps need; drawing and reading more takes most of the time."""


class Few(Memory):
    """A few steps."""

    def __init__(self, steps: float) -> None:
        super().__init__()
        self.left = steps

    def step(self, *_: Any) -> bool:
        self.left -= 1
        return self.left >= 0


def small(name: str) -> Study:
    study = load(name).at("quick").but(**FEWER.get(name, {}))
    assert isinstance(study, Study)
    return study


def trained() -> list[str]:
    return [name for name in names() if issubclass(load(name), Study)]


@pytest.mark.usefixtures("data_if_here")
@pytest.mark.parametrize("name", trained())
def test_a_study_and_its_gradient_are_on_meta_as_a_whole(name: str) -> None:
    study = small(name)
    case, seed = study.runs()[0]
    try:
        problem = study.build(case, seed)
    except (AttnscopeError, ImportError) as error:
        pytest.skip(str(error))
    engine = study.engine(case, seed).bound(problem.rows, problem.seed, problem.shuffle)
    size = getattr(engine, "batch_size", None)
    rows = () if size is None else (torch.arange(size, device="cpu"),)

    with placed(META, problem.model, problem.loss) as (loss,):
        value = loss(problem.model, *rows)
        assert value.device == META
        learns = [p for p in problem.model.parameters() if p.requires_grad]
        torch.autograd.grad(value, learns, allow_unused=True)
    assert {p.device.type for p in problem.model.parameters()} == {"cpu"}


def recorded(study: Study, case: str, seed: int) -> Memory:
    memory = Few(2)
    torch.manual_seed(0)
    study.job(case, seed).execute(memory, None)
    return memory


@pytest.mark.usefixtures("data_if_here")
@pytest.mark.parametrize("name", trained())
def test_a_run_on_a_device_is_the_run_on_the_cpu(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = small(name)
    case, seed = study.runs()[study.rounds()[0][-1]]
    try:
        study.build(case, seed)
    except (AttnscopeError, ImportError) as error:
        pytest.skip(str(error))
    here = recorded(study, case, seed)
    with fake_device(monkeypatch) as sides:
        there = recorded(study, case, seed)
    assert sides.passed["moved"]
    for ours, theirs in zip(here.arrays, there.arrays, strict=True):
        assert ours.keys() == theirs.keys()
        for each in ours:
            # Memory is laid out otherwise over there, so sums may come in another order.
            np.testing.assert_allclose(ours[each], theirs[each], rtol=1e-4, atol=1e-6)


def passed(steps: int, records: list[Record], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    data = torch.ones(2, dtype=torch.float64)

    @dataclass(frozen=True)
    class Small(Study):
        training: Descent = Descent(lr=0.01, epochs=steps)

        def build(self, case: str, seed: int) -> Problem:
            return Problem(Point((1.0, 2.0)), lambda m: (m.x * data).square().sum(), records)

    with fake_device(monkeypatch) as sides:
        Small().job("run", 0).execute(Few(math.inf), None)
    return dict(sides.passed)


def test_recording_passes_nothing_between_the_devices_at_steps_that_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Observable("x", lambda m: m.get_parameter("x"), ("coordinate",))
    ends = [Record((seen,), Given((0.1,)))]
    counts = {
        (steps, len(records)): passed(steps, records, monkeypatch)
        for steps in (10, 110)
        for records in ([], ends)
    }
    for records in (0, 1):
        more = {
            kind: counts[110, records][kind] - counts[10, records].get(kind, 0)
            for kind in counts[110, records]
        }
        # A step reads its loss, and whether its gradient is finite; nothing else passes.
        assert {kind: n for kind, n in more.items() if n} == {"read": 200}


def test_fresh_documents_are_counted_on_the_host_and_nothing_of_them_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = TopicDocuments(topics=3, words=4)
    loss = TopicObjective(TopicStream(task, 0))
    model = TopicTransformer(task.vocabulary, attention="learned", attention_dim=2)
    with fake_device(monkeypatch) as sides, placed(FAKE, model, loss) as (there,):
        sides.passed.clear()
        value = there(model, torch.arange(5, device="cpu"))
        torch.autograd.grad(value, [p for p in model.parameters() if p.requires_grad])
        assert set(sides.passed) == {"moved"}


def test_a_tensor_that_was_forgotten_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_device(monkeypatch) as sides:
        one, other = sides.put(torch.ones(3)), torch.ones(3)
        with pytest.raises(RuntimeError, match="on tensors of two devices"):
            one + other
        assert (one * 2.0 + torch.tensor(1.0)).tolist() == [3.0] * 3


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


class Holder:
    def __init__(self) -> None:
        self.data = {"pair": Pair(torch.ones(2), torch.zeros(2)), "list": [torch.ones(2)]}


def test_every_place_that_a_loss_keeps_tensors_in_is_found_and_put_back() -> None:
    model, holder, captured = nn.Linear(2, 1), Holder(), torch.ones(2)
    whole = {id(p) for p in model.parameters()}

    def inner(scale: Tensor, model: nn.Module, shift: Tensor = SHIFT) -> Tensor:
        parts = (captured, scale, shift, *holder.data["pair"], *holder.data["list"])
        assert {part.device.type for part in parts} == {"meta"}
        born = torch.arange(2) + torch.from_numpy(np.ones(2)) + torch.zeros(2)
        return (model(sum(parts, born).float())).sum()

    with placed(META, model, partial(inner, torch.ones(2))) as (loss,):
        assert loss(model).device == META
    parts = (captured, *holder.data["pair"], *holder.data["list"], *model.parameters())
    assert {part.device.type for part in parts} == {"cpu"}
    assert {id(p) for p in model.parameters()} == whole
    assert torch.from_numpy(np.ones(2)).device.type == "cpu"


def test_what_is_drawn_is_the_same_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_device(monkeypatch), placed(FAKE, nn.Linear(1, 1)):
        drawn = torch.randn(3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(drawn, torch.randn(3, generator=torch.Generator().manual_seed(1)))


def test_a_model_holds_what_it_has_learned_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Bowl().but(engine="descent", epochs=50)
    here, there = study.job("steep", 0), study.job("steep", 0)
    here.execute(Memory(), None)
    with fake_device(monkeypatch):
        there.execute(Memory(), None)
    assert torch.equal(here.model.get_parameter("x"), there.model.get_parameter("x"))
    assert Linear(2).points == 2


def test_numbers_that_a_device_does_not_have_are_a_sentence() -> None:
    with (
        pytest.raises(AttnscopeError, match=r"a tensor of torch.float64 .* cannot be on 'mps'"),
        placed(torch.device("mps"), Point((1.0,))),
    ):
        pass
