"""Phase diagrams as data: where a claim holds, on two fields or on one, and where theory says so.

A diagram is one claim at fixed values of all swept fields but one or two. Reports and the lab draw
the same diagrams.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.claims.claim import Criterion
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.experiment.spec import settings
from attnscope.report.contours import iso_lines
from attnscope.report.figure import Contour, Panel, Scale
from attnscope.sweeps.axes import Axis
from attnscope.sweeps.folder import SweepFolder
from attnscope.sweeps.values import is_whole, label, spoken

VERDICTS = ("holds", "fails", "undecided", "diverged")
FINE = 60
"""Places along an axis at which theory is asked."""
PATIENCE = 30.0
"""Seconds of processor time that theory gets for a boundary; most need milliseconds."""
BEYOND = 1e50
"""A statistic as large stands for infinity, and has no colour."""
MOST = 12
"""Diagrams of one claim."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"


@dataclass(frozen=True, eq=False)
class Diagram:
    """A claim over one or two fields.

    Args:
        claim: its key.
        title: values of the other swept fields, in words.
        names: of the one or two fields; the first is the horizontal axis.
        places: their values, rising.
        logs: whether each axis is logarithmic.
        values: the statistic, shape ``(rows, columns)`` or ``(columns,)``; NaN where it is unknown.
        low: lower end of its interval.
        high: upper end.
        verdicts: one of :data:`VERDICTS`, or nothing where no point is.
        points: numbers of the points, -1 where none is.
        criterion: what the statistic must satisfy.
        theory: where the verdict turns in theory: lines, each with its name.
        refined: whether places were added where the verdict turns, so that most cells are empty.
    """

    claim: str
    title: str
    names: tuple[str, ...]
    places: tuple[np.ndarray, ...]
    logs: tuple[bool, ...]
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    verdicts: np.ndarray
    points: np.ndarray
    criterion: Criterion
    theory: tuple[tuple[np.ndarray, np.ndarray, str], ...] = ()
    refined: bool = False

    @property
    def levels(self) -> tuple[float, ...]:
        """The numbers at which the criterion is just met."""
        ends = (self.criterion.low, self.criterion.high)
        return tuple(float(end) for end in ends if np.isfinite(end))

    def scale(self, axis: int) -> Scale:
        """Return how an axis is drawn."""
        return "log" if self.logs[axis] else "linear"

    def crossings(self) -> list[float]:
        """Return where the statistic crosses the criterion along one field.

        Between two points it is taken as straight, on the axis as it is drawn.
        """
        known = np.isfinite(self.values)
        x, y = self.places[0][known], self.values[known]
        along = np.log(x) if self.logs[0] else x
        found = []
        for level in self.levels:
            for i in np.flatnonzero((y[:-1] - level) * (y[1:] - level) < 0):
                part = (level - y[i]) / (y[i + 1] - y[i])
                at = along[i] + part * (along[i + 1] - along[i])
                found.append(float(np.exp(at) if self.logs[0] else at))
        return sorted(found)

    def turns(self) -> list[tuple[float, float]]:
        """Return the neighbours along one field between which the verdict turns."""
        known = np.flatnonzero(self.verdicts != "")
        return [
            (float(self.places[0][a]), float(self.places[0][b]))
            for a, b in itertools.pairwise(known)
            if self.verdicts[a] != self.verdicts[b]
        ]


def diagrams(
    tree: xr.DataTree, study: Experiment | None = None, claims: Sequence[str] = ()
) -> Iterator[Diagram]:
    """Yield the diagrams of a sweep, claim by claim.

    Args:
        tree: what :func:`open_sweep` returned.
        study: the settings that stay, to ask for theory's boundary; without it there is none.
        claims: keys of those that are drawn; all unless given.

    Raises:
        AttnscopeError: there is no such claim.
    """
    findings = tree["findings"].to_dataset()
    known = [str(each) for each in findings["claim"].values]
    for each in claims:
        if each not in known:
            raise AttnscopeError(
                f"there is no claim '{each}' in this sweep: expected one of: {', '.join(known)}."
            )
    axes = SweepFolder(Path(tree.attrs["path"])).axes()
    shown, others = shown_axes(tree, axes)
    for claim in claims or known:
        found = findings.sel(claim=claim)
        sizes = [range(tree.sizes[axis.name]) for axis in others]
        for fixed in itertools.islice(itertools.product(*sizes), MOST):
            at = {axis.name: place for axis, place in zip(others, fixed, strict=True)}
            yield _diagram(tree, found, claim, shown, at, others, study)


def shown_axes(tree: xr.DataTree, axes: Sequence[Axis]) -> tuple[list[Axis], list[Axis]]:
    """Return the one or two axes that diagrams have, and those that they are told apart by."""
    numbers = [
        axis for axis in axes if tree[axis.name].dtype.kind in "fiu" and tree.sizes[axis.name] > 1
    ]
    shown = numbers[:2] or list(axes[:1])
    return shown, [axis for axis in axes if axis not in shown]


def _diagram(
    tree: xr.DataTree,
    found: xr.Dataset,
    claim: str,
    shown: Sequence[Axis],
    at: Mapping[str, int],
    others: Sequence[Axis],
    study: Experiment | None,
) -> Diagram:
    names = tuple(axis.name for axis in shown)
    order = names[::-1]
    own = found.isel(at)
    root = tree.to_dataset(inherit=False).isel(at)
    outcome = root["outcome"].transpose(*order).to_numpy()
    verdicts = own["verdict"].transpose(*order).to_numpy().astype(object)
    verdicts[np.isin(outcome, ("diverged", "exhausted"))] = "diverged"
    said = {
        name: label(tree.coords[name].values[place].item())
        for name, place in at.items()
        if tree.sizes[name] > 1 or len(others) == 1
    }
    criterion = next((read_criterion(c) for c in own["criterion"].values.ravel() if c), Criterion())
    places = tuple(np.asarray(tree.coords[name].values) for name in names)
    if places[0].dtype.kind not in "fiu":
        places = (np.arange(len(places[0])),)
    ours = own["ours"].transpose(*order).to_numpy()
    diagram = Diagram(
        claim=claim,
        title=", ".join(f"{name} = {spoken(value)}" for name, value in said.items()) or claim,
        names=names,
        places=tuple(place.astype(float) for place in places),
        logs=tuple(axis.log for axis in shown),
        values=np.where(abs(ours) < BEYOND, ours, np.nan),
        low=own["low"].transpose(*order).to_numpy(),
        high=own["high"].transpose(*order).to_numpy(),
        verdicts=verdicts,
        points=root["point"].transpose(*order).to_numpy(),
        criterion=criterion,
        refined=any(tree.sizes[axis.name] > len(axis.rows) for axis in shown),
    )
    if study is None:
        return diagram
    fixed = {
        name: axis.rows[at[axis.name]][i]
        for axis in others
        for i, name in enumerate(axis.fields)
        if at[axis.name] < len(axis.rows)
    }
    lines = tuple(_boundary(study, claim, diagram, shown, fixed))
    return Diagram(**{**diagram.__dict__, "theory": lines})


def read_criterion(text: str) -> Criterion:
    """Read a criterion as it is written: ``< 0.02``, ``> 5``, ``0.8 to 1.25``.

    >>> read_criterion("0.8 to 1.25")
    Criterion(low=0.8, high=1.25)
    """
    numbers = [float(each) for each in re.findall(_NUMBER, text)]
    if text.startswith("<"):
        return Criterion(high=numbers[0])
    if text.startswith(">"):
        return Criterion(low=numbers[0])
    return Criterion(*numbers) if len(numbers) == 2 else Criterion()


def _boundary(
    study: Experiment,
    claim: str,
    diagram: Diagram,
    shown: Sequence[Axis],
    fixed: Mapping[str, Any],
) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
    """Ask theory on a fine grid, and yield where its margin is 0; nothing if it takes too long."""
    if any(len(axis.fields) > 1 for axis in shown) or diagram.places[0].size < 2:
        return
    fine = [_fine(study, axis, places) for axis, places in zip(shown, diagram.places, strict=True)]
    margins = np.full([len(each) for each in fine[::-1]], np.nan)
    name, begun = "", time.process_time()
    for where in np.ndindex(*margins.shape):
        if time.process_time() - begun > PATIENCE:
            return
        values = {
            axis.name: _as(study, axis.name, each[i])
            for axis, each, i in zip(shown, fine, where[::-1], strict=True)
        }
        try:
            found = study.but(**fixed, **values).margins()
        except AttnscopeError:
            continue  # Some combinations cannot be.
        if claim not in found:
            return
        margins[where], name = found[claim]
    if margins.ndim == 1:
        x = fine[0]
        for i in np.flatnonzero(margins[:-1] * margins[1:] <= 0):
            at = np.interp(0.0, *_rising(margins[i : i + 2], x[i : i + 2]))
            yield np.array([at]), np.array([np.nan]), name
        return
    panel = Panel("", "", "", (), diagram.scale(0), diagram.scale(1))
    for line in iso_lines(Contour(fine[0], fine[1], margins, (0.0,)), panel):
        yield line.x, line.y, name


def _rising(margins: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(margins)
    return margins[order], places[order]


def _fine(study: Experiment, axis: Axis, places: np.ndarray) -> np.ndarray:
    low, high = float(places.min()), float(places.max())
    found = np.geomspace(low, high, FINE) if axis.log else np.linspace(low, high, FINE)
    if is_whole(settings(study)[axis.name].kind):
        found = np.unique(np.round(found))
    return found


def _as(study: Experiment, name: str, value: float) -> Any:
    setting = settings(study)[name]
    number: Any = int(value) if is_whole(setting.kind) else float(value)
    return (number,) if isinstance(setting.value, tuple) else number
