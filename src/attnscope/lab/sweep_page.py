"""The markup of a sweep: its phase diagrams as cells that lead to their runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.lab.entries import read
from attnscope.lab.safety import confined, written
from attnscope.report import style
from attnscope.report.html import document
from attnscope.report.wording import SYMBOLS, number
from attnscope.results import page_of
from attnscope.sweeps import SweepFolder, open_sweep
from attnscope.sweeps.axes import said
from attnscope.sweeps.diagram import Diagram, diagrams
from attnscope.sweeps.report import edges_of, study_of, summary_table, ticks_of
from attnscope.sweeps.tree import open_row

LARGEST_POINT = 256 << 20
"""Bytes of the largest point that is opened."""
SIZE, LEFT, BELOW = (560, 380), 78, 54
"""Width and height of a diagram in pixels, and the room for its labels."""
MANIFEST = "sweep.json"


def sweeps_section(root: Path, names: Sequence[str]) -> tuple[str, list[str]]:
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
        link = f'<a href="/sweeps/{quote(name, safe="")}/">{escape(name)}</a>'
        rest = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr><td>{link}</td>{rest}</tr>")
    if not rows:
        return "", others
    heads = ("Sweep", "Study", "Over", "Status", "Created (UTC)")
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return (
        f'<h2>Sweeps</h2><div class="card scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>",
        others,
    )


def sweep_body(root: Path, name: str, claim: str) -> Iterator[dict[str, Any]]:
    """Yield the markup of one sweep: a list of claims, and the diagrams of one of them."""
    path = confined(root, name)
    tree = open_sweep(path)
    table = summary_table(tree)
    claims = [str(row[0]) for row in table.rows]
    if claim and claim not in claims:
        raise AttnscopeError(f"The sweep '{name}' decides no claim '{claim}'.")
    address = f"/sweeps/{quote(name, safe='')}/"
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="lead">{escape(str(tree.attrs["study"]))}: {escape(tree.attrs["status"])}.</p>',
    ]
    if (path / "report.html").is_file():
        parts.append(f'<p><a class="button" href="{address}report">Report</a></p>')
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in table.columns)
    rows = []
    chosen = claim or (claims[0] if claims else "")
    for row in table.rows:
        mark = ' aria-current="true"' if row[0] == chosen else ""
        key = str(row[0])
        first = f'<a href="{address}?claim={quote(key, safe="")}"{mark}>{escape(key)}</a>'
        cells = "".join(f"<td>{escape(str(each))}</td>" for each in row[1:])
        rows.append(f"<tr><td>{first}</td>{cells}</tr>")
    parts.append(
        f'<div class="card scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    if chosen:
        parts.append(f"<h2>{escape(chosen)}</h2>")
        each = list(diagrams(tree, study_of(tree), [chosen]))
        names = {label for diagram in each for _, _, label in diagram.theory}
        theory = f" Dashed: {escape(', '.join(sorted(names)))}, as theory has it." if names else ""
        parts.append(
            '<p class="soft small">Colours are the statistic, from dark to bright; ✓ holds, '
            f"✗ fails. A click on a cell opens its run.{theory}</p>"
        )
        drawn = [_svg(diagram, address) for diagram in each]
        parts.append('<div class="row">' + "".join(f'<div class="card">{d}</div>' for d in drawn))
        parts.append("</div>")
    yield {"html": "".join(parts)}


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


def _svg(diagram: Diagram, address: str) -> str:
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
        fill, ink = _fill(float(values[row, column]), low, high, log, ramp)
        verdict = str(verdicts[row, column])
        sign = SYMBOLS.get(verdict, "!" if verdict == "diverged" else "")
        at = [f"{diagram.names[0]} = {diagram.places[0][column]:.6g}"]
        if two:
            at.append(f"{diagram.names[1]} = {diagram.places[1][row]:.6g}")
        told = f"{', '.join(at)}: {number(float(values[row, column]))}, {verdict or 'not decided'}"
        text = (
            f'<text x="{x + w / 2:.1f}" y="{y + h / 2 + 5:.1f}" text-anchor="middle" '
            f'fill="{ink}">{escape(sign)}</text>'
            if min(w, h) > 12
            else ""
        )
        cells.append(
            f'<a href="{address}points/{points[row, column]}"><rect x="{x:.1f}" y="{y:.1f}" '
            f'width="{w:.1f}" height="{h:.1f}" fill="{fill}"><title>{escape(told)}</title></rect>'
            f"{text}</a>"
        )
    lines = []
    for theory_x, theory_y, label in diagram.theory:
        px = left + np.interp(_scaled(theory_x, diagram.logs[0]), *_span(diagram, 0)) * across
        if two:
            py = 30 + (1 - np.interp(_scaled(theory_y, diagram.logs[1]), *_span(diagram, 1))) * up
        else:
            px, py = np.repeat(px, 2), np.array([30.0, 30.0 + up])
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))
        for look in ('stroke="#fff" stroke-width="5"', 'stroke="#1a1a1a" stroke-width="2"'):
            dash = ' stroke-dasharray="6 4"' if "1a1a" in look else ""
            lines.append(
                f'<polyline points="{path}" fill="none" {look}{dash}>'
                f"<title>{escape(label)}</title></polyline>"
            )
    labels = _labels(diagram, xs, ys, left, across, up, two)
    title = f'<text x="{left}" y="18" font-weight="600">{escape(diagram.title)}</text>'
    return (
        f'<svg width="{width}" height="{total}" viewBox="0 0 {width} {total}" role="group" '
        f'font-size="13" fill="currentColor" aria-label="{escape(diagram.claim)}">{title}'
        f"{''.join(cells)}{''.join(lines)}{labels}</svg>"
    )


def _labels(
    diagram: Diagram, xs: np.ndarray, ys: np.ndarray, left: int, across: int, up: int, two: bool
) -> str:
    parts = []
    for at, text in ticks_of(diagram.places[0], diagram.logs[0]):
        i = int(np.argmin(abs(diagram.places[0] - at)))
        x = left + (xs[i] + xs[i + 1]) / 2 * across
        parts.append(f'<text x="{x:.1f}" y="{30 + up + 18}" text-anchor="middle">{text}</text>')
    name = escape(diagram.names[0])
    middle = left + across / 2
    parts.append(f'<text x="{middle:.1f}" y="{30 + up + 40}" text-anchor="middle">{name}</text>')
    if two:
        for at, text in ticks_of(diagram.places[1], diagram.logs[1]):
            i = int(np.argmin(abs(diagram.places[1] - at)))
            y = 30 + (1 - (ys[i] + ys[i + 1]) / 2) * up + 4
            parts.append(f'<text x="{left - 6}" y="{y:.1f}" text-anchor="end">{text}</text>')
        y = 30 + up / 2
        parts.append(
            f'<text x="14" y="{y}" text-anchor="middle" transform="rotate(-90 14 {y})">'
            f"{escape(diagram.names[1])}</text>"
        )
    return "".join(parts)


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
