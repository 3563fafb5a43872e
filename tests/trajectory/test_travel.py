"""What travels and is written elsewhere is what a run here writes, file by file."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from attnscope.engines import Observable
from attnscope.experiment import Experiment
from attnscope.experiment.executor import execute
from attnscope.experiment.runner import _fill
from attnscope.trajectory import RunFolder, load_checkpoint, open_run
from attnscope.trajectory.travel import Ended, Kept, Load, Message, Opened, Receiver, Sender
from toy_study import Bowl

STUDY = Bowl().but(engine="descent", epochs=600, points=301, seeds=1)


@pytest.fixture
def here(tmp_path: Path) -> dict[str, bytes]:
    folder = made(tmp_path / "here")
    execute(folder, STUDY, 0)
    return files(folder)


def made(path: Path, study: Experiment = STUDY) -> RunFolder:
    folder = RunFolder(path)
    path.mkdir()
    _fill(folder, study, "")
    return folder


def files(folder: RunFolder) -> dict[str, bytes]:
    found = (file for file in folder.store.rglob("*") if file.is_file())
    return {str(file.relative_to(folder.store)): file.read_bytes() for file in found}


def sent(folder: RunFolder, until: int | None = None, every: float = 0.0) -> list[Message]:
    """Do a run and return its messages, as if its node had died after so many steps."""
    messages: list[Message] = []
    asked = iter(range(10**6))

    class Died(Exception):
        pass

    def alive() -> bool:
        if until is not None and next(asked) >= until:
            raise Died
        return False

    job = STUDY.job(*STUDY.runs()[0])
    sink = Sender(
        lambda m: messages.append(pickle.loads(pickle.dumps(m))), every=every, interrupted=alive
    )
    with contextlib.suppress(Died):
        sink.finish(job.execute(sink, load_checkpoint(folder.checkpoint_path(0))))
    return messages


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("attnscope.trajectory.pace.SHARE", 0)
    return


def test_what_arrives_is_what_a_run_here_writes(tmp_path: Path, here: dict[str, bytes]) -> None:
    folder = made(tmp_path / "far")
    messages = sent(folder, every=1e9)
    assert [type(each) for each in messages] == [Opened, Load, Load, Load, Ended]
    receiver = Receiver(folder, 0)
    for each in messages:
        receiver.hear(each)
    assert files(folder) == here
    assert folder.state(0)["outcome"] == "finished"
    assert not folder.checkpoint_path(0).exists()


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_run_whose_node_is_lost_goes_on_from_the_last_checkpoint_that_came(
    tmp_path: Path, here: dict[str, bytes], lost: int
) -> None:
    folder = made(tmp_path / "far")
    receiver = Receiver(folder, 0)
    for until in (130, 97, 301):
        messages = sent(folder, until)
        assert any(isinstance(each, Kept) for each in messages)
        for each in messages[: len(messages) - lost]:
            receiver.hear(each)
    saved = load_checkpoint(folder.checkpoint_path(0))
    assert saved is not None
    assert 300 < saved.values["step"] <= 528
    assert folder.state(0)["outcome"] == "running"
    for each in sent(folder):
        receiver.hear(each)
    assert files(folder) == here
    assert open_run(folder.path).attrs["status"] == "1 of 2 runs are complete"


def test_an_interrupted_run_keeps_its_checkpoint(tmp_path: Path) -> None:
    folder = made(tmp_path / "far")
    job = STUDY.job(*STUDY.runs()[0])
    receiver, asked = Receiver(folder, 0), iter(range(100))
    sink = Sender(receiver.hear, interrupted=lambda: next(asked) == 50)
    sink.finish(job.execute(sink, None))
    assert folder.state(0)["outcome"] == "interrupted"
    saved = load_checkpoint(folder.checkpoint_path(0))
    assert saved is not None
    assert saved.values["step"] == 50


def test_a_reading_that_is_a_view_does_not_move_with_the_model() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.x = torch.nn.Parameter(torch.zeros(2))

    model, messages = Model(), []
    sink = Sender(messages.append)
    seen = Observable("x", lambda m: m.get_parameter("x"))
    sink.put(0, 0, [seen.read(model)])
    model.x.data.fill_(7.0)
    sink.close(None)
    (load,) = messages
    assert isinstance(load, Load)
    assert load.points[0][2][0].tolist() == [0.0, 0.0]
