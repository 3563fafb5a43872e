"""The recorder keeps everything, changes nothing, and never ends the training."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from attnscope.trajectory import RunFolder, arrays, channel, open_run
from attnscope.watching.moment import Reading
from attnscope.watching.place import new_folder
from watched_toys import LOSS, NORM, WEIGHTS, Reader, scope, train

STEP = (("step", 1, (LOSS, NORM, WEIGHTS)),)


def test_every_reading_is_kept_with_step_0(tmp_path: Path) -> None:
    kept: list[torch.Tensor] = []
    norms: list[float] = []

    def each(step: int, model: Reader, loss: float) -> None:
        kept.append(model.attention.weights.detach().clone())
        norms.append(model.head.weight.norm().item())

    _, losses = train(700, lambda model, _: scope(model, tmp_path / "run", STEP), each)
    tree = open_run(tmp_path / "run")
    assert tree["observables/time"].to_numpy().tolist() == list(range(701))
    found = tree["observables/loss"].to_numpy()[0]
    assert np.isnan(found[0])
    assert np.array_equal(found[1:], np.array(losses))
    assert tree["observables/norm"].dims == ("run", "step")
    assert np.array_equal(tree["observables/norm"].to_numpy()[0, 1:], np.float32(norms))
    assert not np.isnan(tree["observables/norm"].to_numpy()).any()
    weights = tree["observables/attention"].to_numpy()[0]
    assert np.isnan(weights[0]).all()
    assert np.array_equal(weights[1:], torch.stack(kept).numpy())
    assert tree.attrs["status"] == "finished: the run is complete"


def test_training_is_the_same_watched_or_not(tmp_path: Path) -> None:
    model, losses = train(60)
    watched, again = train(60, lambda m, o: scope(m, tmp_path / "run", STEP, optimizer=o))
    assert again == losses
    for name, value in watched.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in watched.modules())


def test_schedules_have_dimensions_of_their_own(tmp_path: Path) -> None:
    tracks = (("step", 1, (LOSS,)), ("look", 20, (NORM,)))
    train(50, lambda model, _: scope(model, tmp_path / "run", tracks))
    tree = open_run(tmp_path / "run")
    assert tree["observables/time_look"].to_numpy().tolist() == [0, 20, 40]
    assert tree["observables/norm"].dims == ("run", "look")


def test_gradients_and_weights_before_are_those_of_the_step(tmp_path: Path) -> None:
    readings = (
        Reading(
            "gradient",
            lambda m: m.gradients["head.weight"].norm() if m.step else None,  # type: ignore[arg-type,return-value]
            needs=frozenset({"gradients"}),
        ),
        Reading(
            "moved",
            lambda m: (
                (m.model.get_parameter("head.weight") - m.before["head.weight"]).norm()
                if m.step
                else None
            ),  # type: ignore[arg-type,return-value]
            needs=frozenset({"before"}),
        ),
    )
    gradients: list[float] = []
    path = [torch.empty(0)]
    moved: list[float] = []

    def each(step: int, model: Reader, loss: float) -> None:
        assert model.head.weight.grad is not None
        gradients.append(model.head.weight.grad.norm().item())
        moved.append((model.head.weight.detach() - path[-1]).norm().item() if step > 1 else 0.0)
        path.append(model.head.weight.detach().clone())

    tracks = (("look", 5, readings),)
    for name, options in (("with", True), ("without", False)):
        for part in (gradients, moved):
            part.clear()
        train(
            20,
            lambda m, o, n=name, with_optimizer=options: scope(  # type: ignore[misc]
                m, tmp_path / n, tracks, optimizer=o if with_optimizer else None
            ),
            each,
        )
        tree = open_run(tmp_path / name)
        found = tree["observables/gradient"].to_numpy()[0]
        assert np.isnan(found[0])
        assert np.array_equal(found[1:], np.float32(gradients)[4::5])
        assert np.array_equal(tree["observables/moved"].to_numpy()[0][1:], np.float32(moved)[4::5])


def test_only_steps_that_are_read_pay_for_attention(tmp_path: Path) -> None:
    hooked: list[bool] = []
    tracks = (("step", 1, (LOSS,)), ("look", 4, (WEIGHTS,)))
    train(
        12,
        lambda model, _: scope(model, tmp_path / "run", tracks),
        lambda step, model, loss: hooked.append(bool(model.attention._forward_hooks)),
    )
    # After step 3 the next one is read.
    assert hooked == [False, False, True, False] * 3
    assert not np.isnan(open_run(tmp_path / "run")["observables/attention"].to_numpy()[0, 1:]).any()


def test_a_broken_reading_is_warned_about_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    def fragile(moment: object) -> torch.Tensor:
        fragile.calls += 1  # type: ignore[attr-defined]
        if fragile.calls > 3:  # type: ignore[attr-defined]
            raise RuntimeError("no more")
        return torch.tensor(1.0)

    fragile.calls = 0  # type: ignore[attr-defined]
    tracks = (("step", 1, (Reading("fragile", fragile), LOSS)),)
    with pytest.warns(UserWarning, match="'fragile' can no longer be read") as caught:
        _, losses = train(10, lambda model, _: scope(model, tmp_path / "run", tracks))
    assert len(caught) == 1
    tree = open_run(tmp_path / "run")
    assert np.isnan(tree["observables/fragile"].to_numpy()[0]).tolist() == [False] * 3 + [True] * 8
    assert np.array_equal(tree["observables/loss"].to_numpy()[0, 1:], losses)


def test_a_reading_that_changes_its_shape_is_nan_from_there(tmp_path: Path) -> None:
    sizes = Reading("sizes", lambda m: torch.ones(2 if m.step < 4 else 3), ("thing",))
    with pytest.warns(UserWarning, match=r"its shape is \(3,\), and was \(2,\) at first"):
        train(8, lambda model, _: scope(model, tmp_path / "run", (("step", 1, (sizes,)),)))
    found = open_run(tmp_path / "run")["observables/sizes"].to_numpy()[0]
    assert np.isnan(found[:, 0]).tolist() == [False] * 4 + [True] * 5


def test_labels_are_kept_where_they_fit(tmp_path: Path) -> None:
    def ones(name: str, size: int, **coords: tuple[str, ...]) -> Reading:
        return Reading(name, lambda _: torch.ones(size), ("layer",), coords=coords)

    readings = (ones("known", 2), ones("more", 3), ones("own", 2, layer=("a", "b")))
    wrong = ones("wrong", 2, layer=("a", "b", "c"))
    tracks = (("step", 1, (*readings, wrong)),)
    labels = {"layer": ["first", "second"]}
    with pytest.warns(UserWarning, match=r"'wrong'.*shape \(2,\), and 3 labels for 'layer'"):
        train(3, lambda model, _: scope(model, tmp_path / "run", tracks, labels=labels))
    tree = open_run(tmp_path / "run")
    assert tree["observables/known"]["layer"].to_numpy().tolist() == ["first", "second"]
    assert tree["observables/more"].dims[2] == "more[0]"
    assert tree["observables/own"]["own[0]"].to_numpy().tolist() == ["a", "b"]
    assert "wrong" not in tree["observables"]


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    train(3, lambda model, _: scope(model, tmp_path / "run"))
    with pytest.warns(UserWarning, match="exists and is left as it is"):
        folder = new_folder(tmp_path / "run")
    assert folder.path == tmp_path / "run-2"
    assert new_folder(tmp_path / "other").path == tmp_path / "other"


def test_a_disk_that_fills_up_ends_the_recording_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = arrays.write_bytes, [6]

    def full(path: Path, data: bytes) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(arrays, "write_bytes", full)
    monkeypatch.setattr(channel, "CHUNK_POINTS", 4)
    with pytest.warns(UserWarning, match=r"recording stopped at step \d+ .*Training goes on") as w:
        _, losses = train(300, lambda model, _: scope(model, tmp_path / "run"))
    assert len(losses) == 300
    assert sum("recording stopped" in str(item.message) for item in w) == 1
    tree = open_run(tmp_path / "run")
    found = tree["observables/loss"].to_numpy()[0]
    known = ~np.isnan(found)
    assert known[1:5].all() or known[1:4].all()
    assert np.array_equal(found[known], np.array(losses)[: len(found) - 1][known[1:]])


def test_an_unwritable_place_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="recording could not begin at step 0"):
        _, losses = train(5, lambda model, _: scope(model, tmp_path / "file" / "run"))
    assert len(losses) == 5


def test_an_error_of_the_training_passes_through_and_what_was_read_is_kept(tmp_path: Path) -> None:
    def each(step: int, model: Reader, loss: float) -> None:
        if step == 7:
            raise ZeroDivisionError("in the loop")

    with pytest.raises(ZeroDivisionError, match="in the loop"):
        train(20, lambda model, _: scope(model, tmp_path / "run"), each)
    tree = open_run(tmp_path / "run")
    assert tree["observables/time"].to_numpy().tolist() == list(range(8))
    assert RunFolder(tmp_path / "run").state(0)["status"] == (
        "training ended with ZeroDivisionError at step 7"
    )


def test_one_can_look_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnscope.watching.scope.FLUSH", 0.0)
    seen: list[int] = []

    def each(step: int, model: Reader, loss: float) -> None:
        if step % 10 == 0:
            time.sleep(0.05)  # the writer is a thread of its own
            seen.append(len(open_run(tmp_path / "run")["observables/loss"][0]))

    train(30, lambda model, _: scope(model, tmp_path / "run"), each)
    assert seen == sorted(seen)
    assert 2 <= seen[0] <= 11


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
import torch
torch.set_num_threads(1)
from pathlib import Path
from watched_toys import scope, train
import attnscope.watching.scope as s
s.FLUSH = 0.05
train(10**9, lambda model, _: scope(model, Path(sys.argv[1])),
      lambda step, model, loss: print(step, loss, flush=True))
"""


def test_a_killed_process_leaves_a_readable_run(tmp_path: Path) -> None:
    script = SCRIPT.format(here=str(Path(__file__).parents[1]))
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    losses = []
    for line in process.stdout:
        losses.append(float(line.split()[1]))
        if len(losses) == 400:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    process.wait()
    found = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert len(found) > 50
    known = ~np.isnan(found[1:])
    count = min(len(found) - 1, len(losses))
    assert known[:count].all()
    assert np.array_equal(found[1 : count + 1], np.array(losses)[:count])


def test_a_process_killed_while_it_closes_leaves_a_readable_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, told = channel.tell_length, [0]

    def half(array: Path, axis: int, length: int) -> None:
        told[0] += 1
        if told[0] < 3:
            tell(array, axis, length)

    monkeypatch.setattr(channel, "tell_length", half)
    _, losses = train(20, lambda model, _: scope(model, tmp_path / "run", STEP))
    assert told[0] > 3
    found = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert np.array_equal(found[1:], losses)


def test_memory_does_not_grow_with_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "CHUNK_POINTS", 8)
    made: list[int] = []
    fresh = channel.Channel._empty

    def count(self: channel.Channel) -> object:
        before = self.made
        buffer = fresh(self)
        made.append(self.made - before)
        return buffer

    monkeypatch.setattr(channel.Channel, "_empty", count)
    train(400, lambda model, _: scope(model, tmp_path / "run"))
    assert len(made) > 100
    assert sum(made) <= 3 * (channel.SPARES + 1)


def test_without_warnings_when_all_is_well(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(5, lambda model, o: scope(model, tmp_path / "run", optimizer=o))
