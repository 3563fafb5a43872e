"""A sweep as one tree: verdicts and last readings of every point, and readings when asked for."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from attnscope.errors import AttnscopeError, nearest
from attnscope.files import read_bytes
from attnscope.sweeps.axes import Axis, said
from attnscope.sweeps.folder import TABLE_LIMIT, SweepFolder
from attnscope.sweeps.pack import read_array, unpack
from attnscope.sweeps.point import NUMBERS
from attnscope.sweeps.values import label
from attnscope.trajectory.documents import DamagedFile

NOWHERE = -1
"""The number of a point that is not there."""
TEXT = ("verdict", "criterion")
TAKEN = "_read"
"""Follows the name of a variable that is also the name of a swept field."""


def open_sweep(path: str | Path) -> xr.DataTree:
    """Read a sweep, finished or not; nothing is ever written.

    The swept fields are dimensions. ``findings`` holds statistic, interval, verdict and control of
    every claim; ``final`` where every reading of one number ended, and what theory says in one;
    ``observables``, ``theory``, ``data``, ``params`` and ``stats`` hold all readings of all points,
    read when they are asked for; ``point`` says which file a point lies in. Points that are not
    there are NaN. Readings whose shapes differ from point to point are left out and listed in
    ``attrs["by_point"]``: :func:`open_point` opens them. A variable that is called like a swept
    field gets ``_read`` after its name.

    Raises:
        DamagedFile: a file is not what was written.
        AttnscopeError: the folder is not a sweep, or a newer version wrote it.
    """
    folder = SweepFolder(Path(path))
    manifest, rows = folder.manifest(), folder.rows()
    axes = [_with_places(axis, rows) for axis in folder.axes()]
    shape = tuple(len(axis.rows) for axis in axes)
    places = [{row: at for at, row in enumerate(axis.rows)} for axis in axes]
    dims = tuple(axis.name for axis in axes)
    numbers = np.full(shape, NOWHERE)
    at: list[tuple[int, ...]] = []
    for row in rows:
        where = tuple(
            each[tuple(_frozen(row["values"][name]) for name in axis.fields)]
            for axis, each in zip(axes, places, strict=True)
        )
        numbers[where] = int(row["point"])
        at.append(where)
    coords = _coordinates(axes)
    stacks, left = _stacks(folder, rows, at, dims, shape)
    groups = {
        "findings": _findings(rows, at, dims, shape),
        "final": _final(rows, at, dims, shape),
        **stacks,
    }
    attrs = {
        "study": manifest["study"],
        "base": json.dumps(manifest["base"]),
        "attnscope": manifest.get("attnscope", ""),
        "versions": json.dumps(manifest.get("versions", {})),
        "command": manifest.get("command", ""),
        "created": manifest.get("created", ""),
        "status": manifest["status"],
        "path": str(folder.path),
        "by_point": left,
    }
    outcome = np.full(shape, "not there", dtype=object)
    seconds = np.full(shape, np.nan)
    for row, where in zip(rows, at, strict=True):
        outcome[where] = row["outcome"]
        seconds[where] = row.get("seconds", np.nan)
    own = {
        "point": (dims, numbers),
        "outcome": (dims, outcome.astype(str)),
        "seconds": (dims, seconds),
    }
    for name in {*own} & {*coords}:
        own[f"{name}{TAKEN}"] = own.pop(name)
    root = xr.Dataset(own, coords=coords, attrs=attrs)
    # A field that is swept gives its name to an axis, and what was called so gets another one.
    apart = {
        name: group.rename_vars(
            {str(v): f"{v}{TAKEN}" for v in group.variables if str(v) in coords}
        )
        for name, group in groups.items()
    }
    return xr.DataTree.from_dict({"/": root, **apart})


def open_point(sweep: str | Path | xr.DataTree, **values: Any) -> xr.DataTree:
    """Return the trajectory of one point, as :func:`attnscope.open_run` returns that of a run.

    Args:
        sweep: its folder, or what :func:`open_sweep` returned.
        values: the swept fields; of those that go in step, one is enough.

    Raises:
        AttnscopeError: there is no such point.
    """
    path = Path(sweep.attrs["path"]) if isinstance(sweep, xr.DataTree) else Path(sweep)
    folder = SweepFolder(path)
    rows = folder.rows()
    fields = [name for axis in folder.axes() for name in axis.fields]
    for name in values:
        if name not in fields:
            raise AttnscopeError(
                f"'{name}' is not swept in '{path}'.{nearest(name, fields)} Expected values of: "
                f"{', '.join(fields)}."
            )
    found = [row for row in rows if all(_same(row["values"][k], v) for k, v in values.items())]
    if len(found) != 1:
        count = f"{len(found)} points have" if found else "there is no point with"
        raise AttnscopeError(
            f"{count} {said(values) or 'no values given'} in '{path}': expected the values of one, "
            f"such as {said(rows[0]['values']) if rows else 'none, for it is empty'}."
        )
    return open_row(folder, found[0])


def open_row(folder: SweepFolder, row: Mapping[str, Any]) -> xr.DataTree:
    """Return the trajectory of the point that a row is of.

    Raises:
        DamagedFile: its file is not what was written.
        AttnscopeError: it has none, for it could not be done.
    """
    if "sha256" not in row:
        raise AttnscopeError(f"point {said(row['values'])} could not be done: {row['status']}")
    path = folder.point_path(int(row["point"]))
    try:
        tree = unpack(io.BytesIO(read_bytes(path, TABLE_LIMIT)))
    except FileNotFoundError:
        raise DamagedFile(path, "is gone") from None
    except DamagedFile as damage:
        raise DamagedFile(path, damage.what) from None
    tree.attrs["point"] = int(row["point"])
    return tree


def _same(there: Any, asked: Any) -> bool:
    one, other = label(there), label(asked)
    if isinstance(one, str) or isinstance(other, str):
        return str(one) == str(other)
    return math.isclose(one, other, rel_tol=1e-9)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _with_places(axis: Axis, rows: Sequence[Mapping[str, Any]]) -> Axis:
    """Return an axis with the places that refining has added."""
    there = {tuple(_frozen(row["values"][name]) for name in axis.fields) for row in rows}
    return axis.joined(Axis(axis.fields, tuple(there), axis.log))


def _coordinates(axes: Sequence[Axis]) -> dict[str, tuple[str, list[Any]]]:
    found: dict[str, tuple[str, list[Any]]] = {}
    for axis in axes:
        for at, name in enumerate(axis.fields):
            labels = [label(row[at]) for row in axis.rows]
            if any(isinstance(each, str) for each in labels):
                labels = list(map(str, labels))
            found[name] = (axis.name, labels)
    return found


def _findings(
    rows: Sequence[Mapping[str, Any]],
    at: Sequence[tuple[int, ...]],
    dims: tuple[str, ...],
    shape: tuple[int, ...],
) -> xr.Dataset:
    keys = list(dict.fromkeys(claim for row in rows for claim in row["findings"]))
    columns: dict[str, np.ndarray] = {
        name: np.full((*shape, len(keys)), "" if name in TEXT else np.nan, object)
        for name in NUMBERS
    }
    order = {claim: n for n, claim in enumerate(keys)}
    for row, where in zip(rows, at, strict=True):
        for claim, values in row["findings"].items():
            for name, value in zip(NUMBERS, values, strict=True):
                columns[name][(*where, order[claim])] = np.nan if value is None else value
    made = {
        name: ((*dims, "claim"), column.astype(str if name in TEXT else float))
        for name, column in columns.items()
    }
    return xr.Dataset(made, coords={"claim": np.array(keys, dtype=str)})


def _final(
    rows: Sequence[Mapping[str, Any]],
    at: Sequence[tuple[int, ...]],
    dims: tuple[str, ...],
    shape: tuple[int, ...],
) -> xr.Dataset:
    """Return the last readings by case and seed."""
    runs = list(dict.fromkeys(tuple(run) for row in rows for run in row.get("runs", ())))
    cases = list(dict.fromkeys(case for case, _ in runs))
    seeds = sorted({seed for _, seed in runs})
    names = dict.fromkeys(name for row in rows for name in row.get("numbers", {}))
    found = {name: np.full((*shape, len(cases), len(seeds)), np.nan) for name in names}
    for row, where in zip(rows, at, strict=True):
        for name, values in row.get("numbers", {}).items():
            for (case, seed), value in zip(row["runs"], values, strict=True):
                if value is not None:
                    found[name][(*where, cases.index(case), seeds.index(seed))] = value
    short = {name: name.split("/")[1] for name in found}
    twice = [name for name in found if list(short.values()).count(short[name]) > 1]
    short |= {name: name.replace("/", "_") for name in twice}
    return xr.Dataset(
        {short[name]: ((*dims, "case", "seed"), values) for name, values in found.items()},
        coords={"case": np.array(cases, dtype=str), "seed": seeds},
    )


def _stacks(
    folder: SweepFolder,
    rows: Sequence[Mapping[str, Any]],
    at: Sequence[tuple[int, ...]],
    dims: tuple[str, ...],
    shape: tuple[int, ...],
) -> tuple[dict[str, xr.Dataset], list[str]]:
    """Return readings of all points that are alike, and the names of those that are not."""
    done = [(row, where) for row, where in zip(rows, at, strict=True) if "layout" in row]
    if not done:
        return {}, []
    layouts = {name: folder.layout(name) for name in {row["layout"] for row, _ in done}}
    # A point that diverged has neither theory nor verdicts; the others say what there is.
    whole = [row for row, _ in done if row["outcome"] == "finished"] or [done[0][0]]
    pattern, left = layouts[whole[0]["layout"]], []
    groups: dict[str, dict[str, xr.Variable]] = {}
    coords: dict[str, dict[str, xr.Variable]] = {}
    paths = {where: folder.point_path(int(row["point"])) for row, where in done}
    first = open_row(folder, whole[0])
    for name, about in pattern.items():
        group, variable = name.split("/", 1)
        others = [layout[name] for layout in layouts.values() if name in layout]
        if about["kind"] == "text" or (about["coordinate"] and variable in ("case", "seed")):
            if about["coordinate"] and all(each == about for each in others):
                coords.setdefault(group, {})[variable] = (
                    first[group].to_dataset()[variable].variable
                )
            continue
        if about["coordinate"] and all(each == about for each in others):
            coords.setdefault(group, {})[variable] = first[group].to_dataset()[variable].variable
            continue
        if about["coordinate"] and variable in about["dims"]:
            continue  # Its places differ from point to point: the clock says where they are.
        runs = max((each["shape"][0] for each in others if each["dims"][:1] == ["run"]), default=0)
        own = {tuple(each["shape"][1:] if runs else each["shape"]) for each in others}
        if len(own) > 1 or any(
            each["dims"] != about["dims"] or set(each["dims"]) & set(dims) for each in others
        ):
            left.append(name)
            continue
        inner = (runs, *own.pop()) if runs else own.pop()
        there = {
            w: p
            for (row, _), (w, p) in zip(done, paths.items(), strict=True)
            if name in layouts[row["layout"]]
        }
        array = _Stacked(there, group, variable, shape, inner, np.dtype(about["kind"]))
        lazy = indexing.LazilyIndexedArray(array)
        made = xr.Variable((*dims, *about["dims"]), lazy, about.get("attrs", {}))
        groups.setdefault(group, {})[variable] = made
    found = {}
    for group in {*groups, *coords}:
        own_coords = coords.get(group, {})
        variables = groups.get(group, {})
        sizes = {d: n for v in variables.values() for d, n in zip(v.dims, v.shape, strict=True)}
        fitting = {
            name: each
            for name, each in own_coords.items()
            if all(sizes.get(d, n) == n for d, n in zip(each.dims, each.shape, strict=True))
        }
        found[group] = xr.Dataset(variables, coords=fitting)
    return dict(sorted(found.items())), sorted(left)


class _Stacked(BackendArray):
    """An array of every point, side by side, of which files are read when it is asked for.

    Args:
        paths: the file of each point, by its place on the grid.
        group: where the array lies in a file.
        name: what it is called.
        outer: lengths of the swept dimensions.
        inner: lengths of the array itself.
        kind: of its numbers; counts become floats, for points that are not there are NaN.
    """

    def __init__(
        self,
        paths: Mapping[tuple[int, ...], Path],
        group: str,
        name: str,
        outer: tuple[int, ...],
        inner: tuple[int, ...],
        kind: np.dtype[Any],
    ) -> None:
        self.paths, self.group, self.name = paths, group, name
        self.shape = (*outer, *inner)
        self.outer, self.inner = outer, inner
        self.dtype = np.result_type(kind, np.float16) if kind.kind != "f" else kind

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read what an index asks for."""
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, asked: tuple[Any, ...]) -> np.ndarray:
        lead, rest = asked[: len(self.outer)], asked[len(self.outer) :]
        lists = [
            np.atleast_1d(np.arange(n)[each]) for n, each in zip(self.outer, lead, strict=True)
        ]
        parts = []
        for where in np.ndindex(*(len(each) for each in lists)):
            place = tuple(int(each[i]) for each, i in zip(lists, where, strict=True))
            parts.append(self._point(place)[_outer(rest, self.inner)])
        sizes = [
            len(each)
            for each, index in zip(lists, lead, strict=True)
            if not isinstance(index, int | np.integer)
        ]
        kept = parts[0].shape if parts else ()
        values = np.stack(parts) if parts else np.empty(0, self.dtype)
        values = values.reshape(*sizes, *kept)
        dropped = tuple(
            len(sizes) + i for i, each in enumerate(rest) if isinstance(each, int | np.integer)
        )
        return values.squeeze(dropped) if dropped else values

    def _point(self, place: tuple[int, ...]) -> np.ndarray:
        values = np.full(self.inner, np.nan, self.dtype)
        if place in self.paths:
            found = read_array(self.paths[place], self.group, self.name)
            # A point with fewer seeds fills the first runs, for seeds are outermost.
            values[tuple(slice(n) for n in found.shape)] = found
        return values


def _outer(rest: tuple[Any, ...], inner: tuple[int, ...]) -> Any:
    """Return an index into one point, each axis by itself."""
    lists = [np.atleast_1d(np.arange(n)[each]) for n, each in zip(inner, rest, strict=True)]
    return np.ix_(*lists) if lists else ()
