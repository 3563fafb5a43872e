"""The page that lays two runs over each other."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import xarray as xr

from attnscope.comparison.compare import Comparison, finite, watched
from attnscope.comparison.differences import Difference
from attnscope.report.attention_maps import thinned
from attnscope.report.figure import Figure, Line, Mark, Panel, Rule
from attnscope.report.overview import Event, Overview, ReadingMap
from attnscope.report.page import Page
from attnscope.watched.figures import POINTS, plain_name
from attnscope.watched.overview import fitting, in_order, map_of

MEANING = (
    "|a − b| over the largest number of the reading at that step, of both runs; empty where they "
    "are equal"
)
CASES = 6
"""Cases of a study that get a panel of their own."""


def page_of(found: Comparison) -> Page:
    """Return the report: where the runs part, and both curves of every reading."""
    left_out = "; ".join(f"{name} ({why})" for name, why in found.left_out.items())
    notes = [
        f"A is {found.a}, B is {found.b}.",
        found.sentence,
        *found.notes,
        f"Not compared: {left_out}." if left_out else "",
    ]
    tables = [found.table(), found.settings_table()]
    return Page(
        title=f"{found.a} beside {found.b}",
        summary=" ".join(note for note in notes if note),
        status=(
            "The relative difference at a step is max |a − b| / max(max |a|, max |b|) over all "
            f"numbers of the reading at that step; runs count as apart above {found.threshold:g}."
        ),
        figures=[_figure(each, found.threshold) for each in found.differences],
        tables=[table for table in tables if table is not None],
        overview=_overview(found),
        command=f"attnscope compare {found.trees[0].attrs.get('path', 'A')} "
        f"{found.trees[1].attrs.get('path', 'B')} --relative {found.threshold:g}",
    )


def _overview(found: Comparison) -> Overview:
    events: dict[tuple[int, str], list[str]] = {}
    for each in found.differences:
        if each.beyond is not None and each.beyond >= 0:
            events.setdefault((each.beyond, "fault"), []).append(each.name.replace("_", " "))
    told = [
        Event(step, f"apart: {', '.join(names[:6])}{' …' if len(names) > 6 else ''}", "fault")
        for (step, _), names in events.items()
    ]
    if found.first is not None and found.first >= 0 and found.first != found.beyond:
        told.append(Event(found.first, "the first bit differs", "stage"))
    losses = [line for each in found.differences if each.name == "loss" for line in _pair(each)]
    maps = []
    if watched(found.trees[0]):
        spec = json.loads(found.trees[0].attrs["spec"])
        maps = [made for each in found.differences if (made := _map(each, spec)) is not None]
    return Overview(tuple(losses), tuple(told), fitting(in_order(maps)))


def _map(each: Difference, spec: dict[str, object]) -> ReadingMap | None:
    """Return where in the model a reading is apart: a row for each head, layer or matrix."""
    if each.first is None or each.steps[0] < 0:
        return None
    one, two = each.a.to_numpy().astype(float), each.b.to_numpy().astype(float)
    with np.errstate(invalid="ignore"):
        gap = np.abs(one - two)
    size = np.fmax(np.abs(one), np.abs(two))
    scale = np.nanmax(size.reshape(len(gap), len(each.steps), -1), axis=2, initial=0.0)
    spread = (slice(None), slice(None), *(None,) * (gap.ndim - 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = gap / np.where(scale > 0, scale, np.nan)[spread]
    # Colours are logarithmic: what is equal is drawn as empty.
    shown = each.a.copy(data=np.where(share > 0, share, np.nan))
    made = map_of(each.name, shown, spec, log=True)
    return None if made is None else replace(made, meaning=MEANING)


def _figure(each: Difference, threshold: float) -> Figure:
    name = each.name.replace("_", " ")
    axes = [str(dim).split("[")[0] for dim in each.a.dims[2:]]
    over = f" Means over {' and '.join(axes)}." if axes else ""
    cases = list(dict.fromkeys(each.a["case"].to_numpy().tolist()))
    panels = [
        Panel(
            name if len(cases) == 1 else str(case),
            "step",
            name,
            tuple(_pair(each, np.flatnonzero(each.a["case"].to_numpy() == case))),
        )
        for case in cases[:CASES]
    ]
    marks: list[Mark] = [_line(each.steps, finite(each.relative), "relative difference", 2)]
    marks.append(Rule(threshold, "threshold"))
    scale = "log" if (finite(each.relative) > 0).any() else "linear"
    panels.append(Panel("relative difference", "step", "relative difference", tuple(marks),
                        yscale=scale))  # type: ignore[arg-type]  # fmt: skip
    ends = "never" if each.first is None else f"from step {each.first:,} on"
    return Figure(
        plain_name(each.name), name, f"Both runs differ {ends}.{over}", tuple(panels), columns=2
    )


def _pair(each: Difference, rows: np.ndarray | None = None) -> list[Line]:
    return [
        _line(each.steps, _mean(side, rows), label, color)
        for color, (side, label) in enumerate(((each.a, "A"), (each.b, "B")))
    ]


def _mean(reading: xr.DataArray, rows: np.ndarray | None) -> np.ndarray:
    """Return the mean over runs and axes at each step; NaN where there is no number."""
    values = reading.to_numpy().astype(float)
    values = values if rows is None else values[rows]
    flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
    known = np.isfinite(flat)
    total = np.where(known, flat, 0.0).sum(axis=1)
    count = known.sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _line(steps: np.ndarray, values: np.ndarray, label: str, color: int) -> Line:
    kept = thinned(len(steps), POINTS)
    return Line(steps[kept].astype(float), values[kept], label, color)
