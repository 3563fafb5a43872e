"""Opening text as it was published: plain, gzip or xz, line by line.

Nothing is unpacked to disk and nothing is read whole before its size is known to be small. A file
that cannot be read is an :class:`~attnscope.errors.AttnscopeError` with its name and line.
"""

from __future__ import annotations

import gzip
import lzma
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from attnscope.datasets.meter import Meter, Metered
from attnscope.errors import AttnscopeError

LINE_LIMIT = 10 * 2**20
"""The longest line, or document that is a file of its own, in bytes."""

BLANK = "blank line"

_MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00"}
_SUFFIX = {".gz": "gzip", ".tgz": "gzip", ".xz": "xz", ".txz": "xz"}
_OPENERS: dict[str | None, Callable[..., IO[bytes]]] = {
    "gzip": cast("Callable[..., IO[bytes]]", gzip.open),
    "xz": cast("Callable[..., IO[bytes]]", lzma.open),
    None: open,
}


@dataclass(slots=True)
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


def lines(
    path: Path, encoding: str = "utf-8", limit: int = LINE_LIMIT, meter: Meter | None = None
) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` of a plain, gzip or xz file; numbers begin at 1.

    A line ends at a line feed (a carriage return before it goes too), never at the other
    characters that Unicode calls line ends: those stand inside published sentences. A byte-order
    mark is taken off.

    Args:
        path: the file. Its packing is told by its first bytes.
        encoding: ``"utf-8"`` or ``"latin-1"``.
        limit: the longest line allowed, in bytes; no more than that is held in memory.
        meter: counts rows and bytes; one for files that are held in memory unless given.

    Raises:
        AttnscopeError: with file and line, if the file is not there, damaged or cut short, if a
            line is too long, holds a NUL byte or is not in the encoding; if there are more lines or
            bytes than :mod:`attnscope.limits` allows.
    """
    meter = meter or Meter(str(path))
    with open_bytes(path, meter) as stream:
        yield from stream_lines(stream, str(path), meter, encoding, limit)


def stream_lines(
    stream: IO[bytes] | Metered,
    name: str,
    meter: Meter,
    encoding: str = "utf-8",
    limit: int = LINE_LIMIT,
) -> Iterator[tuple[int, str]]:
    """Yield ``(number, line)`` of an open stream of bytes; see :func:`lines`."""
    place = Place(name)
    decode = Decoder(name, encoding)
    while True:
        with damage_as_sentence(place):
            # Two more for the line end, so that a line of exactly the limit passes.
            raw = stream.readline(limit + 2)
        if not raw:
            return
        place.line += 1
        meter.add_row()
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
def open_bytes(path: Path, meter: Meter) -> Iterator[Metered]:
    """Open a file for reading, unpacked if it is gzip or xz, and count what is read of it."""
    check_regular(path)
    with unreadable_as_sentence(path), path.open("rb") as file:
        head = file.read(6)
    packing = next((name for name, magic in _MAGIC.items() if head.startswith(magic)), None)
    promised = _SUFFIX.get(path.suffix.lower())
    if promised not in (None, packing):
        raise AttnscopeError(
            f"'{path}' is named like a {promised} file but does not begin like one (its first "
            f"bytes are {head!r}). Fetch it again, or take '{path.suffix}' off its name."
        )
    with _OPENERS[packing](path, "rb") as stream:
        yield Metered(stream, meter)


class Decoder:
    """Bytes of a line to text, or a sentence that says which encoding the file may have."""

    def __init__(self, name: str, encoding: str) -> None:
        self.place = Place(name)
        self.encoding = encoding
        self.seen = False  # a line that is UTF-8 and not ASCII: then a bad one means a mixture

    def __call__(self, number: int, raw: bytes) -> str:
        """Return the text of a line; ``number`` is which one."""
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


def check_regular(path: Path) -> None:
    """Refuse what is no file to read from front to back twice: a device, a pipe, a folder.

    Raises:
        AttnscopeError: it is one, or it is not there.
    """
    with unreadable_as_sentence(path):
        mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise AttnscopeError(f"'{path}' is {kind}. Expected a file.")


@contextmanager
def unreadable_as_sentence(path: Path) -> Iterator[None]:
    """Turn what the system says of a file that cannot be opened into a sentence."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: the name holds a NUL
        what = getattr(error, "strerror", None) or error
        raise AttnscopeError(f"'{path}' cannot be read: {what}. Expected a file.") from error


@contextmanager
def damage_as_sentence(place: Place) -> Iterator[None]:
    """Turn what a damaged packed file raises into a sentence that says how far it was read.

    The libraries that unpack raise whatever the bytes lead them to (a negative offset is a
    ``ValueError``, an unknown method a ``NotImplementedError``, a huge dictionary a
    ``MemoryError``), so every exception in here is damage, save a sentence of our own.
    """
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:
        read = f"it was read up to {place.unit} {place.line}" if place.line else "nothing was read"
        raise AttnscopeError(
            f"'{place.name}' is damaged, cut short or not what its name says: {read} "
            f"({error or type(error).__name__}). Expected a whole file; fetch it again."
        ) from error
