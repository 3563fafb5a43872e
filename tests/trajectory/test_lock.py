"""One writer: whoever comes second is told who is there, and a dead owner is nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError
from attnscope.trajectory import lock as locks
from attnscope.trajectory.lock import NAME, Busy, Lock, owner_of

HOLD = """
import sys, time
from pathlib import Path
from attnscope.trajectory.lock import Lock
held = Lock(Path(sys.argv[1]), "a long run")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def test_the_second_is_told_who_is_there(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(Busy, match=rf"process {holder.pid} on .* since \d{{4}}-.*a long run"):
        Lock(tmp_path, "mine")
    assert owner_of(tmp_path / NAME)["process"] == holder.pid


def test_a_killed_owner_leaves_nothing_in_the_way(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / NAME).exists()
    with Lock(tmp_path, "mine"):
        assert owner_of(tmp_path / NAME)["process"] == os.getpid()
    assert not (tmp_path / NAME).exists()


def test_one_process_cannot_take_it_twice(tmp_path: Path) -> None:
    with Lock(tmp_path, "first"), pytest.raises(Busy, match="first"):
        Lock(tmp_path, "second")
    Lock(tmp_path, "third").release()


def test_a_worker_holds_what_its_parent_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    lock = Lock(tmp_path, "parent")
    with subprocess.Popen(["sleep", "60"], pass_fds=[lock.descriptor]) as child:
        os.close(lock.descriptor)  # As if the parent had died.
        with pytest.raises(Busy):
            Lock(tmp_path, "next")
        child.kill()
        child.wait()
        Lock(tmp_path, "next").release()


def test_a_lock_that_says_nonsense_is_taken(tmp_path: Path) -> None:
    for text in (b"", b"{", b"[1]", b'{"process": "x"}', b"\xff" * 20_000):
        (tmp_path / NAME).write_bytes(text)
        Lock(tmp_path, "mine").release()


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(AttnscopeError, match="cannot be written to"):
        Lock(tmp_path, "mine")


def test_without_locks_of_the_file_system_the_process_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", none)
    with Lock(tmp_path, "first"), pytest.raises(Busy, match="first"):
        Lock(tmp_path, "second")
    (tmp_path / NAME).write_text('{"host": "elsewhere", "process": 1, "since": "x", "what": "y"}')
    with pytest.raises(Busy, match="process 1 on elsewhere"):
        Lock(tmp_path, "third")
