"""Several runs over each other: their shared observables, and the figures of a shared study.

A colour is a run. Figures are data, so those of the same study are laid over each other panel by
panel: every mark takes the colour of its run, and theory stays dashed and dark.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import xarray as xr

from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.lab.browse import settings
from attnscope.lab.curves import Course, case_names, courses, line
from attnscope.lab.entries import Entry, entry
from attnscope.lab.live import drawn, own_part
from attnscope.lab.safety import confined, no_way_out
from attnscope.markup import fill
from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Heat,
    Histogram,
    Line,
    Mark,
    Panel,
    Rule,
)
from attnscope.report.style import COLORS
from attnscope.report.wording import SYMBOLS, number
from attnscope.trajectory import open_run

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_RUNS = len(COLORS) - 1
"""More runs than colours cannot be told apart; the palette's yellow is too light for lines."""
MOST_PANELS = 9
CAPTION = (
    "The figure of each run's report, laid over each other: a colour is a run, dashed is theory. "
    "The runs:"
)


def chosen(root: Path, asked: Sequence[str]) -> list[Entry]:
    """Return the runs that were asked for.

    Raises:
        AttnscopeError: there are none, too many, or one cannot be read.
    """
    names = list(dict.fromkeys(asked))
    if not names:
        raise AttnscopeError(
            "No run was chosen. Expected an address such as /compare?run=one&run=other; the list "
            "of runs has a tick for each."
        )
    if len(names) > MOST_RUNS:
        raise AttnscopeError(
            f"{len(names)} runs were chosen. Expected at most {MOST_RUNS}, since colours tell "
            "them apart."
        )
    found = [entry(root, name) for name in names]
    for run in found:
        if run.condition == "unreadable":
            raise AttnscopeError(f"'{run.name}' cannot be read: {run.status}")
    return found


def overlay_page(runs: Sequence[Entry]) -> Markup:
    """Return the markup of the page; ``live.js`` fills in the figures."""
    return fill(
        "lab/overlay",
        runs=[(run, COLORS[place]) for place, run in enumerate(runs)],
        differ=settings(runs),
        query=urlencode([("run", run.name) for run in runs]),
        claims=shared_claims(runs),
        symbols=SYMBOLS,
        number=number,
    )


def shared_claims(runs: Sequence[Entry]) -> list[tuple[str, dict[str, Finding]]]:
    """Return the claims that at least two of the runs decide, and what each run found."""
    gathered: dict[tuple[str, str], dict[str, Finding]] = {}
    for run in runs:
        for finding in run.findings:
            gathered.setdefault((run.study, finding.key), {})[run.name] = finding
    shared = [found for found in gathered.values() if len(found) > 1]
    return [(next(iter(found.values())).sentence, found) for found in shared]


def scene(root: Path, asked: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the words and the figures of several runs over each other, as JSON values."""
    runs = chosen(root, asked)
    trees = []
    for run in runs:
        path = confined(root, run.name)
        no_way_out(root, path)
        trees.append(open_run(path))
    labels = [run.name for run in runs]
    notes = []
    shared, alone = shared_figure(trees, labels)
    figures = [shared] if shared.panels else []
    if len({run.study for run in runs}) == 1:
        own = [own_part(tree, run).figures for tree, run in zip(trees, runs, strict=True)]
        merged, left = over_each_other(own, labels)
        figures = [*merged, *figures]
        if left:
            notes.append(f"Panels that cannot lie over each other are left out of: {left}.")
    if alone:
        notes.append(f"Recorded by some of the runs only: {', '.join(alone)}.")
    if not figures:
        notes.append("These runs have recorded nothing in common.")
    count = f"{len(figures)} figure{'s' if len(figures) != 1 else ''}"
    yield {
        "stamp": "once",
        "going": False,
        "words": f"{len(runs)} runs are drawn over each other in {count}.",
        "notes": notes,
        "figures": [figure.name for figure in figures],
    }
    for figure in figures:
        yield drawn(figure)


def shared_figure(trees: Sequence[xr.DataTree], labels: Sequence[str]) -> tuple[Figure, list[str]]:
    """Draw the observables that all runs have; return also the names of those that only some do."""
    found = [courses(tree) for tree in trees]
    everywhere = [name for name in found[0] if all(name in each for each in found)]
    somewhere = sorted({name for each in found for name in each} - set(everywhere))
    panels = []
    for name in everywhere[:MOST_PANELS]:
        marks: list[Mark] = []
        for place, (each, tree) in enumerate(zip(found, trees, strict=True)):
            marks += _by_case(each[name], tree, labels[place], place)
        first = found[0][name]
        panels.append(Panel(name.replace("_", " "), first.axis, first.label, tuple(marks)))
    caption = "Observables that all of the runs recorded. A line is the mean of a case over seeds."
    return Figure("shared", "What they recorded", caption, tuple(panels)), somewhere


def _by_case(course: Course, tree: xr.DataTree, label: str, color: int) -> list[Mark]:
    """Return a line for each case, the mean over its seeds."""
    cases = case_names(tree)
    marks: list[Mark] = []
    names = dict.fromkeys(cases)
    for case in names:
        values = course.values[[place for place, each in enumerate(cases) if each == case]]
        known = np.isfinite(values)
        count = known.sum(axis=0)
        mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        row = np.where(count > 0, mean, np.nan)[None]
        marks.append(
            line(dataclasses.replace(course, values=row), 0, label, color, thin=len(names) > 8)
        )
    return marks


def over_each_other(
    own: Sequence[Sequence[Figure]], labels: Sequence[str]
) -> tuple[list[Figure], str]:
    """Lay figures of the same name over each other, panel by panel.

    Returns:
        The figures, and the titles of those with a panel that cannot lie over another.
    """
    figures, left = [], []
    for first in own[0]:
        same = [next((f for f in each if f.name == first.name), None) for each in own]
        panels = []
        for panel in first.panels:
            layers = [
                next((p for p in f.panels if p.title == panel.title), None) if f else None
                for f in same
            ]
            if any(layer is None or _fills(layer) for layer in layers):
                continue
            marks: list[Mark] = []
            for place, layer in enumerate(layers):
                assert layer is not None
                marks += [
                    each
                    for mark in layer.marks
                    if (each := _of_run(mark, labels[place], place)) is not None
                    and not (isinstance(each, Rule) and each in marks)
                ]
            panels.append(dataclasses.replace(panel, marks=tuple(marks)))
        if len(panels) < len(first.panels) or first.surfaces:
            left.append(first.title)
        if panels:
            caption = f"{CAPTION} {'; '.join(labels)}."
            figures.append(
                dataclasses.replace(first, caption=caption, panels=tuple(panels), surfaces=())
            )
    return figures, "; ".join(left)


def _fills(panel: Panel) -> bool:
    return any(isinstance(mark, Heat | Contour) for mark in panel.marks)


def _of_run(mark: Mark, label: str, color: int) -> Mark | None:
    match mark:
        case Line(theory=True):
            return dataclasses.replace(mark, label=mark.label or "theory")
        case Line() | Band() | Histogram() | Dots():
            return dataclasses.replace(mark, label=label, color=color)
        case Rule():
            return mark
    return None
