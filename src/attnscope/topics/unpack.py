"""A stream of bytes that can be looked into before it is read, unpacked if it is packed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from typing import IO, Any, cast

from attnscope.datasets.meter import Meter, Metered
from attnscope.errors import AttnscopeError

_PACKINGS: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
)
_BLOCK = 2**16


class Bytes(io.RawIOBase):
    """A packed stream that ends where it can be read no further, and then says why.

    A buffered reader drops what it has gathered when the stream below it raises. This one ends
    instead, so that all bytes before the damage are read, and keeps what went wrong.
    """

    def __init__(self, stream: IO[bytes] | Metered, meter: Meter | None = None) -> None:
        super().__init__()
        self.stream = stream
        self.meter = meter
        self.damage: Exception | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is at hand; nothing at the end, and nothing more after damage."""
        if self.damage is not None:
            return 0
        # One block at a time: a longer read would lose what was read before the damage.
        read = getattr(self.stream, "read1", self.stream.read)
        try:
            data = read(min(len(buffer), _BLOCK))
        except AttnscopeError:
            raise
        except Exception as error:  # The libraries raise whatever damaged bytes lead them to.
            self.damage = error
            return 0
        if self.meter is not None:
            self.meter.add_bytes(len(data))
        buffer[: len(data)] = data
        return len(data)


class PackedFile:
    """One file of a corpus: its name for messages, and its bytes, unpacked.

    Args:
        label: the name.
        stream: its bytes, plain or packed by gzip, xz or bzip2; which is told by the first ones.
        meter: counts rows and bytes, after unpacking.
    """

    def __init__(self, label: str, stream: IO[bytes] | Metered, meter: Meter) -> None:
        self.meter = meter
        self.label = label
        self.outer = Bytes(stream)
        self.inner: Bytes | None = None
        self.stream = io.BufferedReader(self.outer, _BLOCK)
        head = self.stream.peek(6)[:6]
        for magic, unpack in _PACKINGS:
            if head.startswith(magic):
                self.inner = Bytes(cast("IO[bytes]", unpack(self.stream, "rb")), meter)
                self.stream = io.BufferedReader(self.inner, _BLOCK)
                break

    @property
    def damage(self) -> Exception | None:
        """What ended the reading before its time, or None."""
        return (self.inner and self.inner.damage) or self.outer.damage

    def head(self) -> bytes:
        """Return the first bytes, 64 kB at most; they are still to be read."""
        return self.stream.peek(_BLOCK)
