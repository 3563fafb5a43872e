"""Arrays that grow while somebody's model is watched, and how long they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from attnscope.trajectory.documents import read_json
from attnscope.trajectory.folder import ENDLESS
from attnscope.trajectory.metadata import Layout, read_metadata, write_metadata


def settled(arrays: Mapping[str, Layout], known: Mapping[str, int]) -> dict[str, Layout]:
    """Give arrays that grow the length that they have so far.

    A recording that closes tells every array its length, one after the other. If the process is
    killed meanwhile, those along one dimension have two lengths, and the larger one is no length.

    Args:
        arrays: by their names, ``group/variable``.
        known: readings along each dimension, as the state of the run says.
    """
    told: dict[tuple[str, str], set[int]] = defaultdict(set)
    for name, array in arrays.items():
        for dim, length in zip(array.dims, array.shape, strict=True):
            told[name.split("/")[0], dim].add(length)
    fresh = dict(arrays)
    for name, array in arrays.items():
        for axis, dim in enumerate(array.dims):
            lengths = told[name.split("/")[0], dim]
            if ENDLESS in lengths:
                length = max(lengths - {ENDLESS}, default=known.get(dim, 0))
                fresh[name] = fresh[name].with_length(axis, length)
    return fresh


def tell_length(array: Path, axis: int, length: int) -> None:
    """Write down how long an array on disk is along one of its axes."""
    path = array / "zarr.json"
    metadata = read_json(path)
    metadata["shape"][axis] = length
    write_metadata(path, metadata)


def settle(store: Path, known: Mapping[str, int]) -> None:
    """Write down the lengths of arrays that nobody was left to tell theirs."""
    files = sorted(store.glob("*/*/zarr.json"))
    arrays = {
        str(file.parent.relative_to(store)): Layout(file.parent, read_metadata(file, sealed=False))
        for file in files
    }
    for name, layout in settled(arrays, known).items():
        for axis, length in enumerate(layout.shape):
            if arrays[name].shape[axis] != length:
                tell_length(layout.folder, axis, length)
