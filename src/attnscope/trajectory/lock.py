"""One writer: a lock on a run's folder, with the name of its owner in it.

The lock is advisory (``flock``), so the system gives it back when its owner dies, however that
happens. Worker processes inherit the open file: as long as one of them lives, nobody else writes.
Readers never need it. Where the file system has no such locks, the owner's process is looked up.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attnscope.errors import AttnscopeError
from attnscope.files import read_bytes

if sys.platform != "win32":
    import fcntl

NAME = ".writer"
REPORT = ".report-writer"
"""The lock of whoever writes findings and a report, which may be done while training goes on."""
PATIENCE = 5.0
"""Seconds that the workers of a process which has died get to follow it."""


class Busy(AttnscopeError):
    """Somebody else is writing there."""


class Lock:
    """The right to write to a folder.

    Args:
        folder: it has to exist.
        what: what the owner does, in words for whoever comes second.
        name: of the lock; writers of reports have one of their own.
        patience: seconds that the workers of a dead owner get; ``PATIENCE`` unless given.

    Raises:
        Busy: somebody else has it; the message says who, and since when.
        AttnscopeError: the folder cannot be written to.
        FileNotFoundError: the folder is gone.
    """

    def __init__(
        self, folder: Path, what: str, *, name: str = NAME, patience: float | None = None
    ) -> None:
        self.path = folder / name
        self._file = self._take(what, PATIENCE if patience is None else patience)

    @property
    def descriptor(self) -> int:
        """The open file, for workers to hold."""
        return self._file

    def _take(self, what: str, patience: float) -> int:
        deadline = time.monotonic() + patience
        while True:
            file = _open(self.path)
            try:
                taken = _try(file, self.path)
                # Whoever had it before may have taken the file away: then this one means nothing.
                if taken and _same(file, self.path):
                    with contextlib.suppress(OSError):  # On a full disk it holds all the same.
                        os.ftruncate(file, 0)
                        os.pwrite(file, json.dumps(_owner(what)).encode(), 0)
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)
            owner = owner_of(self.path)
            gone = not owner or _is_dead(owner)
            if not taken and (not gone or time.monotonic() > deadline):
                raise Busy(
                    f"'{self.path.parent}' is being written by {_said(owner)}: expected nobody "
                    "else. Wait until it is done, or choose another --out."
                )
            time.sleep(0.02)

    def release(self) -> None:
        """Give it back."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                if _same(self._file, self.path):
                    self.path.unlink()
            os.close(self._file)
            self._file = -1

    def moved(self, folder: Path) -> None:
        """Hear that the folder has another name now."""
        self.path = folder / self.path.name

    def __enter__(self) -> Self:
        """Return the lock."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self.release()


def owner_of(lock: Path) -> dict[str, Any]:
    """Return what a lock's file says of its owner; empty if it says nothing."""
    try:
        owner = json.loads(read_bytes(lock, 10_000))
        return owner if isinstance(owner, dict) else {}
    except (AttnscopeError, OSError, ValueError, RecursionError):
        return {}


def _owner(what: str) -> dict[str, Any]:
    return {
        "what": what,
        "host": socket.gethostname(),
        "process": os.getpid(),
        "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _said(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return (
        f"process {owner.get('process')} on {owner.get('host')} "
        f"since {owner.get('since')} ({owner.get('what')})"
    )


def _open(path: Path) -> int:
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise AttnscopeError(
            f"'{path.parent}' cannot be written to ({error.strerror}): expected a folder that you "
            "may write to."
        ) from error


def _try(file: int, path: Path) -> bool:
    """Try to take a lock that lasts as long as the file is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise
        owner = owner_of(path)  # This file system has no locks.
        return not owner or _is_dead(owner)


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False


def _is_dead(owner: dict[str, Any]) -> bool:
    """Return whether the owner was a process of this computer and is gone."""
    process = owner.get("process")
    if owner.get("host") != socket.gethostname() or not isinstance(process, int):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
