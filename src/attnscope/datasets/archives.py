"""Files inside zip and tar archives and folders, one after another, read once from front to back.

Nothing is unpacked to disk, and nothing that an archive says of itself is believed: sizes are
counted while they are read, and links and names that leave the folder are not followed.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from attnscope.datasets.meter import Meter, Metered
from attnscope.datasets.text import (
    LINE_LIMIT,
    Decoder,
    Place,
    check_regular,
    damage_as_sentence,
    lines,
    open_bytes,
    stream_lines,
    unreadable_as_sentence,
)
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS, Limit

UNSAFE = "link or unsafe name in the archive"

_ARCHIVE = re.compile(r"\.(zip|tar(\.(gz|xz))?|tgz|txz)$", re.IGNORECASE)
_HEADER_LIMIT = 2**20
"""Bytes of a header of a tar that holds a long name; tarfile reads it whole."""


@dataclass(frozen=True)
class Member:
    """One file of an archive or folder, open for a single reading.

    Args:
        path: its name inside, with ``/`` between the parts.
        label: the archive and the name, for messages.
        stream: its bytes; good until the next member is asked for.
        meter: counts rows and bytes of the whole archive.
    """

    path: PurePosixPath
    label: str
    stream: IO[bytes] | Metered
    meter: Meter

    def lines(self, encoding: str = "utf-8", limit: int = LINE_LIMIT) -> Iterator[tuple[int, str]]:
        """Yield ``(number, line)`` like :func:`lines`."""
        return stream_lines(self.stream, self.label, self.meter, encoding, limit)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes, 64 kB at a time: a read makes room for all that it is asked for."""
        while True:
            with damage_as_sentence(Place(self.label)):
                block = self.stream.read(2**16)
            if not block:
                return
            yield block

    def text(self, encoding: str = "utf-8", limit: int = LINE_LIMIT) -> str:
        """Return the whole member as text, without the carriage returns at its line ends."""
        data = b"".join(_up_to(limit, self.blocks()))
        if len(data) > limit:
            raise AttnscopeError(
                f"'{self.label}' is longer than {limit} bytes: expected one document of at most "
                "that length."
            )
        if encoding == "utf-8" and data.isascii() and b"\0" not in data:
            return data.decode("ascii").replace("\r\n", "\n")
        decode = Decoder(self.label, encoding)
        rows = data.split(b"\n")
        return "\n".join(decode(number, row) for number, row in enumerate(rows, 1))


def members(
    path: Path, skipped: Counter[str], rows: Limit = ROWS, size: Limit = BYTES
) -> Iterator[Member]:
    """Yield the files of a zip, a tar (plain, gzip or xz) or a folder, each once, in their order.

    A tar is read from front to back without a step back, so its cost is that of unpacking. Links
    and names that are absolute or hold ``..`` are not read; they are counted in ``skipped``. The
    files of a folder come sorted by name.

    Args:
        path: the archive or folder.
        skipped: counts what is left out for safety.
        rows: how many rows, members included, are read at most.
        size: how many bytes are read at most, after unpacking.

    Raises:
        AttnscopeError: it is not there or damaged, or there is more than the limits allow.
    """
    meter = Meter(str(path), rows, size)
    if os.path.isdir(path):
        yield from _folder_members(path, skipped, meter)
        return
    check_regular(path)
    if zipfile.is_zipfile(path):
        yield from _zip_members(path, skipped, meter)
    elif path.suffix.lower() == ".zip":
        raise AttnscopeError(f"'{path}' is damaged or cut short: no zip directory at its end.")
    else:
        yield from _tar_members(path, skipped, meter)


def sources(
    path: Path, wanted: str, skipped: Counter[str], encoding: str = "utf-8"
) -> Iterator[tuple[str, Iterator[tuple[int, str]]]]:
    """Yield ``(name, lines)`` of a file, or of each wanted member of an archive or folder.

    Args:
        path: a text file, or a zip, a tar or a folder.
        wanted: the pattern of the members to read, searched for in their names.
        skipped: counts what is left out for safety.
        encoding: see :func:`lines`.

    Raises:
        AttnscopeError: if the archive has no such member.
    """
    if not os.path.isdir(path):
        check_regular(path)
    if not (os.path.isdir(path) or _ARCHIVE.search(path.name) or zipfile.is_zipfile(path)):
        yield str(path), lines(path, encoding)
        return
    found = False
    for member in members(path, skipped):
        if re.search(wanted, str(member.path)):
            found = True
            yield member.label, member.lines(encoding)
    if not found:
        raise AttnscopeError(
            f"'{path}' holds no file of the set. Expected a name that matches '{wanted}'."
        )


def _folder_members(path: Path, skipped: Counter[str], meter: Meter) -> Iterator[Member]:
    found: list[Path] = []
    for file in path.rglob("*"):
        meter.add_row()
        found.append(file)
    for file in sorted(found):
        if file.is_symlink():
            skipped[UNSAFE] += 1
        elif file.is_file():
            with unreadable_as_sentence(file):
                stream = file.open("rb")
            with stream:
                name = PurePosixPath(file.relative_to(path).as_posix())
                yield Member(name, str(file), Metered(stream, meter), meter)


def _zip_members(path: Path, skipped: Counter[str], meter: Meter) -> Iterator[Member]:
    with damage_as_sentence(Place(str(path))), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            meter.add_row()
            if info.is_dir():
                continue
            name = PurePosixPath(info.filename)
            # Made on Unix, an entry keeps the file's mode in the upper half.
            if stat.S_ISLNK(info.external_attr >> 16) or _unsafe(name):
                skipped[UNSAFE] += 1
                continue
            label = f"{path}/{name}"
            try:
                stream = archive.open(info)
            except (RuntimeError, NotImplementedError) as error:
                raise AttnscopeError(f"'{label}' cannot be read: {error}.") from error
            with stream:
                yield Member(name, label, Metered(stream, meter), meter)


def _tar_members(path: Path, skipped: Counter[str], meter: Meter) -> Iterator[Member]:
    place = Place(str(path), unit="member")
    with open_bytes(path, meter) as raw, damage_as_sentence(place):
        tail = _Tail(raw)
        with tarfile.open(
            fileobj=cast("IO[bytes]", tail), mode="r|", bufsize=2**18, tarinfo=_Entry
        ) as archive:
            for info in archive:
                place.line += 1
                meter.add_row()
                name = PurePosixPath(info.name)
                if info.isdir():
                    continue
                if not info.isreg() or _unsafe(name):
                    skipped[UNSAFE] += 1
                    continue
                stream = archive.extractfile(info)
                if stream is None:
                    raise tarfile.ReadError(f"the member '{name}' holds no bytes")
                # Its bytes are counted where the whole tar is read.
                yield Member(name, f"{path}/{name}", stream, meter)
        tail.check()


class _Entry(tarfile.TarInfo):
    """A header of a tar; one that names itself longer than any name is damage.

    ``tarfile`` reads the long name or the attributes of a member whole, whatever their length.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        names = (
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.SOLARIS_XHDTYPE,
        )
        if self.type in names and not 0 <= self.size <= _HEADER_LIMIT:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]


class _Tail:
    """A stream of bytes that knows how a tar ends: with a block of zeros.

    ``tarfile`` takes the end of a file inside a header for the end of the archive, and leaves the
    checksum at the end of a packed file unread.
    """

    def __init__(self, stream: Metered) -> None:
        self.stream = stream
        self.last = b""

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.last = (self.last + data[-tarfile.BLOCKSIZE :])[-tarfile.BLOCKSIZE :]
        return data

    def check(self) -> None:
        while self.read(2**18):
            pass
        if self.last != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("there is no mark of the end")


def _up_to(limit: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces until their length is above the limit."""
    length = 0
    for piece in pieces:
        yield piece
        length += len(piece)
        if length > limit:
            return


def by_number(digits: str) -> tuple[int, str]:
    """Return what sorts names as their numbers; Python makes no number of thousands of digits."""
    bare = digits.lstrip("0")
    return len(bare), bare


def _unsafe(name: PurePosixPath) -> bool:
    return name.is_absolute() or ".." in name.parts or "\\" in str(name)
