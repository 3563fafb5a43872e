"""The report of a sweep: a phase diagram for every claim, and a row for every point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial import cKDTree

from attnscope.catalogue import known
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.report import Cell, Figure, Line, Mark, Page, Panel, Table, publish
from attnscope.report.contours import iso_lines
from attnscope.report.figure import Band, Contour, Dots, Heat, Rule
from attnscope.report.page import check_images
from attnscope.sweeps.diagram import VERDICTS, Diagram, diagrams
from attnscope.sweeps.folder import SweepFolder
from attnscope.sweeps.pack import attributes
from attnscope.sweeps.point import NUMBERS
from attnscope.sweeps.values import spoken
from attnscope.trajectory.lock import REPORT, Lock

COLORS = {"holds": 2, "fails": 1, "undecided": 4, "diverged": 3}
"""Of verdicts; dots differ in shape as well."""
FEW = 1500
"""Cells up to which every point has its dot."""
TICKS = 9
"""Swept values that are written along an axis, at most."""
SPREAD = 30.0
"""Ratio of the largest to the smallest statistic from which colours are logarithmic."""


def write_report(
    tree: xr.DataTree,
    out: str | Path | None = None,
    *,
    figures: Sequence[str] = (),
    study: Experiment | None = None,
) -> Path:
    """Write the report of a sweep: one HTML file, and the numbers of figures and tables as CSV.

    Args:
        tree: what :func:`open_sweep` returned.
        out: the folder to write to; the sweep's own unless given.
        figures: image files that are drawn of every figure as well: ``"png"``, ``"svg"``,
            ``"pdf"``.
        study: the study, if it is not one that can be found by its name.

    Returns:
        The path of ``report.html``.
    """
    check_images(figures)
    folder = Path(out if out is not None else tree.attrs["path"])
    folder.mkdir(parents=True, exist_ok=True)
    page = page_of(tree, study, images=figures)
    with Lock(folder, "the report of a sweep", name=REPORT):
        return publish(folder, page)


def page_of(
    tree: xr.DataTree, study: Experiment | None = None, *, images: Sequence[str] = ()
) -> Page:
    """Return everything that the report of a sweep shows."""
    study = study_of(tree) if study is None else study
    base = json.loads(tree.attrs["base"])
    fields = [axis.name for axis in SweepFolder(Path(tree.attrs["path"])).axes()]
    root = tree.to_dataset(inherit=False)
    count = int((root["point"].to_numpy() >= 0).sum())
    seconds = float(np.nansum(root["seconds"].to_numpy()))
    return Page(
        title=f"{tree.attrs['study'].split(':')[-1]} over {' × '.join(fields)}",
        summary=f"{count} points of {tree.attrs['study']}, swept over {', '.join(fields)}. Every "
        "cell is a run of its own, with seeds, claims and controls; `attnscope.open_point` opens "
        "it, and the lab shows it at a click.",
        status=tree.attrs["status"],
        figures=figures_of(tree, study),
        tables=[summary_table(tree), points_table(tree)],
        spec=base,
        command=tree.attrs["command"],
        python="import attnscope\n\n"
        f"tree = attnscope.open_sweep({tree.attrs['path']!r})   # an xarray.DataTree\n"
        'tree["findings"].verdict\n',
        provenance={
            "attnscope": tree.attrs["attnscope"],
            **json.loads(tree.attrs["versions"]),
            "created": tree.attrs["created"],
            "points": count,
            "seconds of all points": round(seconds, 1),
        },
        images=tuple(images),
    )


def study_of(tree: xr.DataTree) -> Experiment | None:
    """Return the study of a sweep at its first point; none if it is not here."""
    with suppress(AttnscopeError):
        axes = SweepFolder(Path(tree.attrs["path"])).axes()
        first = {k: v for axis in axes for k, v in zip(axis.fields, axis.rows[0], strict=True)}
        spec: dict[str, Any] = {**json.loads(tree.attrs["base"]), **first}
        return known(tree.attrs["study"]).from_json(spec)
    return None


def figures_of(tree: xr.DataTree, study: Experiment | None = None) -> list[Figure]:
    """Draw a phase diagram for every claim."""
    by_claim: dict[str, list[Diagram]] = {}
    for diagram in diagrams(tree, study):
        by_claim.setdefault(diagram.claim, []).append(diagram)
    sentences = _sentences(tree)
    made = []
    for claim, each in by_claim.items():
        drawable = [one for one in each if np.isfinite(one.values).any()]
        if drawable:
            made.append(_figure(claim, drawable, sentences.get(claim, ("", ""))))
    return made


def _figure(claim: str, each: Sequence[Diagram], said_of_it: tuple[str, str]) -> Figure:
    sentence, measure = said_of_it
    one = len(each[0].names) == 1
    panels = tuple(_curve(diagram, measure) if one else _map(diagram, measure) for diagram in each)
    criterion = str(each[0].criterion)
    where = (
        "The statistic with its interval over seeds; the dotted line is the criterion, and where "
        "it is crossed is marked."
        if one
        else "Colours are the statistic, dots the verdicts; the line is where the criterion is "
        "just met."
    )
    theory = " Dashed: where theory puts the boundary." if any(d.theory for d in each) else ""
    sparse = not one and any(_is_sparse(diagram) for diagram in each)
    near = " Between points the nearest one gives the colour." if sparse else ""
    name = "".join(c if c.isalnum() else "-" for c in claim).strip("-") or "claim"
    return Figure(
        f"phase-{name}",
        f"{claim}: where it holds",
        f"{sentence} It holds where {measure or 'the statistic'} is {criterion}. {where}{near}"
        f"{theory}",
        panels,
        columns=2,
    )


def _curve(diagram: Diagram, measure: str) -> Panel:
    x, known_ = diagram.places[0], np.isfinite(diagram.values)
    marks: list[Mark] = []
    if np.isfinite(diagram.low[known_]).any():
        marks.append(Band(x[known_], diagram.low[known_], diagram.high[known_]))
    marks.append(Line(x[known_], diagram.values[known_], "statistic"))
    for verdict in VERDICTS:
        own = (diagram.verdicts == verdict) & known_
        if own.any():
            marks.append(Dots(x[own], diagram.values[own], label=verdict, color=COLORS[verdict]))
    marks += [Rule(level, f"criterion {diagram.criterion}") for level in diagram.levels]
    marks += [Rule(at, f"crosses at {at:.4g}", vertical=True) for at in diagram.crossings()[:4]]
    marks += [Rule(float(at[0]), name, vertical=True) for at, _, name in diagram.theory]
    positive = diagram.values[known_].min() > 0 and all(level > 0 for level in diagram.levels)
    wide = positive and diagram.values[known_].max() > SPREAD * diagram.values[known_].min()
    return Panel(
        diagram.title,
        diagram.names[0],
        measure or "statistic",
        tuple(marks),
        diagram.scale(0),
        "log" if wide else "linear",
        ticks_of(x, diagram.logs[0]),
    )


def ticks_of(places: np.ndarray, log: bool) -> tuple[tuple[float, str], ...]:
    """Return the swept values as ticks, so many of them as can stand side by side."""
    at = np.log(places) if log else places
    gap, kept = (at[-1] - at[0]) / TICKS, [0]
    for place in range(1, len(at)):
        if at[place] - at[kept[-1]] >= gap:
            kept.append(place)
    return tuple((float(places[i]), spoken(float(places[i]))) for i in kept)


def _map(diagram: Diagram, measure: str) -> Panel:
    values = filled(diagram)
    shown = values[np.isfinite(values)]
    log = bool(shown.size and shown.min() > 0 and shown.max() > SPREAD * shown.min())
    x, y = diagram.places
    edges = [edges_of(places, log_) for places, log_ in zip((x, y), diagram.logs, strict=True)]
    heat = Heat(edges[0], edges[1], values, measure or "statistic", log=log)
    marks: list[Mark] = [heat]
    if len(x) > 1 and len(y) > 1 and diagram.levels:
        heights = np.log(np.where(values > 0, values, np.nan)) if log else values
        levels = [level for level in diagram.levels if not log or level > 0]
        at = tuple(float(np.log(level)) if log else level for level in levels)
        if at:
            marks += _contours(diagram, heights, at)
    for theory_x, theory_y, name in diagram.theory:
        marks.append(Line(theory_x, theory_y, name, theory=True))
    if (diagram.points >= 0).sum() <= FEW:
        columns, rows = np.meshgrid(x, y)
        for verdict in VERDICTS:
            own = diagram.verdicts == verdict
            if own.any():
                marks.append(Dots(columns[own], rows[own], label=verdict, color=COLORS[verdict]))
    across, up = diagram.names
    return Panel(
        diagram.title,
        across,
        up,
        tuple(marks),
        diagram.scale(0),
        diagram.scale(1),
        ticks_of(x, diagram.logs[0]),
        ticks_of(y, diagram.logs[1]),
    )


def _contours(diagram: Diagram, heights: np.ndarray, levels: tuple[float, ...]) -> list[Mark]:
    """Return where the criterion is just met, as lines without a number on them."""
    panel = Panel("", "", "", (), diagram.scale(0), diagram.scale(1))
    lines = iso_lines(Contour(diagram.places[0], diagram.places[1], heights, levels), panel)
    name = f"criterion {diagram.criterion}"
    return [Line(line.x, line.y, name, 0) for line in lines]


def filled(diagram: Diagram) -> np.ndarray:
    """Return the statistic at every cell; on a refined grid that of the nearest point."""
    if not _is_sparse(diagram):
        return diagram.values
    there = np.isfinite(diagram.values)
    if not there.any():
        return diagram.values
    axes = [
        np.log(places) if log else places
        for places, log in zip(diagram.places, diagram.logs, strict=True)
    ]
    unit = [(axis - axis[0]) / (axis[-1] - axis[0] or 1.0) for axis in axes]
    columns, rows = np.meshgrid(*unit)
    tree = cKDTree(np.stack([columns[there], rows[there]], axis=1))
    _, nearest = tree.query(np.stack([columns.ravel(), rows.ravel()], axis=1))
    return np.asarray(diagram.values[there][nearest].reshape(diagram.values.shape))


def _is_sparse(diagram: Diagram) -> bool:
    return diagram.refined and diagram.values.ndim == 2


def edges_of(places: np.ndarray, log: bool) -> np.ndarray:
    """Return the edges of cells around places, half-way between neighbours.

    >>> edges_of(np.array([1.0, 2.0, 4.0]), False)
    array([0.5, 1.5, 3. , 5. ])
    """
    at = np.log(places) if log else places
    if len(at) == 1:
        inner, first, last = np.empty(0), at[0] - 0.5, at[0] + 0.5
    else:
        inner = (at[1:] + at[:-1]) / 2
        first, last = at[0] - (inner[0] - at[0]), at[-1] + (at[-1] - inner[-1])
    edges = np.concatenate([[first], inner, [last]])
    return np.exp(edges) if log else edges


def summary_table(tree: xr.DataTree) -> Table:
    """Return how often each claim holds, and where it turns if one field is swept."""
    findings = tree["findings"].to_dataset()
    one = len(SweepFolder(Path(tree.attrs["path"])).axes()) == 1
    outcomes = tree.to_dataset(inherit=False)["outcome"].to_numpy()
    broken = int(np.isin(outcomes, ("diverged", "exhausted")).sum())
    rows: list[tuple[Cell, ...]] = []
    turns = {d.claim: d.turns() for d in diagrams(tree)} if one else {}
    for claim in map(str, findings["claim"].values):
        own = findings.sel(claim=claim)
        verdicts = own["verdict"].values
        counts = [int((verdicts == each).sum()) for each in VERDICTS[:3]]
        controls = own["control_fails"].values
        row: tuple[Cell, ...] = (
            claim,
            *counts,
            broken,
            f"{int(np.nansum(controls))} of {int(np.isfinite(controls).sum())}",
        )
        if one:
            told = "; ".join(f"{spoken(a)} and {spoken(b)}" for a, b in turns[claim][:3])
            row = (*row, told or "nowhere")
        rows.append(row)
    heads = ("claim", "holds", "fails", "undecided", "diverged", "control fails")
    return Table(
        "claims",
        "Claims over the sweep, number of points",
        (*heads, "turns between") if one else heads,
        tuple(rows),
    )


def points_table(tree: xr.DataTree) -> Table:
    """Return a row for every point: its values, what each claim came to, and what it took."""
    folder = SweepFolder(Path(tree.attrs["path"]))
    rows_, fields = folder.rows(), [name for axis in folder.axes() for name in axis.fields]
    keys = list(dict.fromkeys(claim for row in rows_ for claim in row["findings"]))
    ours, verdict = NUMBERS.index("ours"), NUMBERS.index("verdict")
    rows: list[tuple[Cell, ...]] = []
    for row in rows_:
        cells: list[Cell] = []
        for claim in keys:
            found = row["findings"].get(claim)
            cells += [None, row["outcome"]] if found is None else [found[ours], found[verdict]]
        values = [spoken(row["values"][name]) for name in fields]
        rows.append((row["point"], *values, *cells, row.get("seeds"), row.get("seconds")))
    heads = [head for claim in keys for head in (claim, f"{claim}, verdict")]
    return Table(
        "points",
        "Points",
        ("point", *fields, *heads, "seeds", "seconds"),
        tuple(rows),
        folded=True,
    )


def _sentences(tree: xr.DataTree) -> dict[str, tuple[str, str]]:
    """Return sentence and measure of each claim, as the first point that decided it says them."""
    folder = SweepFolder(Path(tree.attrs["path"]))
    found: dict[str, tuple[str, str]] = {}
    for row in folder.rows():
        if set(row["findings"]) - set(found):
            for each in attributes(folder.point_path(int(row["point"])))["findings"]:
                found.setdefault(each["key"], (each["sentence"], each["measure"]))
    return found
