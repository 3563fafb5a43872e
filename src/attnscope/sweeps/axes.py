"""What is swept: fields with their values, crossed with each other or in step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnscope.errors import AttnscopeError, nearest
from attnscope.experiment import Experiment
from attnscope.experiment.spec import Setting, settings
from attnscope.limits import POINTS
from attnscope.needs import need
from attnscope.sweeps.values import is_geometric, is_tuple, label, spoken, values_of

Values = Mapping[str, Any]
"""The swept fields of one point."""
Over = Mapping[Any, Any]
"""Values by field, or rows of values by several fields that go in step."""


@dataclass(frozen=True)
class Axis:
    """A dimension of a sweep: one field, or several that go in step.

    Args:
        fields: flat names of settings; the first one names the dimension.
        rows: a value for each field, place by place.
        log: whether places are in constant ratio.
    """

    fields: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    log: bool = False

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return self.fields[0]

    def joined(self, other: Axis) -> Axis:
        """Return the axis with the places of another one of the same fields."""
        rows = sorted({*self.rows, *other.rows}, key=_order)
        return Axis(self.fields, tuple(rows), self.log and other.log)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"fields": self.fields, "rows": [list(row) for row in self.rows], "log": self.log}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Axis:
        """Rebuild an axis."""
        rows = tuple(tuple(map(_frozen, row)) for row in said["rows"])
        return cls(tuple(said["fields"]), rows, bool(said["log"]))


@dataclass(frozen=True)
class Grid:
    """A study and the axes that it is swept along; every place of one meets all of the others.

    Args:
        study: the settings that stay.
        axes: what changes.

    Raises:
        AttnscopeError: nothing is swept, a field is swept twice, or there are too many points.
    """

    study: Experiment
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise AttnscopeError(
                "nothing is swept: expected one field or more, as in --over m=5,10,20 or "
                "over={'m': [5, 10, 20]}."
            )
        names = [name for axis in self.axes for name in axis.fields]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise AttnscopeError(f"'{twice[0]}' is swept twice: expected each field once.")
        sizes = [len(axis.rows) for axis in self.axes]
        product = " × ".join(
            f"{n} of {axis.name}" for n, axis in zip(sizes, self.axes, strict=True)
        )
        POINTS.check(self.count, f"a sweep over {product} has {self.count:,} points")

    @property
    def count(self) -> int:
        """Number of points."""
        return math.prod(len(axis.rows) for axis in self.axes)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all swept fields."""
        return tuple(name for axis in self.axes for name in axis.fields)

    def base(self) -> dict[str, Any]:
        """Return the settings that stay as they are; seeds may be added later."""
        said = self.study.to_json()
        return {k: v for k, v in said.items() if k not in (*self.fields, "seeds")}

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield the swept fields of every point, the last axis fastest."""
        for places in itertools.product(*(axis.rows for axis in self.axes)):
            yield self.values(places)

    def values(self, places: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return the swept fields at a place of each axis."""
        pairs = zip(self.axes, places, strict=True)
        return {k: v for axis, row in pairs for k, v in zip(axis.fields, row, strict=True)}

    def at(self, values: Values) -> Experiment:
        """Return the study at a point."""
        return self.study.but(**values)

    def check(self) -> None:
        """Make the spec of every point once, before anything starts.

        Raises:
            AttnscopeError: one is out of its bounds; the sentence says which point.
        """
        for number, values in enumerate(self.points(), 1):
            try:
                self.at(values)
            except AttnscopeError as error:
                raise AttnscopeError(
                    f"point {said(values)} ({number:,} of {self.count:,}): {error} Nothing was "
                    "started."
                ) from None


def key(values: Values) -> str:
    """Return what tells a point from all others, whatever the order of its fields."""
    return json.dumps({k: values[k] for k in sorted(values)}, separators=(",", ":"))


def said(values: Values) -> str:
    """Return a point in words.

    >>> said({"m": 5, "lr": 0.1})
    'm = 5, lr = 0.1'
    """
    return ", ".join(f"{name} = {spoken(value)}" for name, value in values.items())


def axes_of(study: Experiment, over: Over) -> tuple[Axis, ...]:
    """Turn values by field into axes.

    Args:
        study: whose fields they are.
        over: a list of values by field, or by several fields a list of rows:
            ``{"m": [5, 10], ("d", "lr"): [(2, 0.1), (5, 0.05)]}``. A text is read as on the
            command line: ``{"m": "5:80:log9"}``.

    Raises:
        AttnscopeError: there is no such field, or its values make no sense.
    """
    need("scipy", "contourpy", "matplotlib")  # Of its phase diagrams: not after an hour of points.
    known = settings(study)
    axes = []
    for names, given in over.items():
        fields = (names,) if isinstance(names, str) else tuple(names)
        for name in fields:
            if name not in known:
                raise AttnscopeError(
                    f"{study.name()} has no field '{name}'.{nearest(str(name), known)} Expected "
                    f"some of: {', '.join(known)}."
                )
        if isinstance(given, str):
            axes.append(Axis(fields, *values_of(known[fields[0]], given)))
            continue
        rows = [(_plain(row),) if len(fields) == 1 else tuple(map(_plain, row)) for row in given]
        if not rows or any(len(row) != len(fields) for row in rows):
            raise AttnscopeError(
                f"over = {{{names!r}: {given!r}}}: expected one value or more"
                + (f", each a row of {len(fields)}." if len(fields) > 1 else ".")
            )
        rows = [tuple(_fitting(known[n], v) for n, v in zip(fields, r, strict=True)) for r in rows]
        axes.append(Axis(fields, tuple(dict.fromkeys(rows)), is_geometric([r[0] for r in rows])))
    return tuple(axes)


def parse(study: Experiment, over: Sequence[str], zipped: Sequence[Sequence[str]]) -> Over:
    """Read the flags ``--over m=5,10`` and ``--zip m=5,10 d=2,5``.

    Raises:
        AttnscopeError: one makes no sense; the sentence quotes it.
    """
    known = settings(study)
    found: dict[Any, Any] = {}

    def read(word: str, flag: str) -> tuple[str, tuple[tuple[Any, ...], ...]]:
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if not equals or not text:
            raise AttnscopeError(
                f"{flag} {word}: expected FIELD=VALUES, such as m=5,10,20 or m=5:80:log9."
            )
        if name not in known:
            raise AttnscopeError(
                f"{flag} {word}: {study.name()} has no field '{name}'.{nearest(name, known)} "
                f"Expected some of: {', '.join(known)}."
            )
        if name in itertools.chain(*((k,) if isinstance(k, str) else k for k in found)):
            raise AttnscopeError(f"{flag} {word}: '{name}' is swept twice: expected it once.")
        return name, values_of(known[name], text)[0]

    for word in over:
        name, rows = read(word, "--over")
        found[name] = [row[0] for row in rows]
    for words in zipped:
        group = dict(read(word, "--zip") for word in words)
        counts = {name: len(rows) for name, rows in group.items()}
        if len(group) < 2 or len(set(counts.values())) > 1:
            told = ", ".join(f"{n} values of {name}" for name, n in counts.items())
            raise AttnscopeError(
                f"--zip {' '.join(words)} has {told}: expected two fields or more with equally "
                "many values, as in --zip m=5,10 dim=2,5."
            )
        columns = ([row[0] for row in rows] for rows in group.values())
        found[tuple(group)] = list(zip(*columns, strict=True))
    return found


def _fitting(setting: Setting, value: Any) -> Any:
    """Return a value as the field holds it: a number for a tuple is a tuple of one."""
    if is_tuple(setting.kind) and not isinstance(value, tuple):
        return (value,)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return _frozen(value)


def _frozen(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    first = label(row[0])
    return (isinstance(first, str), first, tuple(map(str, row)))
