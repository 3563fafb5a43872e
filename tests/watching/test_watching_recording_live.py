"""Readings are logged while training goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import attnscope
from attnscope.watching.moment import Reading
from attnscope.watching.recording.live import MOST, TOOLS, scalars

MODEL_IDS = torch.randint(0, 9, (2, 6), generator=torch.Generator().manual_seed(0))


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, 8, batch_first=True))


def watched(path: Path, **options: Any) -> attnscope.watching.Scope:  # type: ignore[name-defined]
    return attnscope.watch(
        model(), path, ["entropy", "attention", "weight_norm"], every=2, probe=MODEL_IDS, **options
    )


def test_a_function_hears_of_every_reading_from_step_0_on(tmp_path: Path) -> None:
    heard: list[tuple[int, dict[str, float]]] = []
    scope = watched(tmp_path / "run").log_to(lambda step, values: heard.append((step, values)))
    for _ in range(4):
        scope.step(0.5)
    scope.close()
    assert [step for step, _ in heard] == [0, 2, 4]
    run = attnscope.open_run(tmp_path / "run")["observables"]
    for number, (_, values) in enumerate(heard):
        assert {tag.split("/")[0] for tag in values} <= {"entropy", "weight_norm", "loss"}
        assert values["entropy/layer0/head1"] == run["entropy"][0, number, 0, 1].item()
        assert values["weight_norm/layer0/Q"] == run["weight_norm"][0, number, 0, 0].item()
    assert heard[2][1]["loss"] == 0.5


def test_a_logger_that_fails_is_dropped_with_a_word(tmp_path: Path) -> None:
    def full(step: int, values: dict[str, float]) -> None:
        if step:
            raise OSError("no room")

    scope = watched(tmp_path / "run").log_to(full)
    scope.step(0.5)
    with pytest.warns(UserWarning, match="nothing more is logged to full .*no room"):
        scope.step(0.5)
    scope.step(0.5)
    scope.close()
    assert scope.status == "finished at step 3"


def test_a_tool_that_is_not_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = watched(tmp_path / "run")
    with pytest.raises(attnscope.AttnscopeError, match=r"log_to\('tensorbord'\).*tensorboard"):
        scope.log_to("tensorbord")
    for name in TOOLS:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(attnscope.AttnscopeError, match=f"{name} is not installed here"):
            scope.log_to(name)
    scope.close()


def test_tensorboard_shows_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    scope = watched(tmp_path / "run").log_to("tensorboard")
    scope.step(0.5)
    scope.step(0.5)
    scope.close()
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("entropy/layer0/head0")] == [0, 2]


@pytest.mark.parametrize("tool", ["wandb", "mlflow", "trackio"])
def test_other_tools_are_called_as_they_are_documented(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[Any, Any]] = []

    class Run:
        info = SimpleNamespace(run_id="1")

        def define_metric(self, name: str, step_metric: str) -> None:
            assert (name, step_metric) == ("attnscope/*", "attnscope/step")

        def log(self, values: dict[str, float]) -> None:
            heard.append((values["attnscope/step"], values["attnscope/entropy/layer0/head0"]))

        def finish(self) -> None:
            heard.append(("end", None))

        def log_metric(self, run: str, tag: str, value: float, step: int) -> None:
            assert run == "1"
            if tag == "entropy/layer0/head0":
                heard.append((step, value))

        def set_terminated(self, run: str) -> None:
            heard.append(("end", None))

    def log(values: dict[str, float], step: int) -> None:
        heard.append((step, values["entropy/layer0/head0"]))

    library = SimpleNamespace(
        run=Run(),
        active_run=Run,
        tracking=SimpleNamespace(MlflowClient=Run),
        init=lambda **_: None,
        log=log,
        finish=lambda: None,
    )
    monkeypatch.setitem(sys.modules, tool, library)
    scope = watched(tmp_path / "run").log_to(tool)
    scope.step(0.5)
    scope.step(0.5)
    scope.close()
    # A run of the training's own is not ended.
    assert [step for step, _ in heard] == [0, 2]


def test_many_numbers_are_a_mean_of_each_layer() -> None:
    wide = Reading("wide", lambda _: None, ("layer", "head"))
    value = torch.arange(2.0 * MOST).view(2, MOST)
    assert dict(scalars(wide, value, {})) == {
        "wide/layer0": value[0].mean().item(),
        "wide/layer1": value[1].mean().item(),
    }
    assert dict(scalars(wide, torch.tensor([[1.0, torch.nan]]), {})) == {"wide/layer0/head0": 1.0}
    flat = Reading("flat", lambda _: None, ("word",))
    assert dict(scalars(flat, torch.ones(MOST + 1), {})) == {}
    assert dict(scalars(flat, torch.ones(2), {"word": ["a", "b"]})) == {
        "flat/a": 1.0,
        "flat/b": 1.0,
    }
