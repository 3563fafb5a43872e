"""A process for every case, without importing PyTorch for every case.

Nothing that computes gradients may have run in the process that forks: PyTorch's threads do not
survive it.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HUNG = 300.0
"""Seconds after which a process is taken to hang; where it does is among what it printed."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Args:
        code: its exit code; negative for a signal.
        value: what its function returned.
        trouble: the traceback of what its function raised.
        hung: whether it had to be ended.
    """

    code: int
    value: Any = None
    trouble: str = ""
    hung: bool = False


@dataclass(frozen=True)
class Child:
    """A process that has been started, in a session of its own."""

    process: int
    pipe: int

    def wait(self, patience: float = HUNG) -> Ended:
        """Wait for its end."""
        data, deadline, hung = b"", time.monotonic() + patience, False
        while True:
            ready, _, _ = select.select([self.pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                hung = True
                os.killpg(self.process, signal.SIGKILL)
                break
            part = os.read(self.pipe, 1 << 16)
            if not part:
                break
            data += part
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        value, trouble = pickle.loads(data) if data and not hung else (None, "")
        return Ended(os.waitstatus_to_exitcode(status), value, trouble, hung)


def start(function: Callable[..., Any], *args: Any, printed: Path | None = None) -> Child:
    """Call a function in a process of its own.

    Args:
        function: what to call.
        args: with what.
        printed: where its output goes; nowhere unless given.
    """
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        os.close(theirs)
        return Child(process, ours)
    answer: tuple[Any, str] = (None, "")
    code = 1
    try:
        os.close(ours)
        os.setsid()
        where = os.open(printed or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(where, 1)
        os.dup2(where, 2)
        faulthandler.dump_traceback_later(HUNG - 10, file=2)
        answer, code = (function(*args), ""), 0
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        answer = (None, traceback.format_exc())
    finally:
        with os.fdopen(theirs, "wb") as file:
            pickle.dump(answer, file)
        os._exit(code)


def call(function: Callable[..., Any], *args: Any, printed: Path | None = None) -> Ended:
    """Call a function in a process of its own, and wait for it."""
    return start(function, *args, printed=printed).wait()
