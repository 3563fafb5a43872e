"""One process: what it says, how it is stopped, and what is left when it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import worker_jobs as jobs

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.workers import Worker, WorkerDied


@pytest.fixture
def worker() -> Iterator[Worker]:
    with closing(Worker()) as worker:
        assert worker.receive() == ("ready", None)
        yield worker


def do(worker: Worker, function: Callable[..., object], *args: object) -> list[tuple[str, Any]]:
    worker.send(function, *args)
    messages = [worker.receive()]
    while messages[-1][0] == "part":
        messages.append(worker.receive())
    return messages


def test_parts_values_sentences_and_bugs_come_back(worker: Worker) -> None:
    parts = [("part", 0), ("part", 1)]
    assert do(worker, jobs.counts, 2) == [*parts, ("done", "counted")]
    assert do(worker, jobs.yields, 2) == [*parts, ("done", None)]
    assert do(worker, jobs.complains) == [("sorry", "a sentence")]
    ((kind, trace),) = do(worker, jobs.breaks)
    assert kind == "bug"
    assert trace.startswith("Traceback")
    assert trace.endswith("ValueError: a bug\n")
    assert do(worker, lambda job: threading.Lock())[0][0] == "bug"
    assert do(worker, jobs.shouts) == [("done", 50)]


def test_a_job_that_cannot_be_sent_is_a_sentence(worker: Worker) -> None:
    with pytest.raises(AttnscopeError, match=r"'counts' and .* cannot be sent .*_thread.lock"):
        worker.send(jobs.counts, threading.Lock())
    assert do(worker, jobs.counts, 0) == [("done", "counted")]


def test_a_death_is_told_with_what_was_printed(worker: Worker) -> None:
    worker.send(jobs.leaves, 3)
    with pytest.raises(WorkerDied, match=r"^a worker process died \(last words\)") as caught:
        worker.receive()
    assert 10_000 < len(caught.value.printed) < 30_000
    worker.cancel()
    worker.send(jobs.counts, 2)
    with pytest.raises(WorkerDied):
        worker.receive()


def test_a_killed_process_is_told_of(worker: Worker) -> None:
    worker.send(jobs.is_killed)
    with pytest.raises(WorkerDied, match=r"^a worker process died \(exit code -9\)\.$"):
        worker.receive()


def test_a_cancelled_job_stops_and_the_next_one_does_not(worker: Worker) -> None:
    worker.send(jobs.waits)
    process = worker.receive()
    with pytest.raises(TimeoutError):
        asyncio.run(worker.message(0.01))
    worker.process.send_signal(signal.SIGINT)
    worker.cancel()
    assert asyncio.run(worker.message()) == ("done", "stopped")
    worker.cancel()  # Too late for the job before, and not for the one after.
    worker.send(jobs.waits)
    assert worker.receive() == process
    worker.cancel()
    assert worker.receive() == ("done", "stopped")
    worker.send(jobs.yields_for_ever)
    assert worker.receive() == ("part", 1)
    worker.cancel()
    kind = "part"
    while kind == "part":
        kind, _ = worker.receive()
    assert kind == "done"


def test_sigterm_lets_a_job_end_and_then_the_process(worker: Worker) -> None:
    worker.send(jobs.waits)
    worker.receive()
    worker.process.terminate()
    assert worker.receive() == ("done", "stopped")
    with pytest.raises(WorkerDied, match="exit code 0"):
        worker.receive()


def test_sigterm_ends_a_process_that_has_nothing_to_do(worker: Worker) -> None:
    worker.process.terminate()
    with pytest.raises(WorkerDied, match="exit code 0"):
        worker.receive()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_job_beyond_the_limit_on_memory_fails_alone() -> None:
    with closing(Worker(jobs.prepare, memory=64 << 20)) as worker:
        worker.receive()
        assert do(worker, jobs.takes, 32 << 20) == [("done", 32 << 20)]
        ((kind, trace),) = do(worker, jobs.takes, 128 << 20)
        assert (kind, trace.splitlines()[-1]) == ("bug", "MemoryError")
        assert do(worker, jobs.counts, 0) == [("done", "counted")]


def test_a_worker_has_one_thread_and_what_its_warm_up_made() -> None:
    with closing(Worker(jobs.prepare)) as worker:
        worker.receive()
        ((_, found),) = do(worker, jobs.surroundings)
    assert found["environment"] == ["1", "1", "yes"]
    assert found["attnscope"] == attnscope.__file__
    assert found["arguments"] == ["-c"]


def test_a_warm_up_that_breaks_is_told_of() -> None:
    with (
        closing(Worker(lambda: jobs.breaks(None))) as worker,  # type: ignore[arg-type]
        pytest.raises(WorkerDied, match=r"died \(ValueError: a bug\)"),
    ):
        worker.receive()


def test_a_worker_leaves_when_its_parent_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = tmp_path / "script.py"
    script.write_text(f"""
import worker_jobs
from attnscope.workers import Worker

def hold(job):
    with open({str(tmp_path / "pipe")!r}, "w") as file:
        print("begun", file=file, flush=True)
        print(worker_jobs.waits(job), file=file)

worker = Worker()
worker.send(hold)
while True:
    worker.receive()
""")
    path = os.pathsep.join([str(Path(jobs.__file__).parent), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen([sys.executable, script], env={**os.environ, "PYTHONPATH": path})
    with open(tmp_path / "pipe") as file:
        assert file.readline() == "begun\n"
        parent.kill()
        parent.wait()
        # The end of the file is the end of the process, which says so if it was not interrupted.
        assert file.read() == ""
