"""Worker processes: whatever a study prints or breaks, the run ends and says how."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder
from toy_study import Bowl


def test_a_talkative_study_does_not_stand_in_the_way_of_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"^seed 1 is not to be$"):
        attnscope.run(Bowl().but(talkative=True, fault="sentence"), tmp_path / "run", workers=2)
    folder = RunFolder(tmp_path / "run")
    assert [folder.state(i).get("outcome") for i in range(4)] == ["finished"] * 2 + [None] * 2


def test_a_bug_in_a_worker_is_shown_with_its_trace(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError) as caught:
        attnscope.run(Bowl().but(fault="bug"), tmp_path / "run", workers=2)
    message = str(caught.value)
    assert message.startswith("a worker process died (ValueError: a bug of seed 1). What it had")
    assert "Traceback" in message
    assert RunFolder(tmp_path / "run").state(0)["outcome"] == "finished"


def test_a_worker_that_is_killed_is_told_of(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent", epochs=2_000_000, seeds=1)

    def kill(run: int, fraction: float) -> None:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for child in map(int, children):
            if "attnscope.workers" in Path(f"/proc/{child}/cmdline").read_text():
                os.kill(child, signal.SIGKILL)

    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("child processes are looked up in /proc")
    with pytest.raises(AttnscopeError, match=r"a worker process died \(exit code -9: .*--resume"):
        attnscope.run(study, tmp_path / "run", workers=2, listener=kill)
