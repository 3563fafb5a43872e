"""Arrays that grow while somebody's model is watched, and how long they are."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import xarray as xr

from attnscope.files import write_bytes
from attnscope.trajectory.folder import ENDLESS


def so_far(data: xr.Dataset, known: dict[str, int]) -> xr.Dataset:
    """Cut arrays that still grow, as those of a watched model do, to what is there."""
    growing = [dim for dim, size in data.sizes.items() if size == ENDLESS]
    return data.isel({dim: slice(known.get(str(dim), 0)) for dim in growing})


def settle(store: Path) -> None:
    """Give arrays along one dimension the same length if a killed process told only some theirs.

    A dimension with two lengths cannot be opened at all.
    """
    found: dict[tuple[Path, str], list[tuple[Path, int, int]]] = defaultdict(list)
    for path in store.glob("*/*/zarr.json"):
        metadata = json.loads(path.read_text())
        for axis, dim in enumerate(metadata.get("dimension_names") or ()):
            found[path.parents[1], dim].append((path.parent, axis, metadata["shape"][axis]))
    for arrays in found.values():
        lengths = {length for _, _, length in arrays}
        if ENDLESS not in lengths or len(lengths) == 1:
            continue
        for path, axis, _ in arrays:
            tell_length(path, axis, max(lengths - {ENDLESS}))


def tell_length(array: Path, axis: int, length: int) -> None:
    """Write down how long an array on disk is along one of its axes."""
    path = array / "zarr.json"
    metadata = json.loads(path.read_text())
    metadata["shape"][axis] = length
    write_bytes(path, json.dumps(metadata, indent=1).encode())
