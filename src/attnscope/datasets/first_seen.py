"""Checksums of downloads whose publisher gives none: noted at the first, compared ever after.

The note is ``NAME.sha256`` beside the file, in the form that ``sha256sum --check`` reads. It cannot
tell that the first download was right; it tells that nothing has changed since.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from attnscope.datasets.text import unreadable_as_sentence
from attnscope.files import write_bytes

SUFFIX = ".sha256"

_LINE = re.compile(rb"([0-9a-f]{64}) [ *][^\n]*\n?")


def noted(folder: Path, name: str) -> str | None:
    """Return the checksum that was noted when a file was first downloaded.

    Returns:
        The digest; None if there is no note, and an empty text if it cannot be read.
    """
    path = folder / f"{name}{SUFFIX}"
    try:
        with path.open("rb") as file:
            match = _LINE.fullmatch(file.read(4096))
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    return match[1].decode() if match else ""


def note(folder: Path, name: str, digest: str) -> None:
    """Note the checksum of a file."""
    write_bytes(folder / f"{name}{SUFFIX}", f"{digest}  {name}\n".encode(), sync=True)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file as it lies there."""
    with unreadable_as_sentence(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def change(path: Path, name: str) -> str:
    """Return how a file differs from its first download, or an empty text.

    Args:
        path: where its bytes lie.
        name: the name it has, or will have, in the same folder.
    """
    before = noted(path.parent, name)
    if before is None:
        return ""
    kept = f"'{name}{SUFFIX}'"
    if not before:
        return f"{kept} beside it, which keeps its checksum, cannot be read"
    now = checksum(path)
    if now == before:
        return ""
    return (
        f"its SHA-256 is {now}, and was {before} when it was first downloaded; if the publisher "
        f"has changed it on purpose, delete {kept}"
    )
