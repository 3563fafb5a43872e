"""What runs in a worker: jobs, one after the other, until the pipe closes."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from types import GeneratorType

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
        self._pipe.send_bytes(cloudpickle.dumps(("part", value)))

    def stopped(self) -> bool:
        """Whether the function should return soon, with what there is."""
        return self._stopped

    def _answer(self, order: bytes) -> bytes:
        """Call the function; whatever it raises is said in the answer."""
        try:
            function, args = pickle.loads(order)
            value = function(*args, self)
            if isinstance(value, GeneratorType):
                with contextlib.closing(value) as parts:
                    for part in parts:
                        self.say(part)
                        if self._stopped:
                            break
                value = None
            return cloudpickle.dumps(("done", value))
        except AttnscopeError as error:
            return cloudpickle.dumps(("sorry", str(error)))
        except Exception:
            return cloudpickle.dumps(("bug", traceback.format_exc()))


def serve(pipe: Connection) -> None:
    """Do jobs until the pipe closes or SIGTERM comes.

    The first message is a function to call at the start, or None, and the bytes of memory that jobs
    may need beyond what is used then, or None.
    """
    os.set_inheritable(pipe.fileno(), False)  # A program that a job starts must not keep it open.
    sys.stdout = sys.stderr
    latest = Job(pipe)
    orders: SimpleQueue[tuple[Job, bytes] | None] = SimpleQueue()

    def read() -> None:
        nonlocal latest
        try:
            while True:
                message = pipe.recv_bytes()
                if message == STOP:
                    latest._stopped = True
                else:
                    latest = Job(pipe)
                    orders.put((latest, message))
        finally:
            os._exit(1)  # Whoever started this process is gone.

    def terminate(*_: object) -> None:
        latest._stopped = True
        orders.put(None)

    signal.signal(signal.SIGTERM, terminate)
    warm_up, memory = pipe.recv()
    threading.Thread(target=read, daemon=True).start()  # A stop must be heard while a job runs.
    if warm_up is not None:
        warm_up()
    if memory is not None and sys.platform == "linux":  # No other system counts what is in use.
        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    pipe.send_bytes(cloudpickle.dumps(("ready", None)))
    while (order := orders.get()) is not None:
        job, message = order
        pipe.send_bytes(job._answer(message))
