"""From a store on disk to labelled arrays in memory, with every file checked on the way.

Nothing is ever written here: what a killed process left unfinished is put right in memory. The
files of a store go into memory as they are, and Zarr and xarray read them from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr
from zarr.core.buffer import cpu
from zarr.storage import MemoryStore

from attnscope.errors import AttnscopeError
from attnscope.files import read_bytes
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.folder import ALWAYS, CHECKED, GROWING, RunFolder
from attnscope.trajectory.lengths import settled
from attnscope.trajectory.metadata import LIMIT, SUM, Layout, is_whole, read_metadata


@dataclass
class Found:
    """What was read of a store.

    Args:
        files: content by key, as Zarr names them.
        damage: what is wrong, by file.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    damage: list[DamagedFile] = field(default_factory=list)

    def tree(self) -> xr.DataTree:
        """Return the arrays, loaded.

        Raises:
            AttnscopeError: they do not fit together.
        """
        buffers = {key: cpu.Buffer.from_bytes(data) for key, data in self.files.items()}
        store: Any = MemoryStore(buffers, read_only=True)  # type: ignore[arg-type]
        with xr.open_datatree(store, engine="zarr", consolidated=False) as stored:
            tree: xr.DataTree = stored.load()
        return tree


def look(
    folder: RunFolder, manifest: Mapping[str, Any], states: Sequence[Mapping[str, Any]]
) -> Found:
    """Read all files of a run's store and check them.

    A variable of which a part is damaged that has to be there at once is left out; of one that
    grows, the damaged chunks.

    Args:
        folder: the run's folder.
        manifest: what it says about itself.
        states: how far each of its runs is.
    """
    found = Found()
    sealed = manifest["format"] >= CHECKED
    if not folder.store.is_dir():
        found.damage.append(DamagedFile(folder.store, "is gone"))
        return found
    names = _names(folder.store, manifest, states, sealed)
    # Theory that was being written when its writer ended is not there yet.
    always = ALWAYS if sealed else _groups(folder.store)
    groups = ["", *sorted({name.split("/")[0] for name in names}.union(always))]
    for group in groups:
        _about(found, folder.store, group, sealed)
    arrays: dict[str, Layout] = {}
    for name in names:
        try:
            layout = Layout(
                folder.store / name, read_metadata(_meta(folder.store, name), sealed=sealed)
            )
            # Whatever else is wrong with them is seen here and not later.
            fits = len(layout.shape) == len(layout.chunks) and min((1, *layout.chunks)) > 0
            if not fits or len(layout.dims) != len(layout.shape):
                raise DamagedFile(_meta(folder.store, name), "is damaged (its lengths do not fit)")
            arrays[name] = layout
        except DamagedFile as damage:
            found.damage.append(damage)
        except (KeyError, TypeError, ValueError, AttributeError, AttnscopeError) as error:
            found.damage.append(DamagedFile(_meta(folder.store, name), f"is damaged ({error!r})"))
    known = states[0].get("recorded", {}) if states else {}
    for name, layout in settled(arrays, known).items():
        expected = _expected(name, layout, states, sealed)
        if _chunks(found, name, layout, expected, _sums(name, layout, manifest, states)):
            found.files[f"{name}/zarr.json"] = json.dumps(layout.metadata).encode()
    return found


def _names(
    store: Path, manifest: Mapping[str, Any], states: Sequence[Mapping[str, Any]], sealed: bool
) -> list[str]:
    """Return the arrays that have to be there; without a list, those that are."""
    listed = {str(name) for name in manifest.get("arrays", ())}
    for state in states:
        listed |= set(map(str, state.get("chunks", {})))
    if not sealed:
        listed |= {str(file.parent.relative_to(store)) for file in store.glob("*/*/zarr.json")}
    return sorted(name for name in listed if _plain(name))


def _plain(name: str) -> bool:
    """Return whether a name is that of a variable in a group, and leads nowhere else."""
    parts = name.split("/")
    return len(parts) == 2 and all(part not in ("", ".", "..") for part in parts)


def _groups(store: Path) -> set[str]:
    return {file.parent.name for file in store.glob("*/zarr.json")}


def _meta(store: Path, name: str) -> Path:
    return store / name / "zarr.json"


def _about(found: Found, store: Path, group: str, sealed: bool) -> None:
    """Read what is said of a group."""
    key = f"{group}/zarr.json" if group else "zarr.json"
    try:
        metadata = read_metadata(store / key, sealed=sealed)
    except AttnscopeError as error:
        found.damage.append(
            error if isinstance(error, DamagedFile) else DamagedFile(store / key, str(error))
        )
        # Without it nothing below it would be found.
        metadata = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    found.files[key] = json.dumps(metadata).encode()


def _expected(
    name: str, layout: Layout, states: Sequence[Mapping[str, Any]], sealed: bool
) -> set[tuple[int, ...]]:
    """Return the chunks that have to be there."""
    if not sealed or 0 in layout.shape:
        return set()
    growing = name.split("/")[0] in GROWING
    if not growing or not any(name in state.get("chunks", {}) for state in states):
        # The clock of a study, or an array of a run that has not begun.
        clock = name.split("/")[-1].split("_")[0] == "time" and "run" not in layout.dims
        return set(layout.places()) if (not growing or clock) else set()
    tail = (0,) * (len(layout.shape) - 1)
    expected = set()
    for run, state in enumerate(states):
        first, end = state.get("chunks", {}).get(name, (0, 0))
        for number in range(first, end):
            expected.add((run, number, *tail[1:]) if "run" in layout.dims else (number, *tail))
    return expected & set(layout.places())


def _sums(
    name: str, layout: Layout, manifest: Mapping[str, Any], states: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, ...], str]:
    """Return the checksums that chunks must have, so that each is the one of its place."""
    places = list(layout.places())
    known = dict(zip(places, _parts(manifest.get("sums", {}).get(name)), strict=False))
    tail = (0,) * (len(layout.shape) - 1)
    for run, state in enumerate(states):
        first = state.get("chunks", {}).get(name, (0, 0))[0]
        for number, sum in enumerate(_parts(state.get("sums", {}).get(name)), first):
            known[(run, number, *tail[1:]) if "run" in layout.dims else (number, *tail)] = sum
    return known


def _parts(text: object) -> list[str]:
    """Return the checksums in a text of several."""
    said = text if isinstance(text, str) else ""
    return [said[at : at + 2 * SUM] for at in range(0, len(said), 2 * SUM)]


def _chunks(
    found: Found,
    name: str,
    layout: Layout,
    expected: set[tuple[int, ...]],
    sums: Mapping[tuple[int, ...], str],
) -> bool:
    """Read the chunks of an array; return whether the array can be shown."""
    growing = name.split("/")[0] in GROWING
    whole = True
    for place in layout.places():
        key = layout.key(place)
        file = layout.folder / key
        try:
            data = read_bytes(file, LIMIT)
        except FileNotFoundError:
            if place in expected:
                found.damage.append(DamagedFile(file, "is gone"))
                whole = False
            continue
        except AttnscopeError as error:
            found.damage.append(DamagedFile(file, str(error)))
            whole = False
            continue
        if layout.checked and not is_whole(data):
            found.damage.append(DamagedFile(file, "is damaged (it does not fit its checksum)"))
            whole = False
            continue
        if place in sums and data[-SUM:].hex() != sums[place]:
            found.damage.append(DamagedFile(file, "is not what was written there"))
            whole = False
            continue
        found.files[f"{name}/{key}"] = data
    return whole or (growing and layout.metadata.get("fill_value") == "NaN")
