"""A recording survives wrappers, processes, bad losses and crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attending_toys import WIDTH, Attention, Model
from torch import Tensor, nn

import attnscope
from attnscope.watching.recording.losses import WAITING, LossReader
from attnscope.watching.recording.processes import place_for
from attnscope.watching.scope import Scope

IDS = torch.randint(0, 11, (3, 7), generator=torch.Generator().manual_seed(0))


def trained(model: nn.Module, scope: Scope, optimizer: Any, steps: int = 4) -> None:
    for _ in range(steps):
        loss = model(IDS).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scope.step(loss)


def test_without_a_with_block_the_first_reading_is_of_step_0(tmp_path: Path) -> None:
    model = Model("sdpa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = model.words.weight.detach().norm().item()
    scope = attnscope.watch(
        model,
        tmp_path / "run",
        ["entropy", attnscope.Observable("size", lambda m: m.words.weight.norm())],
        every=2,
        probe=IDS,
        optimizer=optimizer,
    )
    trained(model, scope, optimizer)
    scope.close()
    scope.close()
    run = attnscope.open_run(tmp_path / "run")["observables"]
    assert run["time"].to_numpy().tolist() == [0, 2, 4]
    assert run["size"].to_numpy()[0, 0] == pytest.approx(start)
    assert scope.status == "finished at step 4"
    with pytest.warns(UserWarning, match="step 5 comes after the recording was closed"):
        scope.step(1.0)
    scope.step(1.0)


def wrapped(kind: str, model: nn.Module) -> nn.Module:
    if kind == "DataParallel":
        return nn.DataParallel(model)
    if kind == "compile":
        return torch.compile(model, backend="eager")  # type: ignore[return-value]

    class Engine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = model

        def forward(self, *args: Any) -> Any:
            return self.module(*args)

    return Engine()


@pytest.mark.parametrize("kind", ["DataParallel", "compile", "engine"])
def test_wrappers_are_looked_into(kind: str, tmp_path: Path) -> None:
    found = {}
    for name, wrap in {"plain": lambda m: m, "wrapped": lambda m: wrapped(kind, m)}.items():
        torch.manual_seed(0)
        model = wrap(Model("sdpa"))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scope = attnscope.watch(model, tmp_path / name, every=2, probe=IDS, optimizer=optimizer)
        trained(model, scope, optimizer)
        scope.close()
        found[name] = attnscope.open_run(tmp_path / name)["observables"].to_dataset()
    assert set(found["plain"].data_vars) == set(found["wrapped"].data_vars)
    assert "rank_residual" in found["wrapped"]
    for name in ("entropy", "rank_residual", "gradient_norm", "weight_norm"):
        mine, theirs = (found[each][name].to_numpy() for each in ("plain", "wrapped"))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
        assert np.isfinite(theirs[:, 1:]).all()


def test_an_optimizer_that_accelerate_has_prepared_is_heard(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    model = Model("sdpa")
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, inner)
    with attnscope.watch(model, tmp_path / "run", every=1, probe=IDS, optimizer=optimizer) as scope:
        loss = model(IDS).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        scope.step(loss)
    gradients = attnscope.open_run(tmp_path / "run")["observables/gradient_norm"].to_numpy()
    assert np.isfinite(gradients[0, 1]).all()


def test_an_optimizer_that_cannot_be_heard_costs_nothing_else(tmp_path: Path) -> None:
    class Strange:
        param_groups: list[Any] = []

    model = Model("sdpa")
    with pytest.warns(UserWarning, match="a Strange, cannot be heard"):
        scope = attnscope.watch(
            model,
            tmp_path / "run",
            ["entropy"],
            every=1,
            probe=IDS,
            optimizer=Strange(),  # type: ignore[arg-type]
        )
    scope.step(1.0)
    scope.close()
    assert attnscope.open_run(tmp_path / "run")["observables/entropy"].sizes["step"] == 2


@pytest.mark.parametrize(
    ("rank", "ranks", "expected"),
    [("0", "first", "run"), ("1", "first", None), ("1", "all", "run-rank1"), (None, "all", "run")],
)
def test_the_first_of_several_processes_records(
    rank: str | None,
    ranks: str,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"RANK": rank, "WORLD_SIZE": rank and "2"}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    out = tmp_path / "run"
    assert place_for(out, ranks) == (None if expected is None else tmp_path / expected)
    model = nn.Linear(2, 2)
    with attnscope.watch(model, out, [], ranks=ranks, attention=lambda _: []) as scope:  # type: ignore[arg-type]
        scope.step(1.0)
    assert [path.name for path in tmp_path.iterdir()] == ([expected] if expected else [])


def test_which_processes_record_is_one_of_two_words() -> None:
    with pytest.raises(attnscope.AttnscopeError, match=r"ranks='some'.*'first' or 'all'"):
        place_for("run", "some")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (float("nan"), "the loss of step 1 is nan"),
        (torch.tensor(float("inf")), "the loss of step 1 is inf"),
        ("low", "the loss of step 1 is 'low': expected a single number"),
        (torch.ones(3), r"the loss of step 1 is of shape \(3,\)"),
    ],
)
def test_a_loss_that_is_no_number_is_said_once_and_the_recording_goes_on(
    loss: Any, said: str, tmp_path: Path
) -> None:
    with attnscope.watch(nn.Linear(2, 2), tmp_path / "run", [], attention=lambda _: []) as s:
        with pytest.warns(UserWarning, match=said):
            s.step(loss)
        s.step(loss)
        s.step(0.5)
    values = attnscope.open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert values[-1] == 0.5
    assert not np.isfinite(values[1])


class OnDevice(Tensor):
    """A tensor that says it is not on the CPU, and counts who asks for its number."""

    asked = 0
    is_cpu = False  # type: ignore[assignment]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in (Tensor.item, Tensor.tolist):
            OnDevice.asked += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def test_losses_on_a_device_are_fetched_together(tmp_path: Path) -> None:
    steps = WAITING + 20
    OnDevice.asked = 0
    with attnscope.watch(nn.Linear(2, 2), tmp_path / "run", [], attention=lambda _: []) as s:
        for step in range(steps):
            loss = torch.tensor(float(step)).as_subclass(OnDevice)
            s.step(loss)
            loss.zero_()
    values = attnscope.open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert values[1:].tolist() == list(range(steps))
    assert OnDevice.asked <= 4


def test_losses_of_different_kinds_wait_together() -> None:
    losses = LossReader()
    track: Any = type("Track", (), {"readings": [None]})()
    for kind in (torch.float32, torch.float64):
        assert losses.waits(torch.ones(1, dtype=kind).as_subclass(OnDevice), 3, track)
    assert losses.take() == [(3, 1.0), (3, 1.0)]
    assert losses.take() == []


def test_only_matrices_of_attention_are_copied_before_a_step(tmp_path: Path) -> None:
    model = Model("sdpa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    record = ["update_ratio"]
    scope = attnscope.watch(
        model, tmp_path / "run", record, every=1, probe=IDS, optimizer=optimizer
    )
    assert set(scope._before) == {
        f"blocks.{layer}.attn.{part}.weight" for layer in (0, 1) for part in ("qkv", "proj")
    }
    trained(model, scope, optimizer, 1)
    scope.close()
    ratio = attnscope.open_run(tmp_path / "run")["observables/update_ratio"].to_numpy()
    assert np.isfinite(ratio[0, 1]).all()


class Telling(nn.Module):
    """Returns its weights as (row, query, head, key), twelve queries long."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Attention("einsum")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        made = self.inner(x)
        return made, self.inner.told.transpose(1, 2)


def test_twelve_queries_are_not_read_as_twelve_heads(tmp_path: Path) -> None:
    model, x = Telling(), torch.randn(2, 12, WIDTH)
    with attnscope.watch(model, tmp_path / "run", ["attention"], probe=x, attention="") as scope:
        pass
    assert [point.heads for point in scope.points] == [4]
    weights = attnscope.open_run(tmp_path / "run")["observables/attention"].to_numpy()[0, 0, 0]
    model.eval()(x)
    np.testing.assert_array_equal(weights, model.inner.told)


def test_two_scopes_on_one_model(tmp_path: Path) -> None:
    model = Model("module")
    with (
        attnscope.watch(model, tmp_path / "a", ["attention"], every=1, probe=IDS) as a,
        attnscope.watch(model, tmp_path / "b", ["attention"], every=1, probe=IDS) as b,
    ):
        a.step(1.0)
        b.step(1.0)
    first, second = (
        attnscope.open_run(tmp_path / name)["observables/attention"].to_numpy() for name in "ab"
    )
    np.testing.assert_array_equal(first, second)


def test_steps_out_of_order_are_said(tmp_path: Path) -> None:
    with attnscope.watch(nn.Linear(2, 2), tmp_path / "run", [], attention=lambda _: []) as s:
        s.at(5)
        with pytest.warns(UserWarning, match="step 3 comes after step 5"):
            s.at(3)
        s.at(7)
    times = attnscope.open_run(tmp_path / "run")["observables/time_every_1"].to_numpy()
    assert times.tolist() == [0, 5, 7]


def test_a_scripted_model_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            return torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1) @ x

    with pytest.warns((DeprecationWarning, FutureWarning), match="deprecated"):  # 2.15: the latter
        scripted = torch.jit.script(Plain())
    x = torch.randn(2, 5, WIDTH)
    with attnscope.watch(scripted, tmp_path / "run", ["weight_norm"], every=1, probe=x) as scope:
        scope.step(1.0)
    said = " ".join(capsys.readouterr().out.split())
    assert "parts of the model are scripted" in said
    assert scope.status == "finished at step 1"


CHILD = """
import os, sys, time, torch
from torch import nn
import attnscope
model = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
from attnscope.watching import scope as module
module.FLUSH = 0.0
scope = attnscope.watch(model, sys.argv[1], ["entropy"], every=1, probe=torch.randn(2, 5, 16))
for step in range(20):
    scope.step(0.5)
{end}
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("raise ValueError('broken')", "training ended with ValueError at step 20"),
        ("sys.exit()", "the process ended at step 20, and nobody closed the recording"),
        ("print('ready', flush=True); time.sleep(60)", "not finished"),
    ],
)
def test_a_process_that_ends_leaves_a_readable_run(end: str, status: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CHILD.format(end=end), str(tmp_path / "run")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        if "ready" in end:
            while "ready" not in child.stdout.readline():
                pass
            os.kill(child.pid, signal.SIGKILL)
        child.wait(600)
    run = attnscope.open_run(tmp_path / "run")
    # What the writer had not written when the process was killed is lost, and no more than that.
    assert run["observables/loss"].sizes["step"] >= (1 if "ready" in end else 21)
    assert np.isfinite(run["observables/entropy"].to_numpy()).all()
    assert status in run.attrs["status"]
