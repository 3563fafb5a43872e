"""A sweep's folder on disk: what lies where, and what it says about itself.

    SWEEP/
      sweep.json           study, the settings that stay, the swept fields, versions, status
      points.jsonl         a row for every point that is done: values, verdicts, last readings
      points/00012.zip     the trajectory of point 12 (Zarr v3 in a zip)
      layouts/1a2b3c.json  shapes of the arrays of points that are alike
      going/00013.state    a point that is under way, as its worker last said
      report.html, figures/, tables/
      .writer              who is writing, while somebody is

Every file appears whole or not at all, and rows are added to ``points.jsonl`` one by one, each with
a digest: what a kill leaves of the last one is left out. A point counts when its row is there.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.files import disk_full_as_sentence, onto_disk, read_bytes, write_bytes
from attnscope.sweeps.axes import Axis, key
from attnscope.sweeps.point import Done, digest
from attnscope.trajectory.documents import DamagedFile, read_json, read_sealed, write_json
from attnscope.trajectory.manifest import LIBRARIES

FORMAT = 1
"""Version of this layout. A reader refuses a sweep with a larger one."""
NAME = "sweep.json"
TABLE_LIMIT = 2**33
"""Bytes that the table may have."""
DIGITS = 16
"""Of the digest before each row."""


@dataclass(frozen=True)
class SweepFolder:
    """Paths inside a sweep's folder."""

    path: Path

    @property
    def manifest_path(self) -> Path:
        """The manifest; a folder is a sweep if and only if it is there."""
        return self.path / NAME

    @property
    def table_path(self) -> Path:
        """The rows of all points that are done."""
        return self.path / "points.jsonl"

    @property
    def report_path(self) -> Path:
        """The report."""
        return self.path / "report.html"

    def point_path(self, number: int) -> Path:
        """The trajectory of a point."""
        return self.path / "points" / f"{number:05d}.zip"

    def layout_path(self, name: str) -> Path:
        """The shapes of points that are alike."""
        return self.path / "layouts" / f"{name}.json"

    def going_path(self, values: Mapping[str, Any]) -> Path:
        """A point that is under way."""
        name = hashlib.sha256(key(values).encode()).hexdigest()[:16]
        return self.path / "going" / f"{name}.state"

    def is_sweep(self) -> bool:
        """Return whether there is a sweep."""
        return self.manifest_path.is_file()

    def manifest(self) -> dict[str, Any]:
        """Read the manifest.

        Raises:
            AttnscopeError: there is none, it is damaged, or a newer version wrote it.
        """
        try:
            said = read_json(self.manifest_path)
        except FileNotFoundError:
            what = "no such folder" if not self.path.exists() else f"there is no {NAME} in it"
            raise AttnscopeError(
                f"'{self.path}' is not a sweep: {what}. Expected a folder that `attnscope sweep` "
                "wrote."
            ) from None
        form = said.get("format") if isinstance(said, dict) else None
        if isinstance(form, int) and form > FORMAT:
            raise AttnscopeError(
                f"'{self.path}' is a sweep in format {form}; this version reads up to format "
                f"{FORMAT}. Expected a sweep of this version or an older one: upgrade attnscope."
            )
        manifest = read_sealed(self.manifest_path)
        names = {"study": str, "base": dict, "axes": list, "source": str, "status": str}
        if not all(isinstance(manifest.get(name), kind) for name, kind in names.items()):
            raise DamagedFile(self.manifest_path, "is not the manifest of a sweep")
        return manifest

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all points that are done, the latest of each, in their order.

        Raises:
            DamagedFile: a row in the middle is not what was written.
        """
        found: dict[str, dict[str, Any]] = {}
        for row in self._rows():
            found[key(row["values"])] = row
        return list(found.values())

    def _rows(self) -> Iterator[dict[str, Any]]:
        try:
            lines = read_bytes(self.table_path, TABLE_LIMIT).split(b"\n")
        except FileNotFoundError:
            return
        for number, line in enumerate(lines):
            row = _row(line)
            if row is not None:
                yield row
            elif number < len(lines) - 2 and line:
                raise DamagedFile(self.table_path, f"is damaged (row {number + 1})")

    def layout(self, name: str) -> dict[str, Any]:
        """Return the shapes of points that are alike.

        Raises:
            DamagedFile: they are not what was written.
        """
        try:
            said = read_json(self.layout_path(name))
        except FileNotFoundError:
            raise DamagedFile(self.layout_path(name), "is gone") from None
        if not isinstance(said, dict) or digest(said) != name:
            raise DamagedFile(self.layout_path(name), "is not what was written")
        return said

    def axes(self) -> tuple[Axis, ...]:
        """Return what is swept."""
        return tuple(map(Axis.from_json, self.manifest()["axes"]))


class Writer:
    """Whoever holds the lock of a sweep: keeps points as they come.

    Args:
        folder: of the sweep.
    """

    def __init__(self, folder: SweepFolder) -> None:
        self.folder = folder
        self.known = {key(row["values"]): row for row in folder.rows()}
        self.next = 1 + max((int(row["point"]) for row in self.known.values()), default=-1)
        self._mend()

    @cached_property
    def _layouts(self) -> set[str]:
        return {path.stem for path in (self.folder.path / "layouts").glob("*.json")}

    def _mend(self) -> None:
        """Cut off what a kill left of the last row."""
        path = self.folder.table_path
        if path.is_file() and (data := read_bytes(path, TABLE_LIMIT)) and data[-1:] != b"\n":
            write_bytes(path, data[: data.rfind(b"\n") + 1], sync=True)

    def keep(self, values: Mapping[str, Any], done: Done) -> dict[str, Any]:
        """Keep a point: its trajectory first, then its row."""
        before = self.known.get(key(values))
        number = self.next if before is None else int(before["point"])
        name = done.record["layout"]
        if name not in self._layouts:
            text = json.dumps(done.layout, sort_keys=True).encode()
            write_bytes(self.folder.layout_path(name), text, sync=True)
            self._layouts.add(name)
        write_bytes(self.folder.point_path(number), done.data, sync=True)
        return self.note(values, number, done.record)

    def note(
        self, values: Mapping[str, Any], number: int | None, record: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Add a row; a point that could not be done has no trajectory."""
        if number is None:
            before = self.known.get(key(values))
            number = self.next if before is None else int(before["point"])
        row = {"point": number, "values": dict(values), **record}
        text = json.dumps(row, separators=(",", ":")).encode()
        head = hashlib.sha256(text).hexdigest()[:DIGITS].encode()
        path = self.folder.table_path
        with disk_full_as_sentence(path), open(path, "ab") as file:
            file.write(head + b" " + text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.next = max(self.next, number + 1)
        self.known[key(values)] = row
        self.folder.going_path(values).unlink(missing_ok=True)
        return row

    def keep_going(self, values: Mapping[str, Any], state: bytes) -> None:
        """Keep how far a point is."""
        write_bytes(self.folder.going_path(values), state, sync=True)

    def state(self, values: Mapping[str, Any]) -> bytes | None:
        """Return how far a point was."""
        with suppress(FileNotFoundError):
            return read_bytes(self.folder.going_path(values), TABLE_LIMIT)
        return None

    def packed(self, values: Mapping[str, Any]) -> bytes | None:
        """Return the trajectory of a point that was done with fewer seeds."""
        row = self.known.get(key(values))
        if row is None or "sha256" not in row:
            return None
        with suppress(FileNotFoundError):
            data = read_bytes(self.folder.point_path(int(row["point"])), TABLE_LIMIT)
            # One that was replaced when its writer was killed fits no row: it is done anew.
            return data if hashlib.sha256(data).hexdigest() == row["sha256"] else None
        return None

    def tell(self, **changes: Any) -> None:
        """Write other values for some entries of the manifest."""
        write_json(self.folder.manifest_path, {**self.folder.manifest(), **changes}, sync=True)


def fill(
    folder: SweepFolder,
    *,
    study: str,
    base: Mapping[str, Any],
    axes: Sequence[Axis],
    source: str,
    command: str,
) -> None:
    """Write the manifest of a new sweep."""
    from attnscope import __version__

    write_json(
        folder.manifest_path,
        {
            "format": FORMAT,
            "attnscope": __version__,
            "study": study,
            "base": dict(base),
            "axes": [axis.to_json() for axis in axes],
            "source": source,
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in LIBRARIES},
            },
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": command,
            "status": "not begun",
        },
        sync=True,
    )
    for name in ("points", "layouts", "going"):
        (folder.path / name).mkdir()
    onto_disk(folder.path)


def _row(line: bytes) -> dict[str, Any] | None:
    """Return a row that fits its digest."""
    head, _, text = line.partition(b" ")
    if hashlib.sha256(text).hexdigest()[:DIGITS].encode() != head:
        return None
    row = json.loads(text)
    return row if isinstance(row, dict) and isinstance(row.get("values"), dict) else None
