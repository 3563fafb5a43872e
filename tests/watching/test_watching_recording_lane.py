"""Steps that go down the lane leave what the usual way leaves, bit for bit."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import attnscope
from attnscope.trajectory import open_run
from attnscope.watching.recording.lane import Lane
from attnscope.watching.track import Every

SHAPE = (2, 1, 3, 3)
EVENTS = ("plain", "twice", "silent", "small", "strided", "double", "nan", "int", "none", "half")


class Shows(nn.Module):
    """Returns weights that it is given."""

    def forward(self, weights: Tensor) -> tuple[None, Tensor]:
        return None, weights


class Layers(nn.Module):
    """As many modules that show weights; the last one may be left out of a pass."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Shows() for _ in range(count))
        self.size = nn.Parameter(torch.ones(2))

    def forward(self, weights: list[Tensor]) -> Tensor:
        for layer, shown in zip(self.layers, weights, strict=False):
            layer(shown)
        return self.size.sum()


def random_weights(source: torch.Generator, shape: tuple[int, ...] = SHAPE) -> Tensor:
    return torch.softmax(torch.randn(shape, generator=source), dim=-1)


def step(model: Layers, scope: Any, event: str, source: torch.Generator) -> None:
    """Take one step of the kind that ``event`` says."""
    layers = len(model.layers)
    shape = (1, *SHAPE[1:]) if event == "small" else SHAPE
    for _ in range({"twice": 2, "silent": 0}.get(event, 1)):
        weights = [random_weights(source, shape).requires_grad_() for _ in range(layers)]
        if event == "strided":
            weights[0] = weights[0].transpose(-1, -2)
        if event == "double":
            weights[-1] = weights[-1].double()
        model(weights[:-1] if event == "half" else weights)
    loss = torch.rand((), generator=source)
    kinds: dict[str, Any] = {"nan": torch.tensor(math.nan), "int": 3, "none": None, "twice": 0.0}
    scope.step(kinds.get(event, loss))


def recorded(folder: Path, events: list[str], layers: int, record: list[Any]) -> Any:
    """Return what is on disk after steps of these kinds; the first one is a usual one."""
    source = torch.Generator().manual_seed(0)
    model = Layers(layers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scope = attnscope.watch(model, folder, record, attention=["layers.*"])
        with scope:
            for event in ["plain", *events]:
                step(model, scope, event, source)
    return open_run(folder)


def same(folder: Path, events: list[str], layers: int, record: list[Any]) -> Any:
    """Record the same steps with and without the lane, and compare all variables."""
    ours = recorded(folder / "lane", events, layers, record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lane, "enter", lambda *_: None)
        usual = recorded(folder / "usual", events, layers, record)
    assert set(ours["observables"].variables) == set(usual["observables"].variables)
    for name, found in usual["observables"].variables.items():
        mine = ours["observables"][name].to_numpy()
        np.testing.assert_array_equal(mine, found.to_numpy(), str(name))
    return ours


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(EVENTS), max_size=12), st.integers(1, 3), st.sampled_from([0, 3]))
def test_whatever_comes_is_recorded_as_the_usual_way_does(
    tmp_path_factory: pytest.TempPathFactory, events: list[str], layers: int, other: int
) -> None:
    record: list[Any] = [Every(1, "attention")]
    if other:
        record.append(Every(other, attnscope.Observable("size", lambda m: m.size)))
    folder = tmp_path_factory.mktemp("lane")
    run = same(folder, [*events, "plain", "plain"], layers, record)
    assert run["observables"]["loss"].shape[1] == len(events) + 4


def test_chunks_fill_and_what_is_on_disk_is_what_the_model_showed(tmp_path: Path) -> None:
    source = torch.Generator().manual_seed(1)
    model, shown, losses = Layers(1), [], []
    with attnscope.watch(
        model, tmp_path / "run", [Every(1, "attention")], attention="layers.0"
    ) as scope:
        for number in range(1200):
            weights = random_weights(source)
            model([weights])
            shown.append(weights.clone())
            if scope._lane.open:
                # A training may write into what its model returned; the first step is read later.
                weights.zero_()
            losses.append(number / 7)
            scope.step(losses[-1])
        assert scope._lane.open
    run = open_run(tmp_path / "run")["observables"]
    np.testing.assert_array_equal(run["attention"].to_numpy()[0, 1:, 0], torch.stack(shown).numpy())
    assert run["loss"].to_numpy()[0, 1:].tolist() == losses


def test_somebody_who_looks_on_sees_the_steps_so_far(tmp_path: Path) -> None:
    source = torch.Generator().manual_seed(1)
    model = Layers(1)
    with attnscope.watch(
        model, tmp_path / "run", [Every(1, "attention")], attention="layers.0"
    ) as scope:
        for number in range(30):
            if number == 20:
                scope._flushed = -math.inf
            step(model, scope, "plain", source)
        written = Event()
        assert scope._writer is not None
        scope._writer.submit(written.set)
        assert written.wait(60)
        assert open_run(tmp_path / "run")["observables"]["loss"].shape[1] == 22
    assert open_run(tmp_path / "run")["observables"]["loss"].shape[1] == 31


def test_losses_alone_go_down_the_lane_too(tmp_path: Path) -> None:
    with attnscope.watch(nn.Linear(2, 2), tmp_path / "run", [], attention=lambda _: []) as scope:
        scope.step(0.5)
        scope.step(torch.tensor([0.25]))
        assert scope._lane.open
        scope.step(torch.tensor(0.0))
    values = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert values[1:].tolist() == [0.5, 0.25, 0.0]
    assert scope._loss == 0.0


def test_large_weights_are_copied_by_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.watching.recording.lane.LARGEST", 8)
    events = ["plain"] * 3
    recorded(tmp_path / "run", events, 1, [Every(1, "attention")])
    same(tmp_path, events, 1, [Every(1, "attention")])


@pytest.mark.parametrize("way", ["grad", "vmap"])
def test_a_pass_under_torch_func_is_not_disturbed(tmp_path: Path, way: str) -> None:
    source = torch.Generator().manual_seed(1)
    model = Layers(1)

    def total(weights: Tensor) -> Tensor:
        model([weights])
        return weights.square().sum()

    with attnscope.watch(
        model, tmp_path / "run", [Every(1, "attention")], attention="layers.0"
    ) as scope:
        for _ in range(3):
            step(model, scope, "plain", source)
        assert scope._lane.open
        weights = random_weights(source)
        if way == "grad":
            torch.testing.assert_close(torch.func.grad(total)(weights), 2 * weights)
        else:
            sums = torch.func.vmap(total)(weights[None])
            torch.testing.assert_close(sums, weights.square().sum()[None])
        step(model, scope, "plain", source)
        assert scope.recording
    run = open_run(tmp_path / "run")["observables"]
    assert np.isfinite(run["attention"].to_numpy()[0, 1:]).all()
    assert run["loss"].shape[1] == 5


@pytest.mark.parametrize("short", [True, False])
def test_a_module_that_returns_less_than_before_is_complained_about_once(
    tmp_path: Path, short: bool
) -> None:
    class Moody(nn.Module):
        def forward(self, weights: Tensor | None, short: bool) -> tuple[Any, ...]:
            return (None, None)[: 2 - short] if short or weights is None else (None, weights)

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Moody()

        def forward(self, weights: Tensor | None, short: bool = False) -> None:
            self.inner(weights, short)

    source = torch.Generator().manual_seed(1)
    model = Whole()
    with attnscope.watch(
        model, tmp_path / "run", [Every(1, "attention")], attention="inner"
    ) as scope:
        for _ in range(3):
            model(random_weights(source))
            scope.step(0.5)
        with pytest.warns(UserWarning, match="the attention of 'inner' cannot be read"):
            model(None, short=short)
        scope.step(0.5)
    values = open_run(tmp_path / "run")["observables"]["attention"].to_numpy()[0]
    assert np.isfinite(values[1:4]).all()
    assert np.isnan(values[4]).all()
