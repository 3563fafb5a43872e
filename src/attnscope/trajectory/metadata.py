"""What a Zarr store says of its groups and arrays, with a digest by which damage is seen.

``zarr.json`` is Zarr's own; the digest of everything else in it, and of its place in the store, is
one of its attributes.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c

from attnscope.files import read_bytes, write_bytes
from attnscope.trajectory.documents import DamagedFile, digest_of, read_json

SEAL = "attnscope_digest"
"""The attribute that holds the digest."""
SUM = 4
"""Bytes of a checksum at the end of a chunk."""
LIMIT = 2**33
"""Bytes that a chunk may have."""


def seal(file: Path) -> None:
    """Write the digest of a ``zarr.json`` into it."""
    write_metadata(file, read_json(file))


def write_metadata(file: Path, metadata: dict[str, Any]) -> None:
    """Write a ``zarr.json`` with its digest."""
    attributes = {k: v for k, v in metadata.get("attributes", {}).items() if k != SEAL}
    said = json.loads(json.dumps({**metadata, "attributes": attributes}))
    said["attributes"] = {**attributes, SEAL: _digest(file, said)}
    write_bytes(file, json.dumps(said, indent=1).encode())


def read_metadata(file: Path, *, sealed: bool) -> dict[str, Any]:
    """Read a ``zarr.json`` without its digest.

    Args:
        file: where it lies.
        sealed: whether a digest has to be there.

    Raises:
        DamagedFile: it is gone, or is not what was written.
    """
    try:
        metadata = read_json(file)
    except FileNotFoundError:
        raise DamagedFile(file, "is gone") from None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("attributes", {}), dict):
        raise DamagedFile(file, "is damaged (it is no metadata of Zarr)")
    said = metadata.get("attributes", {}).pop(SEAL, None)
    if (sealed or said is not None) and said != _digest(file, metadata):
        what = "has no digest" if said is None else "does not fit its digest"
        raise DamagedFile(file, f"is damaged (it {what})")
    return metadata


def _digest(file: Path, metadata: dict[str, Any]) -> str:
    """Return the digest of metadata that lie there, and not elsewhere in the store."""
    place = itertools.takewhile(lambda folder: folder.suffix != ".zarr", file.parents)
    return digest_of({**metadata, "place": "/".join(folder.name for folder in place)})


def checksum(data: bytes) -> bytes:
    """Return the CRC-32C of a chunk, as Zarr's codec ``crc32c`` appends it."""
    value: int = google_crc32c.value(data)
    return value.to_bytes(SUM, "little")


def is_whole(data: bytes) -> bool:
    """Return whether a chunk fits the checksum at its end."""
    return len(data) >= SUM and checksum(data[:-SUM]) == data[-SUM:]


@dataclass(frozen=True)
class Layout:
    """Where the chunks of an array lie, as its metadata say.

    Args:
        folder: of the array.
        metadata: of the array.
    """

    folder: Path
    metadata: dict[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its axes."""
        return tuple(map(int, self.metadata["shape"]))

    @property
    def chunks(self) -> tuple[int, ...]:
        """The lengths of a chunk's axes."""
        return tuple(map(int, self.metadata["chunk_grid"]["configuration"]["chunk_shape"]))

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of its axes."""
        return tuple(self.metadata.get("dimension_names") or ())

    @property
    def checked(self) -> bool:
        """Whether every chunk ends with a checksum."""
        codecs = self.metadata.get("codecs", ())
        return bool(codecs) and codecs[-1].get("name") == "crc32c"

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of every chunk that the array can have."""
        counts = [math.ceil(n / c) for n, c in zip(self.shape, self.chunks, strict=True)]
        yield from itertools.product(*map(range, counts))

    def sums(self) -> str:
        """Return the checksums of all chunks, one after the other, as hexadecimal text."""
        files = [self.folder / self.key(place) for place in self.places()]
        return "".join(read_bytes(file, LIMIT)[-SUM:].hex() for file in files)

    def key(self, place: tuple[int, ...]) -> str:
        """Return the name of a chunk below the array's folder."""
        return "/".join(["c", *map(str, place)])

    def with_length(self, axis: int, length: int) -> Layout:
        """Return the same array with another length along an axis."""
        shape = [*self.shape]
        shape[axis] = length
        return Layout(self.folder, {**self.metadata, "shape": shape})
