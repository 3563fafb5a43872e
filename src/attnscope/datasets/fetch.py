"""Downloads from the publisher: with progress, resumed, checked, and written atomically.

A download grows in ``NAME.part`` beside its place; ``NAME.part.json`` says which address and which
version of the file the bytes are of. A later call goes on from there if the server still has the
same version, and starts anew if not. The file gets its name only when it is whole and checked.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import IO

from attnscope.datasets.check import damage, file_problem
from attnscope.datasets.first_seen import checksum, note
from attnscope.datasets.place import at
from attnscope.datasets.record import DataFile, DataSet
from attnscope.datasets.web import Answer, connect
from attnscope.errors import AttnscopeError, DiskFullError

Listener = Callable[[DataFile, int, "int | None"], None]
"""Is told of a file, how many bytes of it are there, and how many there will be, if known."""

CHUNK = 1 << 16
_HTML = (b"<!doctype html", b"<html")


def get(dataset: DataSet, folder: Path, listener: Listener | None = None) -> dict[DataFile, Path]:
    """Fetch the files of a data set that are not there yet; return where each lies.

    A file counts as there under its published name alone, plain or packed: an alternative may be
    a part of it.

    Raises:
        AttnscopeError: it cannot be fetched, or what arrived is not the file. What is there stays.
    """
    if dataset.kind == "generated":
        raise AttnscopeError(f"{dataset.title} cannot be fetched. {dataset.note}")
    missing = [file for file in dataset.files if not at(file.path, folder)]
    if not all(file.url for file in missing):
        raise AttnscopeError(
            f"{dataset.title} cannot be fetched. {dataset.note} Its page is {dataset.published}. "
            f"The data folder is '{folder}'."
        )
    for file in missing:
        download(file, folder, listener)
    return {file: path for file in dataset.files if (path := at(file.path, folder))}


def download(file: DataFile, folder: Path, listener: Listener | None = None) -> Path:
    """Fetch one file to its place in the data folder, going on with a download cut short.

    Raises:
        AttnscopeError: with the address and what is wrong. Bytes of a download that was cut short
            are kept; those of a file that is not what it should be are not.
    """
    target = folder / file.saved_as
    part = target.with_name(target.name + ".part")
    with _writing(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        _fill(file, part, listener)
        problem = damage(part, target.name) or file_problem(file, part, target.name)
        if part.stat().st_size == 0:
            problem = "it is empty"
        if problem:
            _discard(part)
            raise AttnscopeError(
                f"what arrived from {file.url} is not the file: {problem}. It was deleted. "
                "The publisher may have changed the file, or something between may have."
            )
        if file.sha256 is None:
            note(target.parent, target.name, checksum(part))
        os.replace(part, target)
        _discard(part)
        _sync_folder(target.parent)
    return target


def _fill(file: DataFile, part: Path, listener: Listener | None) -> None:
    """Bring a part to its full length and to the disk."""
    ours = False
    try:
        with part.open("ab") as body:
            _lock(body, part)
            ours = True
            _receive(file, body, part, listener)
            body.flush()
            os.fsync(body.fileno())
    finally:
        if ours and part.stat().st_size == 0 and _noted(part) is None:
            part.unlink()


@dataclass(frozen=True)
class _Version:
    """Which version of which address the bytes in a part are of."""

    url: str
    etag: str = ""
    modified: str = ""
    total: int | None = None

    @classmethod
    def of(cls, url: str, headers: Message, total: int | None) -> _Version:
        return cls(url, headers.get("ETag", ""), headers.get("Last-Modified", ""), total)

    def same(self, other: _Version) -> bool:
        """Whether nothing that both know differs, and both know something."""
        mine, theirs = asdict(self), asdict(other)
        known = [name for name in mine if mine[name] and theirs[name]]
        return len(known) > 1 and all(mine[name] == theirs[name] for name in known)

    def condition(self) -> str:
        """What to send as If-Range; a weak ETag must not be used for it (RFC 9110, 13.1.5)."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified


def _receive(file: DataFile, body: IO[bytes], part: Path, listener: Listener | None) -> None:
    """Go on with a part, or start it anew, until it is whole."""
    known = _noted(part)
    if known is None or known.url != file.url:
        _empty(body, part)
    while not _attempt(file, body, part, listener):
        _empty(body, part)


def _attempt(file: DataFile, body: IO[bytes], part: Path, listener: Listener | None) -> bool:
    """Go on with a part; return False if it is of another version than the server's."""
    there = os.fstat(body.fileno()).st_size
    known = _noted(part)
    with connect(file.url, there, known.condition() if known else "") as answer:
        if answer.start is None:
            # The server has nothing beyond what is here: all of it, or of another version.
            return known is not None and answer.total == known.total == there
        version = _Version.of(file.url, answer.headers, answer.total)
        if answer.start == there > 0 and not (known and known.same(version)):
            return False
        if answer.start not in (0, there):
            raise AttnscopeError(
                f"{file.url} answered from byte {answer.start:,} on, and was asked for byte "
                f"{there:,}. Expected a server that keeps to the protocol."
            )
        # Read before anything is thrown away: a login page must not cost what is here.
        chunk = answer.read(CHUNK)
        if answer.start == 0:
            _refuse_html(file, answer, chunk)
            _empty(body, part)
            _note(part).write_text(json.dumps(asdict(version)), "utf-8")
            there = 0
        while chunk:
            body.write(chunk)
            there += len(chunk)
            if listener:
                listener(file, there, answer.total)
            chunk = answer.read(CHUNK)
    if answer.total is not None and there != answer.total:
        raise AttnscopeError(
            f"the connection for {file.url} was cut after {there:,} of {answer.total:,} bytes. "
            "They are kept: run the same command again to go on from there."
        )
    return True


def _refuse_html(file: DataFile, answer: Answer, chunk: bytes) -> None:
    if answer.html or chunk[:512].lstrip().lower().startswith(_HTML):
        raise AttnscopeError(
            f"{file.url} answered with an HTML page instead of the file: it may have moved, or a "
            "network in between may ask you to log in. Open the address in a browser."
        )


def _noted(part: Path) -> _Version | None:
    try:
        return _Version(**json.loads(_note(part).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _empty(body: IO[bytes], part: Path) -> None:
    # The note goes first: bytes without a note are never taken for a version of the file.
    _note(part).unlink(missing_ok=True)
    body.truncate(0)


def _discard(part: Path) -> None:
    _note(part).unlink(missing_ok=True)
    part.unlink(missing_ok=True)


def _lock(body: IO[bytes], part: Path) -> None:
    """Keep two processes from writing the same part; the system lets go when the file closes."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(body.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise AttnscopeError(
            f"'{part}' is being written by another download. Expected one at a time: wait for it."
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    """Turn what the disk refuses into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"the disk is full: '{part}' could not be written further. What arrived is kept: "
                "make room, then run the same command again to go on from there."
            ) from error
        raise AttnscopeError(
            f"'{part}' cannot be written ({error.strerror or error}). Expected a data folder that "
            "can be written to: name one by --data-dir or ATTNSCOPE_DATA."
        ) from error
