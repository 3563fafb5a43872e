"""The trajectory of one point as one file: a Zarr v3 hierarchy in an uncompressed zip.

A thousand points of forty arrays would be eighty thousand files as folders of chunks. Any Zarr
reader opens such a file by its ``ZipStore``; here arrays are read one at a time, when they are
asked for. An array is one chunk with the codecs of every other trajectory (``bytes``, ``zstd``,
``crc32c``). Texts, such as the names of cases, stand in the attributes of their group.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numcodecs.zstd import Zstd

from attnscope.trajectory.arrays import LEVEL
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.metadata import SUM, checksum, is_whole

TEXTS, COORDS = "attnscope_texts", "attnscope_coordinates"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of every entry: two packings of one trajectory are equal."""


def pack(tree: xr.DataTree) -> bytes:
    """Return a trajectory as the bytes of one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def put(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), data)

        put("zarr.json", _group(tree.attrs))
        for name, node in tree.children.items():
            data = node.to_dataset()
            texts = {
                str(key): {"dims": list(v.dims), "values": v.values.tolist(), "attrs": v.attrs}
                for key, v in data.variables.items()
                if v.dtype.kind in "OUS"
            }
            coords = sorted(map(str, data.coords))
            put(f"{name}/zarr.json", _group({**data.attrs, TEXTS: texts, COORDS: coords}))
            for key, variable in data.variables.items():
                if str(key) in texts:
                    continue
                values = np.asarray(variable.values, order="C")  # keeps what has no axis
                put(f"{name}/{key}/zarr.json", _array(variable, values))
                if values.size:
                    chunk = Zstd(LEVEL).encode(_little(values).tobytes())
                    place = "/".join(["c", *("0" for _ in values.shape)])
                    put(f"{name}/{key}/{place}", chunk + checksum(chunk))
    return file.getvalue()


def unpack(path: Path | io.BytesIO) -> xr.DataTree:
    """Return what :func:`pack` packed.

    Raises:
        DamagedFile: the file is not what was written.
    """
    shown = path if isinstance(path, Path) else Path("a point")
    with _opened(path, shown) as archive:
        names = archive.namelist()
        groups: dict[str, xr.Dataset] = {}
        for name in names:
            parts = name.split("/")
            if len(parts) == 2 and parts[1] == "zarr.json":
                groups[parts[0]] = _dataset(archive, shown, parts[0], names)
        attrs = _attributes(archive, shown, "zarr.json")
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups})


def read_array(path: Path, group: str, name: str) -> np.ndarray:
    """Read one array of a point.

    Raises:
        DamagedFile: it is not what was written.
    """
    with _opened(path, path) as archive:
        return _numbers(archive, path, group, name)[1]


def attributes(path: Path) -> dict[str, Any]:
    """Return what a point says of itself."""
    with _opened(path, path) as archive:
        return _attributes(archive, path, "zarr.json")


def damage_in(path: Path) -> DamagedFile | None:
    """Return what is wrong with a file; nothing if it is whole."""
    try:
        with _opened(path, path) as archive:
            bad = archive.testzip()
        return None if bad is None else DamagedFile(path, f"is damaged (in '{bad}')")
    except DamagedFile as damage:
        return damage
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        return DamagedFile(path, f"is damaged ({error})")


def _opened(path: Path | io.BytesIO, shown: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError:
        raise DamagedFile(shown, "is gone") from None
    except (zipfile.BadZipFile, OSError) as error:
        raise DamagedFile(shown, f"is damaged ({error})") from None


def _dataset(archive: zipfile.ZipFile, path: Path, group: str, names: list[str]) -> xr.Dataset:
    attrs = _attributes(archive, path, f"{group}/zarr.json")
    texts, coords = attrs.pop(TEXTS, {}), set(attrs.pop(COORDS, ()))
    found: dict[str, xr.Variable] = {
        name: xr.Variable(tuple(each["dims"]), np.array(each["values"]), each["attrs"])
        for name, each in texts.items()
    }
    for name in names:
        parts = name.split("/")
        if len(parts) == 3 and parts[0] == group and parts[2] == "zarr.json":
            about, values = _numbers(archive, path, group, parts[1])
            found[parts[1]] = xr.Variable(about["dimension_names"], values, about["attributes"])
    return xr.Dataset(
        {name: each for name, each in sorted(found.items()) if name not in coords},
        coords={name: each for name, each in sorted(found.items()) if name in coords},
        attrs=attrs,
    )


def _numbers(
    archive: zipfile.ZipFile, path: Path, group: str, name: str
) -> tuple[dict[str, Any], np.ndarray]:
    about = _read(archive, path, f"{group}/{name}/zarr.json")
    shape, kind = tuple(about["shape"]), np.dtype(about["data_type"]).newbyteorder("<")
    if 0 in shape:
        return about, np.empty(shape, kind.newbyteorder("="))
    entry = "/".join([group, name, "c", *("0" for _ in shape)])
    try:
        data = archive.read(entry)
        if not is_whole(data):
            raise DamagedFile(path, f"is damaged ('{entry}' does not fit its checksum)")
        numbers = np.frombuffer(Zstd().decode(data[:-SUM]), kind).reshape(shape)
    except (KeyError, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        raise DamagedFile(path, f"is damaged ('{entry}': {error})") from None
    return about, numbers.astype(kind.newbyteorder("="))


def _attributes(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    return dict(_read(archive, path, name)["attributes"])


def _read(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    try:
        said = json.loads(archive.read(name))
        if not isinstance(said, dict):
            raise TypeError("it is no object")
        return said
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise DamagedFile(path, f"is damaged ('{name}': {error})") from None


def _little(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


def _group(attributes: Mapping[Any, Any]) -> bytes:
    said = {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}
    return json.dumps(said, default=_jsonable).encode()


def _array(variable: xr.Variable, values: np.ndarray) -> bytes:
    kind, empty = values.dtype, {"b": False, "i": 0, "u": 0}
    said = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(values.shape),
        "data_type": kind.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [max(1, n) for n in values.shape]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": empty.get(kind.kind, "NaN"),
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": LEVEL, "checksum": False}},
            {"name": "crc32c"},
        ],
        "dimension_names": list(variable.dims),
        "attributes": dict(variable.attrs),
    }
    return json.dumps(said, default=_jsonable).encode()


def _jsonable(value: Any) -> Any:
    """Return attributes as JSON has them."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
