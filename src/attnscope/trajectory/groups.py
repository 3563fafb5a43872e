"""Groups of a store that are written at once: ground truth, and theory."""

from __future__ import annotations

import shutil
from pathlib import Path

import xarray as xr
from zarr.codecs import Crc32cCodec, ZstdCodec

from attnscope.files import disk_full_as_sentence, sync_all
from attnscope.trajectory.arrays import LEVEL
from attnscope.trajectory.metadata import seal


def write_group(store: Path, group: str, data: xr.Dataset) -> list[str]:
    """Write a group with checksums, all its chunks, and have it on the disk.

    Args:
        store: the Zarr store.
        group: its name; what was there before is gone.
        data: what it holds.

    Returns:
        The names of its arrays, ``group/variable``.
    """
    names = sorted(map(str, data.variables))
    codecs = (ZstdCodec(level=LEVEL), Crc32cCodec())
    with disk_full_as_sentence(store):
        shutil.rmtree(store / group, ignore_errors=True)
        for variable in data.variables.values():
            variable.encoding = {}  # It may have been read from a store with other codecs.
        data.to_zarr(
            str(store),
            group=group,
            mode="a",
            consolidated=False,
            encoding={name: {"compressors": codecs} for name in names},
            # A chunk that is missing must not look like one of zeros.
            write_empty_chunks=True,
        )
        seal(store / group / "zarr.json")
        for name in names:
            seal(store / group / name / "zarr.json")
    sync_all([file for file in (store / group).rglob("*") if file.is_file()], store)
    return [f"{group}/{name}" for name in names]
