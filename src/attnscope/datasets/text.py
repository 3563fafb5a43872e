"""Opening text as it was published: plain, gzip, xz, and members of zip and tar.

Nothing is unpacked to disk and nothing is read whole before its size is known to be small. A file
that cannot be read is an :class:`~attnscope.errors.AttnscopeError` with its name and line.
"""

from __future__ import annotations

import gzip
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from attnscope.errors import AttnscopeError

LINE_LIMIT = 10 * 2**20
"""The longest line, or document that is a file of its own, in bytes."""

BLANK = "blank line"
UNSAFE = "link or unsafe name in the archive"

_MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00"}
_SUFFIX = {".gz": "gzip", ".tgz": "gzip", ".xz": "xz", ".txz": "xz"}
_OPENERS: dict[str | None, Callable[..., IO[bytes]]] = {
    "gzip": cast("Callable[..., IO[bytes]]", gzip.open),
    "xz": cast("Callable[..., IO[bytes]]", lzma.open),
    None: open,
}
_ARCHIVE = re.compile(r"\.(zip|tar(\.(gz|xz))?|tgz|txz)$", re.IGNORECASE)
_DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, zipfile.BadZipFile)


@dataclass
class Place:
    """Where a reader stands, for its sentences: a file, or a member of one, and a line."""

    name: str
    line: int = 0
    unit: str = "line"

    def __str__(self) -> str:
        return f"'{self.name}', {self.unit} {self.line}"

    def error(self, sentence: str) -> AttnscopeError:
        """Return the error that begins with this place; the caller raises it."""
        return AttnscopeError(f"{self}: {sentence}")


@dataclass(frozen=True)
class Member:
    """One file of an archive or folder, open for a single reading.

    Args:
        path: its name inside, with ``/`` between the parts.
        label: the archive and the name, for messages.
        stream: its bytes; good until the next member is asked for.
    """

    path: PurePosixPath
    label: str
    stream: IO[bytes]

    def lines(self, encoding: str = "utf-8", limit: int = LINE_LIMIT) -> Iterator[tuple[int, str]]:
        """Yield ``(number, line)`` like :func:`lines`."""
        return stream_lines(self.stream, self.label, encoding, limit)

    def text(self, encoding: str = "utf-8", limit: int = LINE_LIMIT) -> str:
        """Return the whole member as text, without the carriage returns at its line ends."""
        with damage_as_sentence(Place(self.label)):
            # In pieces: a buffered read makes room for all that it is asked for.
            pieces = iter(lambda: self.stream.read(2**16), b"")
            data = b"".join(_up_to(limit, pieces))
        if len(data) > limit:
            raise AttnscopeError(
                f"'{self.label}' is longer than {limit} bytes: expected one document of at most "
                "that length."
            )
        if encoding == "utf-8" and data.isascii() and b"\0" not in data:
            return data.decode("ascii").replace("\r\n", "\n")
        decode = _Decoder(self.label, encoding)
        rows = data.split(b"\n")
        return "\n".join(decode(number, row) for number, row in enumerate(rows, 1))


def lines(
    path: Path, encoding: str = "utf-8", limit: int = LINE_LIMIT
) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` of a plain, gzip or xz file; numbers begin at 1.

    A line ends at a line feed (a carriage return before it goes too), never at the other
    characters that Unicode calls line ends: those stand inside published sentences. A byte-order
    mark is taken off.

    Args:
        path: the file. Its packing is told by its first bytes.
        encoding: ``"utf-8"`` or ``"latin-1"``.
        limit: the longest line allowed, in bytes; no more than that is held in memory.

    Raises:
        AttnscopeError: with file and line, if the file is not there, damaged or cut short, if a
            line is too long, holds a NUL byte or is not in the encoding.
    """
    with open_bytes(path) as stream:
        yield from stream_lines(stream, str(path), encoding, limit)


def stream_lines(
    stream: IO[bytes], name: str, encoding: str = "utf-8", limit: int = LINE_LIMIT
) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` of an open stream of bytes; see :func:`lines`."""
    place = Place(name)
    decode = _Decoder(name, encoding)
    while True:
        with damage_as_sentence(place):
            # Two more for the line end, so that a line of exactly the limit passes.
            raw = stream.readline(limit + 2)
        if not raw:
            return
        place.line += 1
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(raw) > limit:
            raise place.error(
                f"the line is longer than {limit} bytes. Expected text with one record a line; "
                "is this the right file?"
            )
        yield place.line, decode(place.line, raw)


def filled(rows: Iterator[tuple[int, str]], skipped: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank; blank ones are counted, save at the end of the file."""
    blank = 0
    for number, line in rows:
        if not line or line.isspace():
            blank += 1
            continue
        if blank:
            skipped[BLANK] += blank
            blank = 0
        yield number, line


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacked if it is gzip or xz."""
    with _missing_as_sentence(path), path.open("rb") as file:
        head = file.read(6)
    packing = next((name for name, magic in _MAGIC.items() if head.startswith(magic)), None)
    promised = _SUFFIX.get(path.suffix.lower())
    if promised not in (None, packing):
        raise AttnscopeError(
            f"'{path}' is named like a {promised} file but does not begin like one (its first "
            f"bytes are {head!r}). Fetch it again, or take '{path.suffix}' off its name."
        )
    with _OPENERS[packing](path, "rb") as stream:
        yield stream


def members(path: Path, skipped: Counter[str]) -> Iterator[Member]:
    """Yield the files of a zip, a tar (plain, gzip or xz) or a folder, each once, in their order.

    A tar is read from front to back without a step back, so its cost is that of unpacking. Links
    and names that are absolute or hold ``..`` are not read; they are counted in ``skipped``. The
    files of a folder come sorted by name.
    """
    if path.is_dir():
        yield from _folder_members(path, skipped)
        return
    if zipfile.is_zipfile(path):
        yield from _zip_members(path, skipped)
    elif path.suffix.lower() == ".zip":
        raise AttnscopeError(f"'{path}' is damaged or cut short: no zip directory at its end.")
    else:
        yield from _tar_members(path, skipped)


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
    if not (path.is_dir() or _ARCHIVE.search(path.name) or zipfile.is_zipfile(path)):
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


def _folder_members(path: Path, skipped: Counter[str]) -> Iterator[Member]:
    for file in sorted(path.rglob("*")):
        if file.is_symlink():
            skipped[UNSAFE] += 1
        elif file.is_file():
            with file.open("rb") as stream:
                yield Member(PurePosixPath(file.relative_to(path).as_posix()), str(file), stream)


def _zip_members(path: Path, skipped: Counter[str]) -> Iterator[Member]:
    with damage_as_sentence(Place(str(path))), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        for info in entries:
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
                yield Member(name, label, stream)


def _tar_members(path: Path, skipped: Counter[str]) -> Iterator[Member]:
    place = Place(str(path), unit="member")
    with open_bytes(path) as raw, damage_as_sentence(place):
        tail = _Tail(raw)
        with tarfile.open(fileobj=cast("IO[bytes]", tail), mode="r|", bufsize=2**18) as archive:
            for info in archive:
                place.line += 1
                name = PurePosixPath(info.name)
                if info.isdir():
                    continue
                if not info.isreg() or _unsafe(name):
                    skipped[UNSAFE] += 1
                    continue
                stream = archive.extractfile(info)
                assert stream is not None  # it is a regular file
                yield Member(name, f"{path}/{name}", stream)
        tail.check()


class _Tail:
    """A stream of bytes that knows how a tar ends: with a block of zeros.

    ``tarfile`` takes the end of a file inside a header for the end of the archive, and leaves the
    checksum at the end of a packed file unread.
    """

    def __init__(self, stream: IO[bytes]) -> None:
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


def _unsafe(name: PurePosixPath) -> bool:
    return name.is_absolute() or ".." in name.parts or "\\" in str(name)


class _Decoder:
    """Bytes of a line to text, or a sentence that says which encoding the file may have."""

    def __init__(self, name: str, encoding: str) -> None:
        self.place = Place(name)
        self.encoding = encoding
        self.seen = False  # a line that is UTF-8 and not ASCII: then a bad one means a mixture

    def __call__(self, number: int, raw: bytes) -> str:
        if number == 1 and self.encoding == "utf-8":
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        self.place.line = number
        if b"\0" in raw:
            utf16 = number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "The file looks like UTF-16; convert it to UTF-8." if utf16 else "Is it text?"
            raise self.place.error(f"there is a NUL byte. Expected text. {hint}")
        raw = raw.removesuffix(b"\r")
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise self._wrong(raw, error) from error
        self.seen = self.seen or not text.isascii()
        return text

    def _wrong(self, raw: bytes, error: UnicodeDecodeError) -> AttnscopeError:
        likely = "Windows-1252" if any(0x80 <= byte < 0xA0 for byte in raw) else "Latin-1"
        code = "cp1252" if likely == "Windows-1252" else "latin1"
        hint = (
            f"Lines before it are UTF-8, so the file mixes encodings; this line may be {likely}."
            if self.seen
            else f"The file may be {likely}; `iconv -f {code} -t utf-8` converts it."
        )
        return self.place.error(
            f"byte 0x{raw[error.start]:02x} at position {error.start + 1} is not UTF-8, which was "
            f"expected. {hint}"
        )


@contextmanager
def _missing_as_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = error.strerror or error
        raise AttnscopeError(f"'{path}' cannot be read: {what}. Expected a file.") from error


@contextmanager
def damage_as_sentence(place: Place) -> Iterator[None]:
    """Turn what a damaged packed file raises into a sentence that says how far it was read."""
    try:
        yield
    except (*_DAMAGE, tarfile.ReadError) as error:
        read = f"it was read up to {place.unit} {place.line}" if place.line else "nothing was read"
        raise AttnscopeError(
            f"'{place.name}' is damaged, cut short or not what its name says: {read} ({error}). "
            "Expected a whole file; fetch it again."
        ) from error
