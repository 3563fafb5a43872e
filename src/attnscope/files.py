"""Files that are either the old one or the new one, never half of it."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnscope.errors import DiskFullError


def write_bytes(path: Path, data: bytes) -> Path:
    """Write beside ``path`` and rename over it; make the folder if need be.

    Raises:
        DiskFullError: there is no room; the old file is untouched.
    """
    with disk_full_as_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by tempfile, whose files only their owner may read.
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


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
