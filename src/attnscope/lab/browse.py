"""The markup of the list of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from attnscope.lab.entries import Condition, Entry
from attnscope.report.wording import SYMBOLS
from attnscope.trajectory.manifest import WATCHED

SHOWN = 100
"""Rows of the page itself; the others follow when it stands, hidden until they are asked for."""

WORDS: dict[Condition, str] = {
    "going": "still going",
    "finished": "finished",
    "unfinished": "not finished",
    "unreadable": "cannot be read",
}


def settings(runs: Sequence[Entry]) -> dict[str, str]:
    """Say for each run in which fields it differs from others of its study.

    >>> a = Entry("a", "finished", "", "lu2021.sen", spec={"m": 5, "dim": 15})
    >>> b = Entry("b", "finished", "", "lu2021.sen", spec={"m": 20, "dim": 15})
    >>> settings([a, b])
    {'a': 'm = 5', 'b': 'm = 20'}
    """
    groups: dict[str, list[Entry]] = defaultdict(list)
    for run in runs:
        groups[run.study].append(run)
    said = {}
    for group in groups.values():
        values: dict[str, set[str]] = defaultdict(set)
        for run in group:
            for name, value in run.spec.items():
                values[name].add(json.dumps(value))
        differ = [name for name, seen in values.items() if len(seen) > 1]
        for run in group:
            parts = [f"{name} = {_short(run.spec[name])}" for name in differ if name in run.spec]
            said[run.name] = ", ".join(parts)
    return said


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def runs_page(
    root: Path, runs: Sequence[Entry], others: Sequence[str], *, whole: bool = False
) -> str:
    """Return the markup of the list: its first rows, or all of them."""
    rest = ""
    if others:
        names = ", ".join(others[:20]) + (
            f" and {len(others) - 20} more" if len(others) > 20 else ""
        )
        rest = (
            f'<p class="soft small">Folders without a run.json, which are no runs: '
            f"{escape(names)}.</p>"
        )
    if not runs:
        return (
            f"<h1>Runs</h1><div class='card'><p>There is no run in '{escape(str(root))}' yet.</p>"
            "<p>Make one: <code>attnscope run lu2021.sen --scale quick</code></p></div>" + rest
        )
    first = runs if whole else runs[:SHOWN]
    rows = run_rows(runs, first)
    more = ""
    if len(first) < len(runs):
        more = (
            f'<p><a class="button" id="more" href="/runs?part=all">Show all {len(runs):,}</a></p>'
        )
    heads = ("Run", "Study", "Status", "Claims", "Created (UTC)")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    going = sum(run.condition == "going" for run in runs)
    plural = "" if len(runs) == 1 else "s"
    told = f"{len(runs):,} run{plural} in '{root}'" + (f", {going} still going" if going else "")
    return f"""<h1>Runs</h1>
<p class="lead">{escape(told)}. Tick several to draw them over each other.</p>
<form action="/compare" method="get">
<div class="row tools">
<label class="hidden-words" for="filter">Filter the runs</label>
<input type="search" class="grow" id="filter" placeholder="Filter: name, study, setting, status"
 autocomplete="off">
<button type="submit" class="primary" id="compare">Draw over each other</button>
<span class="soft small" id="shown" role="status"></span>
</div>
<div class="card scroll"><table class="cards runs">
<thead><tr><th scope="col"><span class="hidden-words">Compare</span></th>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
{more}
</form>
{rest}"""


def run_rows(runs: Sequence[Entry], shown: Sequence[Entry], *, hidden: bool = False) -> str:
    """Return the rows of some of the runs; what all of them share is not said."""
    said = settings(runs)
    return "\n".join(_row(run, said[run.name], hidden) for run in shown)


def _row(run: Entry, said: str, hidden: bool) -> str:
    name, row = escape(run.name), "<tr hidden>" if hidden else "<tr>"
    if run.condition == "unreadable":
        return (
            f"{row}<td></td><td><strong>{name}</strong></td><td data-label='Study'></td>"
            f'<td colspan="3" data-label="Status"><span class="badge fails">cannot be read</span> '
            f"{escape(run.status)}</td></tr>"
        )
    tick = f'<input type="checkbox" name="run" value="{name}" aria-label="Compare {name}">'
    kind = {"going": "holds", "finished": "", "unfinished": "undecided"}[run.condition]
    badge = f'<span class="badge {kind}">{WORDS[run.condition]}</span> ' if kind else ""
    live = "" if run.condition == "finished" else f' <a href="{run.live}">live</a>'
    more = f'<p class="soft small">{escape(said)}</p>' if said else ""
    study = "a watched model" if run.study == WATCHED else run.study
    claims = counts(run.verdicts)
    if not run.verdicts and run.trouble:
        claims = '<span class="small">cannot be read</span>'
    created = escape(run.created[:16].replace("T", " "))
    return (
        f"{row}<td>{tick}</td><td><a href='{run.address}'><strong>{name}</strong></a>{more}</td>"
        f'<td data-label="Study">{escape(study)}</td>'
        f'<td data-label="Status">{badge}<span class="small">{escape(run.status)}</span>{live}</td>'
        f'<td data-label="Claims">{claims}</td>'
        f'<td data-label="Created" class="when">{created}</td></tr>'
    )


def counts(verdicts: Sequence[str]) -> str:
    """Return how many claims hold, fail and are undecided, as badges with words."""
    parts = []
    for verdict, symbol in SYMBOLS.items():
        count = verdicts.count(verdict)
        if count:
            parts.append(
                f'<span class="badge {verdict}" title="{count} {verdict}">{symbol} {count}'
                f'<span class="hidden-words"> {verdict}</span></span>'
            )
    return " ".join(parts) or '<span class="soft small">none</span>'
