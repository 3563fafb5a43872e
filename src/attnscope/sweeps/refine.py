"""Following a boundary: points are added where a verdict turns, and nowhere else.

The gaps of the grid are halved on a lattice fine enough for the accuracy that is asked for. A cell
whose corners agree is left alone; one whose corners differ is cut in two along every axis, down to
the lattice. In one dimension that is bisection, in two a quadtree, which follows a curve with a
number of points that grows as its length. An island smaller than the grid's own cells is not seen.

Why not the package ``adaptive``: its learners approximate a continuous function on the real line or
plane. They would ask for m = 7.3 sentences, know no verdict that more seeds would decide, and stop
at a loss of interpolation instead of an accuracy of the boundary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnscope.claims.claim import Criterion
from attnscope.errors import AttnscopeError, nearest
from attnscope.experiment.spec import settings
from attnscope.sweeps.axes import Axis, Grid, key
from attnscope.sweeps.point import BROKEN, NUMBERS
from attnscope.sweeps.values import is_whole, label

OURS, VERDICT = NUMBERS.index("ours"), NUMBERS.index("verdict")
Place = tuple[int, ...]
"""Numbers on the lattice, one for each axis."""


@dataclass(frozen=True)
class Refinement:
    """What has to be known next to find where a verdict turns.

    Args:
        grid: where it begins; its values are the corners of the first cells.
        claim: key of the claim.
        within: accuracy, as a share of each axis.
        most_seeds: seeds at most where the verdict stays undecided.

    Raises:
        AttnscopeError: there is no such claim, or an axis cannot be halved.
    """

    grid: Grid
    claim: str
    within: float
    most_seeds: int

    def __post_init__(self) -> None:
        if not 0 < self.within < 1:
            raise AttnscopeError(f"within = {self.within}: expected a share between 0 and 1.")
        study = self.grid.at(next(self.grid.points()))
        known = {each.key: each.holds for claim in study.claims() for each, _ in claim.expanded()}
        if self.claim not in known:
            raise AttnscopeError(
                f"{study.name()} has no claim '{self.claim}'.{nearest(self.claim, known)} Expected "
                f"one of: {', '.join(known)}."
            )
        for axis in self.grid.axes:
            rows = axis.rows
            if len(rows) < 2 or any(isinstance(label(row[0]), str) for row in rows):
                raise AttnscopeError(
                    f"refining between {len(rows)} value of '{axis.name}': expected numbers, at "
                    "least two."
                )
        object.__setattr__(self, "_criterion", known[self.claim])
        object.__setattr__(self, "_lattice", [self._divided(axis) for axis in self.grid.axes])

    @property
    def lattice(self) -> list[tuple[list[tuple[Any, ...]], list[int]]]:
        """The rows of each axis on the lattice, and the numbers of those that were given."""
        found: list[tuple[list[tuple[Any, ...]], list[int]]] = self.__dict__["_lattice"]
        return found

    def full(self) -> int:
        """Return how many points a grid of the same resolution has."""
        return math.prod(len(rows) for rows, _ in self.lattice)

    def wants(self, known: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield points with the seeds they need, given the rows of those that are there."""
        given = [places for _, places in self.lattice]
        for corner in itertools.product(*(range(len(places) - 1) for places in given)):
            low = tuple(places[at] for places, at in zip(given, corner, strict=True))
            high = tuple(places[at + 1] for places, at in zip(given, corner, strict=True))
            yield from self._cell(low, high, known)

    def leaves(
        self, known: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield the opposite corners of the smallest cells that the boundary goes through."""
        given = [places for _, places in self.lattice]
        for corner in itertools.product(*(range(len(places) - 1) for places in given)):
            low = tuple(places[at] for places, at in zip(given, corner, strict=True))
            high = tuple(places[at + 1] for places, at in zip(given, corner, strict=True))
            for one, other in self._leaves(low, high, known):
                yield self._values(one), self._values(other)

    def _cell(
        self, low: Place, high: Place, known: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], int]]:
        verdicts = []
        for corner in itertools.product(*zip(low, high, strict=True)):
            values = self._values(corner)
            row = known.get(key(values))
            seeds = self._seeds(row)
            if seeds is not None:
                yield values, seeds
            verdicts.append(self._verdict(row))
        # What is not decided may be on either side: neighbours that are tell enough.
        told = {each for each in verdicts if each is not None}
        if len(told) < 2 or None in verdicts:
            return
        for one, other in self._parts(low, high):
            yield from self._cell(one, other, known)

    def _leaves(
        self, low: Place, high: Place, known: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[Place, Place]]:
        corners = itertools.product(*zip(low, high, strict=True))
        verdicts = {self._verdict(known.get(key(self._values(each)))) for each in corners}
        if len(verdicts - {None}) < 2:
            return
        parts = list(self._parts(low, high))
        if not parts:
            yield low, high
        for one, other in parts:
            yield from self._leaves(one, other, known)

    def _parts(self, low: Place, high: Place) -> Iterator[tuple[Place, Place]]:
        """Yield the halves of a cell along every axis that can still be halved."""
        if all(b - a < 2 for a, b in zip(low, high, strict=True)):
            return
        sides = [
            [(a, b)] if b - a < 2 else [(a, (a + b) // 2), ((a + b) // 2, b)]
            for a, b in zip(low, high, strict=True)
        ]
        for parts in itertools.product(*sides):
            yield tuple(a for a, _ in parts), tuple(b for _, b in parts)

    def _values(self, place: Place) -> dict[str, Any]:
        rows = [rows[at] for (rows, _), at in zip(self.lattice, place, strict=True)]
        return self.grid.values(rows)

    def _seeds(self, row: Mapping[str, Any] | None) -> int | None:
        """Return the seeds that a point still needs; None if it is known well enough."""
        if row is None:
            return self.grid.study.seeds
        if row["outcome"] == "finished" and self._is_open(row):
            return min(2 * int(row["seeds"]), self.most_seeds)
        return None

    def _is_open(self, row: Mapping[str, Any]) -> bool:
        """Return whether more seeds may decide a point."""
        found = row["findings"].get(self.claim)
        undecided = found is not None and found[VERDICT] == "undecided" and found[OURS] is not None
        return undecided and int(row["seeds"]) < self.most_seeds

    def _verdict(self, row: Mapping[str, Any] | None) -> str | None:
        """Return what was decided of a point; None where it is not known yet.

        One that diverged counts as a verdict of its own. One that all seeds leave undecided lies
        where its mean does.
        """
        if row is None or row["outcome"] == "failed":
            return None
        if row["outcome"] in BROKEN:
            return "diverged"
        found = row["findings"].get(self.claim)
        if found is None or self._is_open(row):
            return None
        if found[VERDICT] == "undecided" and found[OURS] is not None:
            criterion: Criterion = self.__dict__["_criterion"]
            return "holds" if criterion.inside(np.array(found[OURS])) else "fails"
        return str(found[VERDICT])

    def _divided(self, axis: Axis) -> tuple[list[tuple[Any, ...]], list[int]]:
        """Halve the gaps of an axis until none is longer than asked for."""
        rows = sorted(axis.rows, key=lambda row: label(row[0]))
        columns = [np.array([label(row[at]) for row in rows], float) for at in range(len(rows[0]))]
        whole = [is_whole(settings(self.grid.study)[name].kind) for name in axis.fields]
        lengths = np.log(columns[0]) if axis.log else columns[0]
        total = float(lengths[-1] - lengths[0])
        found, places = [rows[0]], [0]
        for at in range(len(rows) - 1):
            share = float(lengths[at + 1] - lengths[at]) / total
            halvings = max(0, math.ceil(math.log2(share / self.within) - 1e-9))
            for step in range(1, 2**halvings):
                part = step / 2**halvings
                row = tuple(
                    _between(column[at], column[at + 1], part, axis.log, is_int, old)
                    for column, is_int, old in zip(columns, whole, rows[at], strict=True)
                )
                if row[0] not in (found[-1][0], rows[at + 1][0]):
                    found.append(row)
            found.append(rows[at + 1])
            places.append(len(found) - 1)
        return found, places


def _between(low: float, high: float, part: float, log: bool, whole: bool, like: Any) -> Any:
    """Return what lies between two values, as the field holds it."""
    value = low ** (1 - part) * high**part if log and low > 0 < high else low + part * (high - low)
    number: Any = round(value) if whole else float(f"{value:.6g}")
    return (number,) if isinstance(like, tuple) else number
