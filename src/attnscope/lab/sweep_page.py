"""The markup of a sweep: its phase diagrams as cells that lead to their runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.lab.entries import read
from attnscope.lab.safety import confined, written
from attnscope.markup import fill
from attnscope.report import style
from attnscope.report.html import document
from attnscope.report.wording import SYMBOLS, number
from attnscope.results import page_of
from attnscope.sweeps import SweepFolder, open_sweep
from attnscope.sweeps.axes import said
from attnscope.sweeps.diagram import Diagram, diagrams
from attnscope.sweeps.report import edges_of, study_of, summary_table, ticks_of
from attnscope.sweeps.tree import open_row

if TYPE_CHECKING:
    from markupsafe import Markup

LARGEST_POINT = 256 << 20
"""Bytes of the largest point that is opened."""
SIZE, LEFT, BELOW = (560, 380), 78, 54
"""Width and height of a diagram in pixels, and the room for its labels."""
MANIFEST = "sweep.json"


def sweeps_section(root: Path, names: Sequence[str]) -> tuple[Markup | str, list[str]]:
    """Return the list of sweeps among some folders, and the names of the others.

    Only their manifests are read.
    """
    rows, others = [], []
    wall = Path(os.path.realpath(root))
    for name in names:
        try:
            if written(name) != name:
                raise FileNotFoundError
            told = json.loads(read(wall, confined(root, name), MANIFEST))
            fields = " × ".join("+".join(map(str, axis["fields"])) for axis in told["axes"])
            cells = (str(told["study"]), fields, str(told["status"]), str(told.get("created", "")))
        except (OSError, AttnscopeError):
            others.append(name)
            continue
        except Exception:  # Whatever is in that file is no reason to lose the list.
            cells = ("", "", "its manifest sweep.json is damaged", "")
        rows.append((_address(name), name, cells))
    return (fill("lab/sweeps", rows=rows) if rows else ""), others


def _address(name: str) -> str:
    return f"/sweeps/{quote(name, safe='')}/"


def sweep_body(root: Path, name: str, claim: str) -> Iterator[dict[str, Any]]:
    """Yield the markup of one sweep: a list of claims, and the diagrams of one of them."""
    path = confined(root, name)
    tree = open_sweep(path)
    table = summary_table(tree)
    claims = [str(row[0]) for row in table.rows]
    if claim and claim not in claims:
        raise AttnscopeError(f"The sweep '{name}' decides no claim '{claim}'.")
    chosen = claim or (claims[0] if claims else "")
    drawn = list(diagrams(tree, study_of(tree), [chosen])) if chosen else []
    filled = fill(
        "lab/sweep",
        name=name,
        address=_address(name),
        study=tree.attrs["study"],
        status=tree.attrs["status"],
        report=(path / "report.html").is_file(),
        table=table,
        chosen=chosen,
        quoted=lambda key: quote(str(key), safe=""),
        theory=", ".join(sorted({label for each in drawn for _, _, label in each.theory})),
        diagrams=[_svg(diagram, _address(name)) for diagram in drawn],
    )
    yield {"html": filled}


def point_report(root: Path, name: str, number_: int) -> Iterator[dict[str, Any]]:
    """Yield the report of one point, drawn from its trajectory."""
    folder = SweepFolder(confined(root, name))
    row = next((row for row in folder.rows() if row["point"] == number_), None)
    if row is None:
        raise AttnscopeError(f"There is no point {number_} in the sweep '{name}'.")
    file = folder.point_path(number_)
    if file.is_file() and file.stat().st_size > LARGEST_POINT:
        raise AttnscopeError(f"Point {number_} is larger than {LARGEST_POINT >> 20} MB.")
    tree = open_row(folder, row)
    if row["outcome"] != "finished":
        raise AttnscopeError(f"At {said(row['values'])}: {row['status']}.")
    yield {"html": document(page_of(tree)), "title": said(row["values"])}


def _svg(diagram: Diagram, address: str) -> Markup:
    """Return a diagram as cells with links."""
    (width, height), two = SIZE, len(diagram.names) == 2
    values = np.atleast_2d(diagram.values)
    verdicts, points = np.atleast_2d(diagram.verdicts), np.atleast_2d(diagram.points)
    xs = _unit(edges_of(diagram.places[0], diagram.logs[0]), diagram.logs[0])
    edges_y = edges_of(diagram.places[1], diagram.logs[1]) if two else np.array([0.0, 1.0])
    ys = _unit(edges_y, two and diagram.logs[1])
    shown = values[np.isfinite(values)]
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0)
    log = low > 0 and high > 30 * low
    ramp = style.ramp(False, 64)
    left = LEFT if two else 12
    across, up = width - left - 8, height - BELOW - 30
    up = up if two else 90
    total = up + BELOW + 30
    cells = []
    for row, column in np.ndindex(*values.shape):
        if points[row, column] < 0:
            continue
        x, y = left + xs[column] * across, 30 + (1 - ys[row + 1]) * up
        w, h = (xs[column + 1] - xs[column]) * across, (ys[row + 1] - ys[row]) * up
        fill_, ink = _fill(float(values[row, column]), low, high, log, ramp)
        verdict = str(verdicts[row, column])
        sign = SYMBOLS.get(verdict, "!" if verdict == "diverged" else "")
        at = [f"{diagram.names[0]} = {diagram.places[0][column]:.6g}"]
        if two:
            at.append(f"{diagram.names[1]} = {diagram.places[1][row]:.6g}")
        told = f"{', '.join(at)}: {number(float(values[row, column]))}, {verdict or 'not decided'}"
        cells.append(
            {
                "point": points[row, column],
                "x": x,
                "y": y,
                "width": w,
                "height": h,
                "fill": fill_,
                "ink": ink,
                "told": told,
                "sign": sign if min(w, h) > 12 else "",
            }
        )
    lines = []
    for theory_x, theory_y, label in diagram.theory:
        px = left + np.interp(_scaled(theory_x, diagram.logs[0]), *_span(diagram, 0)) * across
        if two:
            py = 30 + (1 - np.interp(_scaled(theory_y, diagram.logs[1]), *_span(diagram, 1))) * up
        else:
            px, py = np.repeat(px, 2), np.array([30.0, 30.0 + up])
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))
        lines.append((path, label))
    return fill(
        "lab/diagram",
        diagram=diagram,
        address=address,
        width=width,
        height=total,
        left=left,
        cells=cells,
        lines=lines,
        labels=_labels(diagram, xs, ys, left, across, up),
        upright=diagram.names[1] if two else "",
        middle=30 + up / 2,
    )


def _labels(
    diagram: Diagram, xs: np.ndarray, ys: np.ndarray, left: int, across: int, up: int
) -> list[tuple[str, float, float, str]]:
    """Return what is written along the axes: the text, its place, and what is there of it."""
    labels: list[tuple[str, float, float, str]] = []
    for at, text in ticks_of(diagram.places[0], diagram.logs[0]):
        i = int(np.argmin(abs(diagram.places[0] - at)))
        labels.append((text, left + (xs[i] + xs[i + 1]) / 2 * across, 30 + up + 18, "middle"))
    labels.append((diagram.names[0], left + across / 2, 30 + up + 40, "middle"))
    if len(diagram.names) == 2:
        for at, text in ticks_of(diagram.places[1], diagram.logs[1]):
            i = int(np.argmin(abs(diagram.places[1] - at)))
            y = 30 + (1 - (ys[i] + ys[i + 1]) / 2) * up + 4
            labels.append((text, left - 6, y, "end"))
    return labels


def _fill(value: float, low: float, high: float, log: bool, ramp: list[str]) -> tuple[str, str]:
    """Return the colour of a cell, and one that can be read on it."""
    if not np.isfinite(value):
        return "#9a9a9a", "#000"
    if log:
        value, low, high = np.log(value), np.log(low), np.log(high)
    share = (value - low) / (high - low) if high > low else 0.0
    return ramp[round(share * (len(ramp) - 1))], "#fff" if share < 0.6 else "#000"


def _scaled(places: np.ndarray, log: bool) -> np.ndarray:
    return np.log(places) if log else np.asarray(places)


def _unit(edges: np.ndarray, log: bool) -> np.ndarray:
    at = _scaled(edges, log)
    return np.asarray((at - at[0]) / (at[-1] - at[0]))


def _span(diagram: Diagram, axis: int) -> tuple[list[float], list[float]]:
    at = _scaled(edges_of(diagram.places[axis], diagram.logs[axis]), diagram.logs[axis])
    return [float(at[0]), float(at[-1])], [0.0, 1.0]
