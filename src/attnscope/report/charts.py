"""The usual figures and tables of a study, made from labelled readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from attnscope.probes.intervals import mean_interval
from attnscope.report.figure import Band, Figure, Line, Mark, Panel, Scale
from attnscope.report.page import Cell, Table
from attnscope.trajectory import Readings, final
from attnscope.trajectory.readings import record_dim

CLOCKS = {"step": "step", "epoch": "epoch", "time": "time (learning rate × steps)"}
"""What the clocks of a trajectory are called below an axis."""


def band(
    reading: xr.DataArray, label: str = "", color: int = 0, *, x: str = "step", log: bool = False
) -> list[Mark]:
    """Return the mean over seeds with its 95 % interval; of one seed, the curve alone.

    Args:
        reading: along ``seed`` and a recorded dimension; the mean is taken over other ones.
        label: stands in the legend.
        color: number of the colour.
        x: the clock of the horizontal axis: ``step``, ``epoch`` or ``time``.
        log: take the mean of the logarithm, as for a logarithmic axis.
    """
    dim, clock = record_dim(reading), _clock(reading, x)
    values = _only(reading, "seed", dim).to_numpy()
    mean, low, high = mean_interval(np.log(values) if log else values)
    if log:
        mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
    line = Line(clock, mean, label, color)
    return [line] if len(values) < 2 else [Band(clock, low, high, color=color), line]


def bands(
    readings: Mapping[str, xr.DataArray], *, x: str = "step", log: bool = False
) -> tuple[Mark, ...]:
    """Return mean and interval of several readings by their labels, in colours of their own."""
    each = enumerate(readings.items())
    return tuple(m for i, (label, reading) in each for m in band(reading, label, i, x=x, log=log))


def each_seed(
    reading: xr.DataArray, label: str = "", color: int = 0, *, x: str = "step"
) -> list[Mark]:
    """Return a curve for every seed; the first one is in the legend, the others are thin."""
    clock = _clock(reading, x)
    values = _only(reading, "seed", record_dim(reading)).to_numpy()
    return [
        Line(clock, curve, "" if seed else label, color, thin=seed > 0)
        for seed, curve in enumerate(values)
    ]


def curves(
    run: Readings,
    name: str,
    *,
    over: str = "step",
    theory: str = "",
    title: str = "",
    caption: str = "",
    cases: Sequence[str] = (),
    xscale: Scale = "linear",
    yscale: Scale = "linear",
) -> Figure:
    """Draw a reading, a panel for each case and a curve for each seed, with theory over it.

    Args:
        run: what was recorded.
        name: of the reading; axes other than the recorded one are averaged over.
        over: the horizontal axis: ``step``, ``epoch``, ``time``, or another reading.
        theory: what is predicted, by its name in the group ``theory``; nothing unless given.
        title: heading of the figure.
        caption: what is drawn, and what one should see.
        cases: those that are drawn; all unless given.
        xscale: linear or logarithmic.
        yscale: linear or logarithmic.
    """
    panels = []
    for case in cases or run.cases:
        own = run.of(case)
        marks: list[Mark] = []
        for i, (x, y) in enumerate(_pairs(own, own.get(name), over)):
            marks.append(Line(x, y, f"seed {i}", i))
        if theory:
            for x, y in _pairs(own, own.theory.get(theory), over):
                marks.append(Line(x, y, "theory", theory=True))
        xlabel = CLOCKS.get(over) or _axis(own.get(over))
        panels.append(Panel(case, xlabel, _axis(own.get(name)), tuple(marks), xscale, yscale))
    return Figure(
        f"{name}-over-{over}".replace("_", "-"),
        title or f"{name} over {over}",
        caption or f"{name} over {over}, case by case; one curve for each seed.",
        tuple(panels),
    )


def ends(
    run: Readings,
    *names: str,
    title: str = "End of training, mean over seeds",
    key: str = "end",
    head: str = "case",
    more: Mapping[str, xr.DataArray] | None = None,
    cases: Sequence[str] = (),
) -> Table:
    """Tabulate where readings end, a row for each case.

    Args:
        run: what was recorded.
        names: readings; a column has the mean over seeds and over all axes.
        title: heading of the table.
        key: its file name.
        head: heading of the column of cases.
        more: further columns by their headings, readings with a dimension ``case``.
        cases: rows; all cases unless given.
    """
    columns = {_axis(run.get(name)): run.get(name) for name in names} | dict(more or {})
    rows: list[tuple[Cell, ...]] = [
        (case, *(float(_end(each.sel(case=case)).mean(skipna=False)) for each in columns.values()))
        for case in cases or run.cases
    ]
    return Table(key, title, (head, *columns), tuple(rows))


def _end(reading: xr.DataArray) -> xr.DataArray:
    clocks = [each for name, each in reading.coords.items() if str(name).startswith("time")]
    recorded = any(clock.ndim for clock in clocks)
    return final(reading) if recorded else reading


def _axis(reading: xr.DataArray) -> str:
    unit = reading.attrs.get("unit", "")
    return f"{reading.name} ({unit})" if unit else str(reading.name)


def _clock(reading: xr.DataArray, x: str) -> np.ndarray:
    dim = record_dim(reading)
    name = dim if x == "step" else x if dim == "step" else f"{x}_{dim}"
    return np.asarray(reading[name].to_numpy())


def _only(reading: xr.DataArray, *dims: str) -> xr.DataArray:
    return reading.mean([dim for dim in reading.dims if dim not in dims]).transpose(*dims)


def _pairs(run: Readings, reading: xr.DataArray, over: str) -> list[tuple[np.ndarray, np.ndarray]]:
    dim = record_dim(reading)
    values = _only(reading, "seed", dim).to_numpy()
    if over in CLOCKS:
        clock = _clock(reading, over)
        return [(clock, curve) for curve in values]
    along = _only(run.get(over), "seed", dim).to_numpy()
    return list(zip(along, values, strict=True))
