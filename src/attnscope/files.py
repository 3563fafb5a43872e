"""Files that are either the old one or the new one, never half of it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from attnscope.errors import AttnscopeError, DiskFullError

HALF_WRITTEN = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
"""Names of files that a killed process may leave: what was to be moved to its place."""
TEXT_LIMIT = 2**28
"""Bytes that a text which a run keeps about itself may have."""
SIDE_BY_SIDE = 16
"""A file system writes many files out together if it is asked for them at the same time."""


def write_bytes(path: Path, data: bytes, *, sync: bool = False) -> Path:
    """Write beside ``path`` and rename over it; make the folder if need be.

    Args:
        path: where it goes.
        data: what it will hold.
        sync: whether it has to be on the disk, and not in the system's memory, on return.

    Raises:
        DiskFullError: there is no room; the old file is untouched.
    """
    with disk_full_as_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by tempfile, whose files only their owner may read.
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        if sync:
            onto_disk(path.parent)
    return path


def read_bytes(path: Path, limit: int = TEXT_LIMIT) -> bytes:
    """Read a file that anybody may have put there.

    Raises:
        AttnscopeError: it is not an ordinary file, it is too large, or it cannot be read.
        FileNotFoundError: there is none.
    """
    try:
        # Opening a pipe would wait for somebody who writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise AttnscopeError(f"'{path}' is not an ordinary file: expected one.")
            if about.st_size > limit:
                raise AttnscopeError(
                    f"'{path}' has {about.st_size:,} bytes: expected at most {limit:,}."
                )
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AttnscopeError(f"'{path}' cannot be read ({reason}).") from error


def sync_all(files: Iterable[Path], below: Path) -> None:
    """Have files and the folders they lie in, up to ``below``, on the disk on return."""
    files = list(files)
    folders = {below}
    for file in files:
        parent = file.parent
        while parent not in folders and below in parent.parents:
            folders.add(parent)
            parent = parent.parent
    with disk_full_as_sentence(below), ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(onto_disk, files))
        list(pool.map(onto_disk, folders))


def onto_disk(path: Path) -> None:
    """Have a file or a folder on the disk on return, where the system can do that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # It has been replaced or taken away since, by ourselves.
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # not on this disk
            raise
    finally:
        os.close(descriptor)


@contextmanager
def disk_full_as_sentence(path: Path) -> Iterator[None]:
    """Turn "no space left on device" into a sentence that says what is kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(
            f"the disk is full: '{path}' could not be written. What was written before is whole "
            "and readable. Expected free space: make some, then run again with --resume."
        ) from error
