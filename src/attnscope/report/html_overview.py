"""The first screen of a watched run in the HTML page: loss, events, a map of readings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from attnscope.markup import fill, inert
from attnscope.report import style
from attnscope.report.figure import Line
from attnscope.report.html_sections import diagnosis_section
from attnscope.report.overview import Event, Overview, ReadingMap, uneven
from attnscope.report.page import Page
from attnscope.report.wording import number

if TYPE_CHECKING:
    from markupsafe import Markup

COLORS = 64
KINDS = {
    "heads": "for each head",
    "layers": "for each layer",
    "matrices": "for each weight matrix",
    "blocks": "for each block",
}
"""What the rows of a map are, as the chooser says it."""


def overview_section(page: Page) -> Markup | str:
    """Return the section with the diagnosis beside it; empty if the page has none."""
    overview = page.overview
    if overview is None or not has_overview(page):
        return ""
    events = sorted(overview.events, key=lambda event: event.step)
    return fill(
        "report/overview",
        groups=_groups(overview),
        log=_uneven(overview),
        words=_in_words(page, overview),
        data=_data(overview, events),
        diagnosis=diagnosis_section(page),
        events=events,
    )


def has_overview(page: Page) -> bool:
    """Return whether there is anything to see on the first screen of a watched run."""
    return page.overview is not None and bool(page.overview.losses or page.overview.maps)


def _groups(overview: Overview) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the maps to choose from, by what their rows are."""
    found = [
        (words, [(at, _said(map_.name)) for at, map_ in enumerate(overview.maps) if map_.kind == k])
        for k, words in KINDS.items()
    ]
    return [(words, options) for words, options in found if options]


def _uneven(overview: Overview) -> bool:
    """Return whether steps are better seen on a logarithmic axis."""
    clocks = [np.asarray(part.steps) for part in overview.maps] or [
        np.asarray(line.x) for line in overview.losses
    ]
    return uneven(np.concatenate(clocks))


def _in_words(page: Page, overview: Overview) -> str:
    """Say what the chart shows, for those who cannot see it."""
    parts = []
    for line in overview.losses:
        known = np.isfinite(line.y)
        if known.any():
            y, x = line.y[known], line.x[known]
            low = int(np.argmin(y))
            parts.append(
                f"{line.label.capitalize()}: {number(y[0])} at step {x[0]:,.0f}, lowest "
                f"{number(y[low])} at step {x[low]:,.0f}, {number(y[-1])} at step {x[-1]:,.0f}."
            )
    if overview.maps:
        parts.append(
            "Numbered flags are what began when. Below, a row for each head (or layer, or matrix); "
            "the mouse or the arrow keys read it"
            + (
                ", and a click or Enter opens the attention of that layer at that step."
                if page.maps
                else "."
            )
        )
    return " ".join(parts)


def _data(overview: Overview, events: list[Event]) -> Markup:
    values = {
        "losses": [_line(line) for line in overview.losses],
        "events": [{"step": e.step, "text": e.text, "kind": e.kind} for e in events],
        "maps": [_map(part) for part in overview.maps],
        "colors": style.ramp(diverging=False, size=COLORS),
    }
    return inert(json.dumps(values, ensure_ascii=False, allow_nan=False))


def _line(line: Line) -> dict[str, object]:
    return {
        "label": line.label,
        "color": style.color(line.color),
        "x": listed(line.x),
        "y": listed(line.y),
    }


def _map(part: ReadingMap) -> dict[str, object]:
    return {
        "name": _said(part.name),
        "meaning": part.meaning,
        "kind": part.kind,
        "groups": part.groups,
        "rows": part.rows,
        "steps": [int(step) for step in part.steps],
        "span": part.span(),
        "log": part.log,
        "packed": part.packed(),
    }


def listed(values: np.ndarray) -> list[float | None]:
    """Return numbers in six digits, far finer than a pixel; JSON has no NaN."""
    known = np.isfinite(values)
    return [float(f"{v:.6g}") if k else None for v, k in zip(values.tolist(), known, strict=True)]


def _said(name: str) -> str:
    return name.replace("_", " ")
