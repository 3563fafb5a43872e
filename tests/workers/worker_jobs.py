"""Jobs to send to workers."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.workers import Job

NOISE = "." * 100_000
TOO_LONG = 6000
"""Short sleeps until a job gives up waiting for what a test should have done."""


def counts(to: int, job: Job) -> str:
    for number in range(to):
        job.say(number)
    return "counted"


def yields(to: int, job: Job) -> Iterator[int]:
    yield from range(to)


def complains(job: Job) -> None:
    raise AttnscopeError("a sentence")


def breaks(job: Job) -> None:
    raise ValueError("a bug")


def shouts(job: Job) -> int:
    for _ in range(50):
        print(NOISE)
        sys.stderr.write(NOISE)
        os.write(1, NOISE.encode())
    return 50


def leaves(code: int, job: Job) -> None:
    print(NOISE, "\nlast words")
    os._exit(code)


def is_killed(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def waits(job: Job) -> str:
    """Go on until stopped."""
    job.say(os.getpid())
    for _ in range(TOO_LONG):
        if job.stopped():
            return "stopped"
        time.sleep(0.01)
    return "not stopped"


def yields_for_ever(job: Job) -> Iterator[int]:
    number = 0
    while True:
        yield (number := number + 1)


def takes(size: int, job: Job) -> int:
    return len(bytearray(size))


def prepare() -> None:
    os.environ["PREPARED"] = "yes"


def surroundings(job: Job) -> dict[str, Any]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PREPARED")
    return {
        "environment": [os.environ.get(name) for name in names],
        "queue": queue.__file__,
        "attnscope": attnscope.__file__,
        "path": sys.path,
        "arguments": sys.argv,
    }


def meets(folder: Path, number: int, job: Job) -> int:
    """Wait until the job of the neighbouring number is under way too."""
    (folder / str(number)).touch()
    for _ in range(TOO_LONG):
        if (folder / str(number ^ 1)).exists():
            return os.getpid()
        time.sleep(0.01)
    raise AttnscopeError(f"{number} is alone")


def keeps(folder: Path, number: int, job: Job) -> None:
    """Write a checkpoint when stopped."""
    (folder / str(number)).write_text(waits(job))


def fails(number: int, job: Job) -> int:
    if number == 1:
        breaks(job)
    if number == 2:
        complains(job)
    if number == 3:
        is_killed(job)
    return number


def lingers(job: Job) -> None:
    job.say("begun")
    for _ in range(TOO_LONG):
        if job.stopped():
            break
        time.sleep(0.01)
    job.say("stopped")
