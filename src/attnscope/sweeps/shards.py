"""A sweep in numbered parts, for clusters that hand out jobs by their numbers.

``plan`` writes what is to be done, ``shard`` does one part of it in a folder of its own below, so
that no two jobs write to one place, and ``gather`` puts what they did together. Folders of parts
may be copied from computers that have no disk in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from attnscope.catalogue import known as known_study
from attnscope.catalogue import load
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.files import read_bytes
from attnscope.sweeps.axes import Axis, Grid, Over, axes_of, key
from attnscope.sweeps.folder import TABLE_LIMIT, SweepFolder, Writer
from attnscope.sweeps.point import Done
from attnscope.sweeps.runner import Listener, check_same, is_done, place_of, source_of, sweep
from attnscope.sweeps.tree import open_sweep
from attnscope.trajectory.lock import Lock

SHARDS = "shards"
_PART = re.compile(r"(\d+)/(\d+)")


def part_of(text: str) -> tuple[int, int]:
    """Read ``3/40``.

    Raises:
        AttnscopeError: it is something else.
    """
    match = _PART.fullmatch(text)
    part = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part[0] <= part[1]:
        raise AttnscopeError(f"--shard {text}: expected a part of several, such as 3/40.")
    return part


def plan(study: Experiment, over: Over, out: str | Path, *, command: str = "") -> Grid:
    """Write the folder of a sweep without doing any of its points.

    Raises:
        AttnscopeError: a point is out of its bounds, or the folder holds something else.
    """
    grid = Grid(study, axes_of(study, over))
    grid.check()
    with place_of(grid, Path(out), command) as (folder, _):
        Writer(folder).tell(seeds=study.seeds, status=f"planned: {grid.count} points")
    return grid


def planned(path: str | Path, study: str = "") -> Grid:
    """Return what the folder of a sweep asks for.

    Args:
        path: the folder.
        study: where its study is, for one of somebody's own: ``mine.py``.

    Raises:
        AttnscopeError: the folder is no sweep, or its study is not here or has changed.
    """
    folder = SweepFolder(Path(path))
    manifest = folder.manifest()
    try:
        kind = load(study) if study else known_study(manifest["study"])
    except AttnscopeError as error:
        if study:
            raise
        raise AttnscopeError(
            f"'{path}' is a sweep of '{manifest['study']}'. {error} Or say where it is by --study."
        ) from None
    axes = folder.axes()
    first = {k: v for axis in axes for k, v in zip(axis.fields, axis.rows[0], strict=True)}
    spec = {**manifest["base"], **first, "seeds": manifest.get("seeds", kind().seeds)}
    grid = Grid(kind.from_json(spec), axes)
    if "seeds" in grid.fields:
        grid = replace(grid, study=kind.from_json({**manifest["base"], **first}))
    check_same(folder, grid, source_of(grid.study))
    return grid


def shard(
    path: str | Path,
    part: tuple[int, int],
    *,
    study: str = "",
    workers: int | None = 1,
    listener: Listener | None = None,
    command: str = "",
    device: str | None = None,
) -> xr.DataTree:
    """Do one part of a planned sweep, or go on with it; other parts may be done meanwhile."""
    grid = planned(path, study)
    over = dict(map(values_by_name, grid.axes))
    own = Path(path) / SHARDS / f"{part[0]}-{part[1]}"
    return sweep(
        grid.study,
        over,
        own,
        workers=workers,
        listener=listener,
        command=command,
        device=device,
        part=part,
    )


def values_by_name(axis: Axis) -> tuple[Any, list[Any]]:
    """Return an axis as :func:`sweep` takes it: names, and values or rows of values."""
    if len(axis.fields) == 1:
        return axis.name, [row[0] for row in axis.rows]
    return axis.fields, list(axis.rows)


@dataclass(frozen=True)
class Gathered:
    """What gathering came to: points that are there, those that were new, and the missing ones."""

    there: int
    new: int
    missing: tuple[Mapping[str, Any], ...]
    tree: xr.DataTree


def gather(path: str | Path, study: str = "") -> Gathered:
    """Put together what the parts of a sweep did; it may be done again when more of it is done.

    Raises:
        AttnscopeError: a part is of another sweep, or somebody writes there.
    """
    folder, grid = SweepFolder(Path(path)), planned(path, study)
    new = 0
    with Lock(folder.path, "attnscope sweep --gather"):
        writer = Writer(folder)
        for own in sorted((folder.path / SHARDS).glob("*-*")):
            part = SweepFolder(own)
            if not part.is_sweep():
                continue
            check_same(part, grid, source_of(grid.study))
            for row in part.rows():
                before = writer.known.get(key(row["values"]))
                if before is not None and is_done(before, int(row.get("seeds", 0))):
                    continue
                _take(writer, part, row)
                new += 1
        points = list(grid.points())
        missing = [p for p in points if not _there(writer, p, grid.at(p).seeds)]
        done = len(points) - len(missing)
        writer.tell(
            status=f"finished: {done} points"
            if not missing
            else f"{done} of {len(points)} points are done"
        )
    return Gathered(done, new, tuple(missing), open_sweep(folder.path))


def _there(writer: Writer, values: Mapping[str, Any], seeds: int) -> bool:
    row = writer.known.get(key(values))
    return row is not None and is_done(row, seeds)


def _take(writer: Writer, part: SweepFolder, row: Mapping[str, Any]) -> None:
    record = {k: v for k, v in row.items() if k not in ("point", "values")}
    if "sha256" not in row:
        writer.note(row["values"], None, record)
        return
    data = read_bytes(part.point_path(int(row["point"])), TABLE_LIMIT)
    writer.keep(row["values"], Done(data, record, part.layout(row["layout"])))
