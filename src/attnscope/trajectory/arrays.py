"""Arrays of a trajectory on disk: made once, then written a whole chunk at a time.

A chunk is one file (Zarr v3 with the codec ``bytes``, ``zstd`` after it where arrays are kept for
long, and a checksum, ``crc32c``), written beside its place and then moved there. So a chunk is
whole or not there at all, and costs tens of microseconds, where an array library needs a
millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import zarr
from numcodecs.zstd import Zstd
from torch import Tensor
from zarr.codecs import Crc32cCodec, ZstdCodec

from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.folder import ALWAYS
from attnscope.trajectory.metadata import SUM, checksum, is_whole, seal

LEVEL = 0
"""Of compression: the default of zstd."""


def clock_name(dim: str) -> str:
    """Return the name of the variable with the times of readings along a dimension."""
    return "time" if dim == "step" else f"time_{dim}"


@dataclass(frozen=True)
class Variable:
    """What an array holds.

    Args:
        name: the variable's name in the trajectory.
        dims: names of the axes of one reading.
        along: name of the dimension that the readings lie along.
        unit: what the number counts, empty for a pure number.
        meaning: a sentence or a formula, kept with the data.
        group: where in the trajectory it goes.
        labels: names of the entries of an axis, by the name of the axis.
    """

    name: str
    dims: tuple[str, ...] = ()
    along: str = "step"
    unit: str = ""
    meaning: str = ""
    group: str = "observables"
    labels: Mapping[str, Sequence[str | int | float]] = field(default_factory=dict)

    @property
    def is_clock(self) -> bool:
        """Whether it is the times of the readings, which are the same for all runs."""
        return self.name == clock_name(self.along)

    def check(self, shape: tuple[int, ...]) -> None:
        """Check that names and labels of axes fit a reading.

        Raises:
            AttnscopeError: they do not.
        """
        sizes = dict(zip(self.dims, shape, strict=False))
        lost = [dim for dim in self.labels if len(self.labels[dim]) != sizes.get(dim)]
        if len(shape) != len(self.dims) or lost:
            given = "".join(f", and {len(self.labels[dim])} labels for '{dim}'" for dim in lost)
            raise AttnscopeError(
                f"'{self.name}' has dims {self.dims} but returned an array of shape {shape}"
                f"{given}: expected a name for each axis, and a label for each entry or none."
            )


@dataclass(frozen=True, eq=False)
class ChunkedArray:
    """The part of an array that belongs to one run, as files of one chunk each.

    Args:
        path: where the array lies.
        shape: of one reading.
        length: readings in a chunk.
        dtype: of its numbers.
        run: which part of it; ``None`` for an array that all runs share.
        packed: whether chunks are compressed.
        checked: whether chunks end with a checksum.
    """

    path: Path
    shape: tuple[int, ...]
    length: int
    dtype: np.dtype[Any]
    run: int | None
    packed: bool
    checked: bool

    @classmethod
    def open(cls, path: Path, run: int | None, array: zarr.Array[Any] | None = None) -> Self:
        """Find an array that was made before."""
        array = zarr.open_array(path, mode="r") if array is None else array
        axis = 0 if run is None else 1
        kinds = {type(codec) for codec in array.compressors}
        return cls(
            path,
            array.shape[axis + 1 :],
            array.chunks[axis],
            array.dtype.newbyteorder("="),
            run,
            ZstdCodec in kinds,
            Crc32cCodec in kinds,
        )

    def write(self, number: int, data: bytes) -> bytes:
        """Write the chunk of a number, all its readings at once; return its checksum."""
        if not data:
            return b""  # A reading without any number has no chunks.
        if self.packed:
            data = Zstd(LEVEL).encode(data)
        sum = checksum(data) if self.checked else b""
        write_bytes(self.file(number), data + sum)
        return sum

    def sum_of(self, number: int) -> bytes:
        """Return the checksum of a chunk that is on disk."""
        file = self.file(number)
        return file.read_bytes()[-SUM:] if self.checked and file.is_file() else b""

    def read(self, number: int) -> np.ndarray | None:
        """Return the chunk of a number; ``None`` if it was never written.

        Raises:
            DamagedFile: it is not what was written.
        """
        file = self.file(number)
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return None
        if self.checked:
            if not is_whole(data):
                raise DamagedFile(file, "is damaged (it does not fit its checksum)")
            data = data[:-SUM]
        try:
            numbers = np.frombuffer(Zstd().decode(data) if self.packed else data, self.dtype)
            return numbers.reshape(self.length, *self.shape)
        except (RuntimeError, ValueError) as error:
            raise DamagedFile(file, f"is damaged ({error})") from None

    @property
    def empty(self) -> bool:
        """Whether a reading has no numbers, so that there are no chunks."""
        return 0 in self.shape

    def file(self, number: int) -> Path:
        """Return where the chunk of a number lies."""
        place = [number] if self.run is None else [self.run, number]
        return self.path.joinpath("c", *map(str, place), *("0" for _ in self.shape))


class Store:
    """A new Zarr store, in which arrays are made.

    Args:
        path: where it goes; nothing is there yet.
        attrs: attributes of the root group.
    """

    def __init__(self, path: Path, attrs: dict[str, Any]) -> None:
        self.path = path
        self.root = zarr.open_group(path, mode="w-", zarr_format=3, attributes=attrs)
        for name in ALWAYS:
            self.root.create_group(name)
            seal(path / name / "zarr.json")
        seal(path / "zarr.json")
        self.names: list[str] = []
        self.sizes: dict[tuple[str, str], int] = {}
        self.labels: dict[tuple[str, str], list[Any]] = {}

    def create(
        self,
        variable: Variable,
        like: Tensor,
        *,
        points: int,
        length: int,
        runs: int = 1,
        packed: bool = False,
    ) -> ChunkedArray:
        """Make an array without readings, NaN throughout; return the part of the first run.

        Args:
            variable: what it holds.
            like: a reading; all others have its shape.
            points: readings of a run.
            length: readings in a chunk.
            runs: how many of them there are.
            packed: whether chunks are compressed.

        Raises:
            AttnscopeError: names or labels of axes do not fit the reading.
        """
        variable = self.fitted(variable, tuple(like.shape))
        labels = {dim: self.labels[variable.group, dim] for dim in variable.labels}
        attrs: dict[str, Any] = {"unit": variable.unit, "meaning": variable.meaning}
        if not variable.is_clock:
            attrs["coordinates"] = clock_name(variable.along)
        if labels:
            attrs["labels"] = labels
        lead = () if variable.is_clock else (("run", runs, 1),)
        axes = [
            *lead,
            (variable.along, points, min(length, points)),
            *((dim, n, max(1, n)) for dim, n in zip(variable.dims, like.shape, strict=True)),
        ]
        names, shape, chunks = zip(*axes, strict=True)
        if variable.group not in self.root:
            self.root.create_group(variable.group)
            seal(self.path / variable.group / "zarr.json")
        array = self.root.require_group(variable.group).create_array(
            variable.name,
            shape=shape,
            chunks=chunks,
            dtype=kept_as(like),
            fill_value=float("nan"),
            compressors=(*((ZstdCodec(level=LEVEL),) if packed else ()), Crc32cCodec()),
            dimension_names=names,
            attributes=attrs,
        )
        path = self.path / variable.group / variable.name
        seal(path / "zarr.json")
        self.names.append(f"{variable.group}/{variable.name}")
        return ChunkedArray.open(path, None if variable.is_clock else 0, array)

    def moved(self, path: Path) -> None:
        """Hear that the store lies elsewhere now."""
        self.path, self.root = path, zarr.open_group(path, mode="r+")

    def fitted(self, variable: Variable, shape: tuple[int, ...]) -> Variable:
        """Return a variable whose axes fit the others of its group.

        An axis has one length and one list of labels throughout a group, or nobody could open it;
        one that differs is called after its variable, as in ``weight_norm[0]``.
        """
        variable.check(shape)
        dims, labels = [], {}
        for axis, (name, size) in enumerate(zip(variable.dims, shape, strict=True)):
            own = _plain(variable.labels.get(name, ()))
            dim, place = name, (variable.group, name)
            other = own and self.labels.get(place, own) != own
            if other or self.sizes.setdefault(place, size) != size:
                dim = f"{variable.name}[{axis}]"
            if own:
                labels[dim] = self.labels.setdefault((variable.group, dim), own)
            dims.append(dim)
        return replace(variable, dims=tuple(dims), labels=labels)


def _plain(labels: Sequence[Any]) -> list[Any]:
    """Return labels as JSON has them."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def kept_as(like: Tensor) -> np.dtype[Any]:
    """Return the kind of numbers that readings are kept as."""
    # Points never reached are NaN, so counts and flags become floats wide enough for them.
    kept = torch.float32 if like.dtype in (torch.bfloat16, torch.float16) else like.dtype
    return np.result_type(torch.empty(0, dtype=kept).numpy().dtype, np.float16)
