"""Counting what is read while it is read; what a packed file says of its size is not believed."""

from __future__ import annotations

from typing import IO

from attnscope.limits import BYTES, ROWS, Limit


class Meter:
    """Rows and bytes of one file, archive or folder; it raises when there are too many.

    Args:
        name: of the file, for the sentence.
        rows: how many rows at most.
        size: how many bytes at most, after unpacking.
    """

    def __init__(self, name: str, rows: Limit = ROWS, size: Limit = BYTES) -> None:
        self.name = name
        self.rows = self.size = 0
        self._limits = rows, size
        self._most_rows, self._most_size = rows.value(), size.value()

    def add_row(self) -> None:
        """Count a row.

        Raises:
            AttnscopeError: there are more than the limit allows.
        """
        self.rows += 1
        if self.rows > self._most_rows:
            raise self._limits[0].exceeded(f"'{self.name}' has more than {self._most_rows:,} rows")

    def add_bytes(self, count: int) -> None:
        """Count bytes.

        Raises:
            AttnscopeError: there are more than the limit allows.
        """
        self.size += count
        if self.size > self._most_size:
            raise self._limits[1].exceeded(
                f"'{self.name}' unpacks to more than {self._most_size:,} bytes"
            )


class Metered:
    """A stream of bytes whose reading is counted."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self.stream = stream
        self.meter = meter

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        data = self.stream.read(size)
        self.meter.add_bytes(len(data))
        return data

    def readline(self, size: int) -> bytes:
        """Return the next line, or its first bytes."""
        data = self.stream.readline(size)
        self.meter.add_bytes(len(data))
        return data
