"""What stands on a node of a cluster: a worker process, and the way to it from afar."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, Queue

from attnscope import __version__
from attnscope.workers.process import Worker, WorkerDied

WAITING = 16
"""Messages that wait to be fetched. With more the job waits, and memory does not grow."""
PREFIX = "ATTNSCOPE_"
"""Of environment variables that reach the nodes."""


@dataclass(frozen=True)
class Code:
    """What a process would run: the versions, and a digest of this package's own files."""

    attnscope: str
    digest: str
    python: str
    torch: str

    def __str__(self) -> str:
        return (
            f"attnscope {self.attnscope} (code {self.digest}), Python {self.python}, "
            f"PyTorch {self.torch}"
        )


@cache
def code() -> Code:
    """Return what this process runs."""
    root = Path(__file__).parents[1]
    sum = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        sum.update(str(file.relative_to(root)).encode())
        sum.update(file.read_bytes())
    try:
        torch = version("torch").split("+")[0]
    except PackageNotFoundError:
        torch = "none"
    return Code(__version__, sum.hexdigest()[:8], platform.python_version(), torch)


@dataclass(frozen=True)
class Death:
    """What is said of a worker process that ended before it had answered."""

    reason: str
    printed: str


class Seat:
    """One worker process on a node, for jobs one after the other.

    It is an actor of Ray with several threads: one waits for messages while others start and stop
    jobs. Orders and messages pass through as bytes, so nothing large is imported here.

    Args:
        environment: variables of whoever asks, such as limits.
        threads: that a job may use.
    """

    def __init__(self, environment: Mapping[str, str], threads: int) -> None:
        for name, value in environment.items():
            # Where data lie there says nothing here, unless the folder is the same.
            if os.sep not in value or Path(value).exists():
                os.environ[name] = value
        self.worker = Worker(threads=threads)
        self.said: Queue[bytes | Death] = Queue(WAITING)
        threading.Thread(target=self._read, daemon=True).start()

    def about(self) -> tuple[Code, str]:
        """Return what this node runs, and its name."""
        return code(), platform.node()

    def start(self, order: bytes) -> None:
        """Start a job, once the one before has been answered."""
        self.worker.send_order(order)

    def hear(self, seconds: float) -> list[bytes | Death]:
        """Return the messages there are; wait for the first, but not for ever."""
        messages: list[bytes | Death] = []
        with contextlib.suppress(Empty):
            messages.append(self.said.get(timeout=seconds))
            while len(messages) < WAITING:
                messages.append(self.said.get_nowait())
        return messages

    def stop(self) -> None:
        """Ask the job under way to stop; it is answered all the same."""
        self.worker.cancel()

    def _read(self) -> None:
        try:
            while True:
                self.said.put(self.worker.receive_bytes())
        except WorkerDied as death:
            self.said.put(Death(death.reason, death.printed))


def environment() -> dict[str, str]:
    """Return the variables of this process that reach the nodes."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
