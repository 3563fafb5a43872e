"""What runs in a worker: jobs, one after the other, until the pipe closes."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import GeneratorType
from typing import Any

import cloudpickle

from attnscope.errors import AttnscopeError

STOP = b""
"""The message that asks the job under way to stop; every other one is a job."""


class Job:
    """The last argument of a function that runs in a worker."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._stopped = pipe, False

    def say(self, value: object) -> None:
        """Send a part of the result, or how far it is, while the function goes on."""
        _send(self._pipe, _message("part", value))

    def stopped(self) -> bool:
        """Whether the function should return soon, with what there is."""
        return self._stopped


class _Inbox:
    """Jobs that have come in. A thread reads them, so that a stop is heard while a job runs."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.latest = pipe, Job(pipe)
        self.jobs: SimpleQueue[tuple[Job, bytes] | None] = SimpleQueue()

    def read(self) -> None:
        try:
            while True:
                message = self.pipe.recv_bytes()
                if message == STOP:
                    self.latest._stopped = True
                else:
                    self.latest = Job(self.pipe)
                    self.jobs.put((self.latest, message))
        finally:
            os._exit(1)  # Whoever started this process is gone.

    def terminate(self, *_: object) -> None:
        """Stop the job under way and take no other; a signal handler, so nothing may block."""
        self.latest._stopped = True
        self.jobs.put(None)


def serve(pipe: Connection) -> None:
    """Do jobs until the pipe closes or SIGTERM comes.

    The first message is a function to call at the start, or None, and the bytes of memory that jobs
    may need beyond what is used then, or None.
    """
    os.set_inheritable(pipe.fileno(), False)  # A program that a job starts must not keep it open.
    sys.stdout = sys.stderr
    inbox = _Inbox(pipe)
    signal.signal(signal.SIGTERM, inbox.terminate)
    threading.Thread(target=inbox.read, daemon=True).start()
    if (first := inbox.jobs.get()) is None:
        return
    warm_up, memory = pickle.loads(first[1])
    if warm_up is not None:
        warm_up()
    if memory is not None:
        _limit_memory(memory)
    _send(pipe, _message("ready", None))
    while (order := inbox.jobs.get()) is not None:
        _send(pipe, _answer(*order))


def _answer(job: Job, order: bytes) -> bytes:
    """Do one job; whatever it raises is said in the answer."""
    try:
        function, args = pickle.loads(order)
        value = function(*args, job)
        if isinstance(value, GeneratorType):
            with contextlib.closing(value):
                for part in value:
                    job.say(part)
                    if job.stopped():
                        break
            value = None
        return _message("done", value)
    except AttnscopeError as error:
        return _message("sorry", str(error))
    except Exception:
        return _message("bug", traceback.format_exc())


def _message(kind: str, value: Any) -> bytes:
    return bytes(cloudpickle.dumps((kind, value)))


def _send(pipe: Connection, message: bytes) -> None:
    try:
        pipe.send_bytes(message)
    except OSError:
        os._exit(1)  # Nobody listens any more.


def _limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it has now, where the system can do that."""
    if not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
