"""Which readings of two runs differ, and from which step on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.comparison.differences import Difference, difference
from attnscope.errors import AttnscopeError
from attnscope.report.page import Cell, Table
from attnscope.trajectory import is_watched, open_run

RELATIVE = 1e-3
WIDEST = 60
"""Longer settings are cut."""
SETTINGS = 20
"""So many settings are listed before the rest is counted."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came of comparing two runs.

    Args:
        a: name of the first run.
        b: name of the second.
        threshold: relative difference beyond which readings count as apart.
        differences: readings that could be compared, those that part first before others.
        left_out: readings that could not, and why.
        settings: what was set differently: name, in A, in B.
        notes: sentences about runs that only one of the two has.
        trees: both trajectories.
    """

    a: str
    b: str
    threshold: float
    differences: tuple[Difference, ...]
    left_out: Mapping[str, str]
    settings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    trees: tuple[xr.DataTree, xr.DataTree]

    @property
    def identical(self) -> bool:
        """Whether everything that could be compared is equal to the last bit."""
        return self.first is None

    @property
    def first(self) -> int | None:
        """The first step at which anything differs."""
        return min((d.first for d in self.differences if d.first is not None), default=None)

    @property
    def beyond(self) -> int | None:
        """The first step at which anything differs by more than the threshold."""
        return min((d.beyond for d in self.differences if d.beyond is not None), default=None)

    @property
    def sentence(self) -> str:
        """What came of it, in a sentence or two."""
        count = len(self.differences)
        readings = f"{count} reading{'s' if count > 1 else ''}"
        if self.first is None:
            return f"The runs are identical to the last bit in {readings} at all common steps."
        named = [d.name for d in self.differences if d.first == self.first]
        text = f"The runs differ first {_at(self.first)} ({_some(named)})"
        if self.beyond is None:
            return f"{text}, and nowhere by more than {self.threshold:g} of the reading."
        far = [d.name for d in self.differences if d.beyond == self.beyond]
        return f"{text}, and by more than {self.threshold:g} {_at(self.beyond)} ({_some(far)})."

    def table(self) -> Table:
        """Return the readings, a row each."""
        rows: list[tuple[Cell, ...]] = [
            (
                d.name,
                _step(d.first),
                _step(d.beyond),
                d.place,
                d.largest,
                _step(d.largest_step) if d.first is not None else "",
                len(d.steps),
            )
            for d in self.differences
        ]
        columns = (
            "reading",
            "differs from step",
            f"by more than {self.threshold:g}",
            "where most",
            "largest relative difference",
            "at step",
            "common steps",
        )
        return Table("differences", "Where the runs part", columns, tuple(rows))

    def settings_table(self) -> Table | None:
        """Return what was set differently; ``None`` if nothing was."""
        if not self.settings:
            return None
        columns = ("setting", f"A: {self.a}", f"B: {self.b}")
        return Table("settings", "Set differently", columns, self.settings)

    def write_report(self, out: str | Path) -> Path:
        """Write a page with both curves of every reading, and return its path."""
        from attnscope.comparison.page import page_of
        from attnscope.report import publish

        return publish(Path(out), page_of(self))


def compare(
    a: xr.DataTree | str | Path, b: xr.DataTree | str | Path, *, relative: float = RELATIVE
) -> Comparison:
    """Compare two runs of one study, or two watched ones, reading by reading.

    Args:
        a: a trajectory, or the folder of a run.
        b: another.
        relative: a reading is apart where its relative difference is above this, see
            :class:`Difference`.

    Raises:
        AttnscopeError: the runs have nothing in common, in a sentence.
    """
    if not (math.isfinite(relative) and relative > 0):
        raise AttnscopeError(f"relative = {relative}: expected a finite number above 0.")
    trees = (_tree(a), _tree(b))
    names = _names(trees, (a, b))
    _check_kind(trees, names)
    held = [tree["observables"].to_dataset() if "observables" in tree.children else xr.Dataset()
            for tree in trees]  # fmt: skip
    rows, notes = _common_runs(trees, names)
    both = [str(name) for name in held[0].data_vars if name in held[1].data_vars]
    if not both:
        own = [", ".join(map(str, each.data_vars)) or "nothing" for each in held]
        raise AttnscopeError(
            f"'{names[0]}' and '{names[1]}' have no reading in common: A has {own[0]}; B has "
            f"{own[1]}. Expected runs that recorded the same."
        )
    left_out = {
        str(name): f"only {side} has it"
        for side, mine, other in (("A", held[0], held[1]), ("B", held[1], held[0]))
        for name in mine.data_vars
        if name not in other.data_vars
    }
    found: list[Difference] = []
    for name in both:
        one, two = (each[name] for each in held)
        if "run" not in one.dims or "run" not in two.dims:
            left_out[name] = "it does not belong to a run"
            continue
        result = difference(
            one.isel(run=[i for i, _ in rows]), two.isel(run=[k for _, k in rows]), relative
        )
        if isinstance(result, str):
            left_out[name] = result
        else:
            found.append(result)
    if not found:
        why = "; ".join(f"{name}: {text}" for name, text in left_out.items())
        raise AttnscopeError(
            f"nothing of '{names[0]}' and '{names[1]}' can be compared ({why}): expected readings "
            "of the same shape at the same steps."
        )
    found.sort(key=_order)
    settings = _settings(*(json.loads(tree.attrs["spec"]) for tree in trees))
    return Comparison(*names, relative, tuple(found), left_out, settings, notes, trees)


def _tree(given: xr.DataTree | str | Path) -> xr.DataTree:
    return given if isinstance(given, xr.DataTree) else open_run(given)


def _names(trees: tuple[xr.DataTree, xr.DataTree], given: tuple[Any, Any]) -> tuple[str, str]:
    """Call runs by their folders; by more of the path if both are called the same."""
    paths = [
        Path(tree.attrs.get("path") or (each if isinstance(each, str | Path) else "run"))
        for tree, each in zip(trees, given, strict=True)
    ]
    if paths[0].name == paths[1].name:
        return str(paths[0]), str(paths[1])
    return paths[0].name, paths[1].name


def _check_kind(trees: tuple[xr.DataTree, xr.DataTree], names: tuple[str, str]) -> None:
    kinds = ["watched" if watched(tree) else str(tree.attrs["study"]) for tree in trees]
    if kinds[0] != kinds[1]:
        said = [
            f"'{name}' is a {'watched run' if kind == 'watched' else f'run of {kind}'}"
            for name, kind in zip(names, kinds, strict=True)
        ]
        raise AttnscopeError(
            f"{said[0]} and {said[1]}: expected two runs of one study, or two watched ones."
        )


def watched(tree: xr.DataTree) -> bool:
    """Whether a trajectory is that of a watched model."""
    return is_watched({str(name): value for name, value in tree.attrs.items()})


def _common_runs(
    trees: tuple[xr.DataTree, xr.DataTree], names: tuple[str, str]
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Return the places of the runs that both have, by case and seed."""
    places = []
    for tree in trees:
        stats = tree["stats"]
        cases, seeds = stats["case"].to_numpy().tolist(), stats["seed"].to_numpy().tolist()
        places.append({pair: at for at, pair in enumerate(zip(cases, seeds, strict=True))})
    first, second = places
    rows = [(at, second[pair]) for pair, at in first.items() if pair in second]
    if not rows:
        said = [
            ", ".join(f"{case} seed {seed}" for case, seed in list(each)[:4]) for each in places
        ]
        raise AttnscopeError(
            f"'{names[0]}' and '{names[1]}' have no case and seed in common: A has {said[0]}; B "
            f"has {said[1]}. Expected runs of the same cases."
        )
    notes = [
        f"{len(mine) - len(rows)} of {len(mine)} runs of {side} are not in {other}."
        for side, other, mine in (("A", "B", first), ("B", "A", second))
        if len(mine) > len(rows)
    ]
    return rows, tuple(notes)


def _order(each: Difference) -> tuple[float, float, str]:
    never = math.inf
    return (
        never if each.beyond is None else each.beyond,
        never if each.first is None else each.first,
        each.name,
    )


def _settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    rows = list(_unlike("", a, b))
    more = [(f"and {len(rows) - SETTINGS} more", "", "")] if len(rows) > SETTINGS else []
    return tuple(rows[:SETTINGS] + more)


def _unlike(path: str, a: Any, b: Any) -> Iterator[tuple[str, str, str]]:
    """Yield path and values of what differs, as deep as both have the same shape."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in dict.fromkeys([*a, *b]):
            yield from _unlike(f"{path}.{name}" if path else str(name), a.get(name), b.get(name))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, two) in enumerate(zip(a, b, strict=True)):
            yield from _unlike(f"{path}[{index}]", one, two)
    elif a != b:
        yield path, _short(a), _short(b)


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}…"


def _at(step: int) -> str:
    return "in what was read once" if step < 0 else f"at step {step:,}"


def _step(step: int | None) -> Cell:
    return "never" if step is None else "read once" if step < 0 else step


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def finite(values: np.ndarray) -> np.ndarray:
    """Return values in which infinity is not drawn."""
    return np.where(np.isfinite(values), values, np.nan)
