"""One process that does jobs, seen from the process that started it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.workers.child import STOP
from attnscope.workers.pickling import dumps, search_path

# Not multiprocessing's own start, which imports the parent's script a second time.
PROGRAM = """
import signal, sys
for each in (signal.SIGINT, signal.SIGHUP):  # They reach the whole group; the parent decides.
    signal.signal(each, signal.SIG_IGN)
from multiprocessing.connection import Connection
pipe = Connection(int(sys.argv.pop()))
given = pipe.recv()
sys.path[:] = [*given, *(place for place in sys.path if place not in given)]
from attnscope.workers.child import serve
serve(pipe)
"""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that say how many threads libraries use."""
LAST = 20_000
"""Bytes of what a process printed that are shown when it dies."""
KILLED = "exit code -9"
"""How a process ends that the system has ended, as it does when memory runs out."""
BY_SYSTEM = ": the system ended it, as it does when memory runs out"
LOST = "lost"
"""What is said of a job that took its process with it."""
GRACE = 5.0
"""Seconds that a process that has closed its pipe gets to end."""


class JobFailed(AttnscopeError):
    """A job raised what is no sentence, or took its process with it; other jobs were done first.

    The first line says so; what was printed follows.
    """


class WorkerDied(AttnscopeError):
    """A worker process ended before it had answered."""

    def __init__(self, code: int, printed: str) -> None:
        lines = printed.splitlines()
        self.reason = lines[-1] if lines and code > 0 else f"exit code {code}"
        self.printed = printed
        super().__init__(f"a worker process died ({self.reason}).\n{printed}".rstrip())


class Worker:
    """A process with one thread that does jobs one after the other.

    Args:
        warm_up: is called over there before the first job, without arguments.
        memory: bytes that jobs may need beyond what is used after that.
        holding: files that stay open over there as long as the process lives, such as a lock.
        threads: that its libraries may use.
    """

    def __init__(
        self,
        warm_up: Callable[[], object] | None = None,
        memory: int | None = None,
        holding: Sequence[int] = (),
        threads: int = 1,
    ) -> None:
        self._path = search_path()
        first = dumps((warm_up, memory), self._path)
        # A file, for a pipe that nobody reads while a job goes on would fill up and stop it.
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it)
        self._pipe, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                # -P: a file in the current directory must not be imported for a library's.
                [sys.executable, "-P", "-c", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=[theirs.fileno(), *holding],
                env={**os.environ, **dict.fromkeys(THREADS, str(threads))},
            )
        self._send(pickle.dumps(self._path))
        self._send(first)

    def send(self, function: Callable[..., object], *args: object) -> None:
        """Start ``function(*args, job)`` over there, once the job before has been answered.

        Raises:
            AttnscopeError: the job cannot be sent.
        """
        self.send_order(order_of(function, args, self._path))

    def send_order(self, order: bytes) -> None:
        """Start a job that :func:`order_of` made ready, perhaps in another process."""
        self._send(order)

    def cancel(self) -> None:
        """Ask the job under way to stop; it is answered all the same."""
        self._send(STOP)

    def _send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # The process is gone, and receive() will say so.
            self._pipe.send_bytes(message)

    def receive(self) -> tuple[str, Any]:
        """Wait for the next message.

        It is ``("ready", None)`` once; for each job any number of ``("part", value)`` and then
        ``("done", value)``, ``("sorry", sentence)`` for an AttnscopeError, or
        ``("bug", traceback)`` for any other exception.

        Raises:
            WorkerDied: the process has ended.
        """
        kind, value = pickle.loads(self.receive_bytes())
        return kind, value

    def receive_bytes(self) -> bytes:
        """Wait for the next message, and leave it as it came.

        Raises:
            WorkerDied: the process has ended.
        """
        try:
            return self._pipe.recv_bytes()
        except (EOFError, ConnectionError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
            self.process.kill()
            self._printed.seek(max(0, os.fstat(self._printed.fileno()).st_size - LAST))
            printed = self._printed.read().decode(errors="replace").strip()
            raise WorkerDied(self.process.wait(), printed) from None

    async def message(self, timeout: float | None = None) -> tuple[str, Any]:
        """Wait for the next message as :meth:`receive` does, and let the event loop go on.

        Raises:
            TimeoutError: nothing came for so many seconds.
        """
        loop, file, came = asyncio.get_running_loop(), self._pipe.fileno(), asyncio.Event()
        loop.add_reader(file, came.set)
        try:
            async with asyncio.timeout(timeout):
                await came.wait()
        finally:
            loop.remove_reader(file)
        return self.receive()

    def close(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()
        self._pipe.close()
        self._printed.close()


def order_of(function: Callable[..., object], args: Sequence[object], path: list[str]) -> bytes:
    """Make a job ready for a worker that looks for modules in ``path``.

    Raises:
        AttnscopeError: it cannot be sent.
    """
    try:
        return dumps((function, tuple(args)), path)
    except Exception as error:
        name = getattr(function, "__qualname__", function)
        raise AttnscopeError(
            f"'{name}' and its arguments cannot be sent to a worker process ({error}): "
            "expected values without open files, locks or connections."
        ) from error
