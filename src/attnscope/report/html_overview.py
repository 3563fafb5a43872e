"""The first screen of a watched run in the HTML page: loss, events, a map of readings."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from attnscope.report import style
from attnscope.report.figure import Line
from attnscope.report.html_sections import diagnosis_section
from attnscope.report.html_surface import inert
from attnscope.report.overview import Event, Overview, ReadingMap, uneven
from attnscope.report.page import Page
from attnscope.report.wording import number

COLORS = 64
KINDS = {
    "heads": "for each head",
    "layers": "for each layer",
    "matrices": "for each weight matrix",
    "blocks": "for each block",
}
"""What the rows of a map are, as the chooser says it."""


def overview_section(page: Page) -> str:
    """Return the section with the diagnosis beside it; empty if the page has none."""
    overview = page.overview
    if overview is None or not (overview.losses or overview.maps):
        return ""
    events = sorted(overview.events, key=lambda event: event.step)
    diagnosis = diagnosis_section(page)
    beside = f'<h3 id="diagnosis">Diagnosis</h3>\n{diagnosis}' if diagnosis else ""
    aside = "\n".join(part for part in (beside, _events(events)) if part)
    return f"""<div class="first">
<div class="card overview" id="overview-chart">
<noscript><p>The chart is drawn by a script, which this browser does not run.</p></noscript>
<div class="map-tools" hidden>
{_chooser(overview)}
<label class="check"><input type="checkbox" data-overview="log"{_checked(overview)}> \
logarithmic steps</label>
</div>
<canvas tabindex="0" role="img" aria-label="Loss and readings over the steps of training" \
aria-describedby="overview-read overview-words"></canvas>
<p class="small map-read" id="overview-read" role="status"></p>
<p class="soft small" id="overview-words">{escape(_in_words(page, overview))}</p>
<script type="application/json" data-overview-of="overview-chart">{_data(overview, events)}</script>
</div>
<div class="beside">{aside}</div>
</div>"""


def _chooser(overview: Overview) -> str:
    if not overview.maps:
        return ""
    groups = []
    for kind, words in KINDS.items():
        options = "".join(
            f'<option value="{at}"{" selected" if at == 0 else ""}>{escape(_said(map_.name))}'
            "</option>"
            for at, map_ in enumerate(overview.maps)
            if map_.kind == kind
        )
        if options:
            groups.append(f'<optgroup label="{words}">{options}</optgroup>')
    return f'<label>Map of <select data-overview="reading">{"".join(groups)}</select></label>'


def _checked(overview: Overview) -> str:
    clocks = [np.asarray(part.steps) for part in overview.maps] or [
        np.asarray(line.x) for line in overview.losses
    ]
    return " checked" if uneven(np.concatenate(clocks)) else ""


def _events(events: list[Event]) -> str:
    if not events:
        return ""
    items = []
    for event in events:
        text = escape(event.text)
        if event.anchor:
            text = f'<a href="#{escape(event.anchor)}">{text}</a>'
        items.append(
            f'<li class="{event.kind}"><span class="value">step {event.step:,}</span> {text}</li>'
        )
    listed_events = "".join(items)
    return (
        f'<div class="card"><h3>What began when</h3><ol class="events">{listed_events}</ol></div>'
    )


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


def _data(overview: Overview, events: list[Event]) -> str:
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
