"""Curves for other tools: every number comes back, step 0 among them."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import attnscope.watching as watching
from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.export import MOST, export, series_of
from attnscope.training import train
from attnscope.trajectory import open_run
from watched_toys import Reader


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    """Return a short training with readings on two schedules."""
    path = tmp_path_factory.mktemp("export") / "mine"
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = torch.randint(0, 11, (8, 6))
    record = ["attention", "entropy", "gradient_norm", "embedding_norm"]
    with watching.watch(
        model,
        path,
        record,
        every=2,
        probe=ids,
        attention="attention:weights",
        optimizer=optimizer,
        words={"good": 3, "bad": 5},
    ) as scope:
        for _ in range(5):
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    return open_run(path)


def test_tags_say_layer_head_and_names(watched: xr.DataTree) -> None:
    series, left = series_of(watched)
    assert {one.tag for one in series} == {
        "loss",
        "entropy/layer0/head0",
        "entropy/layer0/head1",
        *(f"gradient_norm/layer0/{name}" for name in "QKVO"),
        "embedding_norm/good",
        "embedding_norm/bad",
    }
    assert left == {"attention": 8 * 2 * 6 * 6}


def test_csv_comes_back_to_the_last_bit(watched: xr.DataTree, tmp_path: Path) -> None:
    path, _ = export(watched, "csv", tmp_path / "curves.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[tuple[int, float, float]]] = {}
    for row in rows:
        found.setdefault(row["tag"], []).append(
            (int(row["step"]), float(row["time"]), float(row["value"]))
        )
    seen = watched["observables"]
    losses = seen["loss"].to_numpy()[0]
    assert [step for step, _, _ in found["loss"]] == list(range(6))
    assert math.isnan(found["loss"][0][2])
    assert [value for _, _, value in found["loss"][1:]] == losses[1:].tolist()
    head = found["entropy/layer0/head1"]
    assert [step for step, _, _ in head] == [0, 2, 4]
    assert [value for _, _, value in head] == seen["entropy"].to_numpy()[0, :, 0, 1].tolist()


def test_tensorboard_comes_back(watched: xr.DataTree, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path, _ = export(watched, "tensorboard", tmp_path / "board")
    events = EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    series, _ = series_of(watched)
    assert sorted(events.Tags()["scalars"]) == sorted(one.tag for one in series)
    for one in series:
        found = [(event.step, event.value) for event in events.Scalars(one.tag)]
        assert found == [(step, float(np.float32(value))) for step, value in one.known()]
    assert events.Scalars("entropy/layer0/head0")[0].step == 0


def test_weights_and_biases_without_a_server(watched: xr.DataTree, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    path, _ = export(watched, "wandb", tmp_path / "wandb")
    (run,) = path.glob("wandb/offline-run-*/*.wandb")
    assert run.stat().st_size > 0


def test_weights_and_biases_hears_every_step_once(
    watched: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[tuple[int, dict[str, float]]] = []
    given: dict[str, Any] = {}

    class Run:
        def __enter__(self) -> Run:
            return self

        def __exit__(self, *_: object) -> None:
            given["ended"] = True

        def log(self, row: dict[str, float], step: int) -> None:
            rows.append((step, row))

    def init(**options: Any) -> Run:
        given.update(options)
        return Run()

    fake = SimpleNamespace(init=init, Settings=lambda **options: options)
    monkeypatch.setitem(sys.modules, "wandb", fake)  # type: ignore[arg-type]
    export(watched, "wandb", tmp_path / "wandb")
    assert (given["mode"], given["name"], given["ended"]) == ("offline", "mine", True)
    assert [step for step, _ in rows] == list(range(6))
    assert "loss" not in rows[0][1]
    assert (
        rows[2][1]["entropy/layer0/head1"] == watched["observables/entropy"].to_numpy()[0, 1, 0, 1]
    )


@pytest.mark.filterwarnings("ignore")
def test_mlflow(watched: xr.DataTree, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    from mlflow.tracking import MlflowClient

    path, _ = export(watched, "mlflow", tmp_path / "mlflow")
    client = MlflowClient(tracking_uri=f"sqlite:///{path / 'mlflow.db'}")
    key = client.get_experiment_by_name("attnscope").experiment_id
    (run,) = client.search_runs([key])
    found = client.get_metric_history(run.info.run_id, "entropy/layer0/head1")
    wanted = watched["observables/entropy"].to_numpy()[0, :, 0, 1]
    assert sorted((m.step, m.value) for m in found) == list(zip([0, 2, 4], wanted, strict=True))


def test_a_trajectory_of_a_study_has_its_runs_in_the_tags() -> None:
    values = np.arange(12.0).reshape(2, 3, 2)
    data = xr.Dataset(
        {
            "norm": (("run", "step"), values[:, :, 0], {}),
            "score": (("run", "look", "topic"), values, {}),
            "words": (("run", "word"), np.ones((2, 4)), {}),
            "map": (("run", "step", "one", "other"), np.ones((2, 3, 40, 40)), {}),
        },
        coords={
            "time": ("step", [0.0, 0.5, math.nan]),
            "epoch": ("step", [0.0, 5.0, math.nan]),
            "time_look": ("look", [0.0, 0.25, 3.0]),
            "case": ("run", ["a", "b"]),
            "seed": ("run", [0, 4]),
        },
    )
    series, left = series_of(xr.DataTree.from_dict({"/observables": data}))
    found = {one.tag: one for one in series}
    assert list(found) == [
        "a/seed0/norm",
        "b/seed4/norm",
        *(f"{run}/score/topic{k}" for run in ("a/seed0", "b/seed4") for k in (0, 1)),
    ]
    norm = found["b/seed4/norm"]
    assert (norm.steps.tolist(), norm.times.tolist()) == ([0, 5], [0.0, 0.5])
    assert norm.values.tolist() == [6.0, 8.0]
    # A flow has no steps: readings are counted, and their times kept.
    score = found["a/seed0/score/topic1"]
    assert (score.steps.tolist(), score.times.tolist()) == ([0, 1, 2], [0.0, 0.25, 3.0])
    assert left == {"map": 1600}
    assert left["map"] > MOST


def test_training_of_ours_is_exported_too(tmp_path: Path) -> None:
    model = nn.Linear(2, 1, dtype=torch.float64)
    size = Observable("size", lambda m: m.weight.norm())
    tree = train(
        model,
        lambda m: (m.weight**2).sum(),
        engine=Descent(lr=0.1),
        time=1.0,
        record=[Record((size,), at=Linear(5))],
    )
    with pytest.raises(AttnscopeError, match="has no folder"):
        export(tree, "csv")
    path, _ = export(tree, "csv", tmp_path / "curves.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    sizes = tree["observables/size"].to_numpy()[0]
    assert [float(row["value"]) for row in rows if row["tag"] == "size"] == sizes.tolist()
    assert rows[0]["step"] == "0"


def test_unknown_tools_and_missing_libraries(
    watched: xr.DataTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AttnscopeError, match=r"'tensorbord' is nothing.*mean 'tensorboard'"):
        export(watched, "tensorbord")
    assert Path(watched.attrs["path"]).name == "mine"
    for name in ("tensorboard", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(AttnscopeError, match=f"{name} is not installed here"):
            export(watched, name)
