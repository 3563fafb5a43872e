"""The claims ledger: every claim that a run decides, with the way to its figure and its run."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from urllib.parse import quote

from attnscope.claims import Finding
from attnscope.lab.entries import Entry
from attnscope.lab.safety import written
from attnscope.report.wording import (
    SYMBOLS,
    control_class,
    control_outcome,
    interval,
    number,
    summary,
)

MOST = 40
"""Further runs that are named under a claim; the list of runs has all of them."""


@dataclass(frozen=True)
class Row:
    """One claim and what it came to in every run, the newest first."""

    study: str
    found: tuple[tuple[Entry, Finding], ...]


def rows(runs: Sequence[Entry]) -> list[Row]:
    """Gather the findings of all runs, claim by claim, in the order of study and claim."""
    gathered: dict[tuple[str, str], list[tuple[Entry, Finding]]] = defaultdict(list)
    for run in runs:
        for finding in run.findings:
            gathered[run.study, finding.key].append((run, finding))
    order = {key: place for place, key in enumerate(gathered)}
    keys = sorted(gathered, key=lambda key: (key[0], order[key]))
    return [Row(study, tuple(gathered[study, key])) for study, key in keys]


def ledger_page(runs: Sequence[Entry]) -> str:
    """Return the markup of the ledger."""
    table, unread = rows(runs), _unread(runs)
    if not table:
        return (
            "<h1>Claims</h1><div class='card'><p>No run has decided a claim yet.</p>"
            "<p>Make one: <code>attnscope run lu2021.sen --scale quick</code></p></div>" + unread
        )
    newest = [row.found[0][1] for row in table]
    parts = []
    for study in dict.fromkeys(row.study for row in table):
        body = "\n".join(_claim(row) for row in table if row.study == study)
        parts.append(
            f"<h2>{escape(study)}</h2>\n"
            '<div class="card scroll"><table class="cards ledger"><thead><tr>'
            '<th scope="col">Verdict</th><th scope="col">Claim</th><th scope="col">Ours</th>'
            '<th scope="col">Control</th><th scope="col">Where</th></tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )
    return f"""<h1>Claims</h1>
<p class="lead">In the newest run of each: {escape(summary(newest))}.</p>
<div class="row tools">
<label class="hidden-words" for="filter">Filter the claims</label>
<input type="search" class="grow" id="filter" autocomplete="off"
 placeholder="Filter: words of the claim, study, verdict">
<span class="soft small" id="shown" role="status"></span>
</div>
{"".join(parts)}
{unread}"""


def _unread(runs: Sequence[Entry]) -> str:
    """Name the runs whose claims are missing here, and what is wrong with them."""
    bad = [(run.name, run.trouble) for run in runs if run.trouble]
    if not bad:
        return ""
    items = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in bad[:MOST])
    more = f"<li>and {len(bad) - MOST} more</li>" if len(bad) > MOST else ""
    return (
        '<div class="card"><p>Runs whose claims cannot be read:</p>'
        f'<ul class="small">{items}{more}</ul></div>'
    )


def _claim(row: Row) -> str:
    run, finding = row.found[0]
    verdict = escape(finding.verdict)
    reason = (
        f'<p class="reason {verdict} small"><strong>Why:</strong> {escape(finding.reason)}</p>'
        if finding.reason
        else ""
    )
    outcome = control_class(finding)
    return (
        f'<tr><td><span class="badge {verdict}">{SYMBOLS[finding.verdict]} {verdict}</span></td>'
        f"<td><p>{escape(finding.sentence)}</p>"
        f'<p class="soft small">{escape(finding.source)}. Paper: {escape(finding.paper)}. '
        f"Criterion: {escape(finding.criterion)}</p>{reason}</td>"
        f'<td data-label="Ours"><p class="value">{escape(number(finding.ours))}</p>'
        f'<p class="soft small">{escape(interval(finding))}</p></td>'
        f'<td data-label="Control"><span class="value">{escape(number(finding.control))}</span> '
        f'<span class="{outcome} small">{escape(control_outcome(finding))}</span></td>'
        f'<td data-label="Where">{_where(run, finding)}{_others(row)}</td></tr>'
    )


def _where(run: Entry, finding: Finding) -> str:
    if not run.report:
        return f'<p><a href="{run.live}">{escape(run.name)}</a></p>'
    key = _quoted(finding.key)
    said = f'<span class="hidden-words"> of {escape(finding.key)} in {escape(run.name)}</span>'
    return (
        f'<p><a href="{run.address}figure?claim={key}">figure{said}</a> · '
        f'<a href="{run.address}#claim-{key}">verdict{said}</a></p>'
        f'<p class="small"><a href="{run.address}">{escape(run.name)}</a></p>'
    )


def _quoted(key: str) -> str:
    return quote(written(key), safe="")


def _others(row: Row) -> str:
    rest = row.found[1:]
    if not rest:
        return ""
    tally = Counter(finding.verdict for _, finding in rest)
    told = ", ".join(f"{count} {verdict}" for verdict, count in tally.items())
    items = "".join(
        f'<li><span class="badge {escape(finding.verdict)}">{SYMBOLS[finding.verdict]}'
        f'<span class="hidden-words"> {escape(finding.verdict)}</span></span> '
        f'<a href="{run.address}#claim-{_quoted(finding.key)}">{escape(run.name)}</a> '
        f"{escape(number(finding.ours))}</li>"
        for run, finding in rest[:MOST]
    )
    more = f"<li>and {len(rest) - MOST} more</li>" if len(rest) > MOST else ""
    return (
        f'<details class="small"><summary>{len(rest)} more run{"s" if len(rest) > 1 else ""}: '
        f"{escape(told)}</summary><ul>{items}{more}</ul></details>"
    )


_NAME = re.compile(r'([\w-]+)">')


def figure_of(report: str, finding: Finding) -> str | None:
    """Return the name of the figure in a report that speaks most of a claim.

    Figures do not say which claims they show, so words decide: those of the claim that few of the
    figures have in title, caption and name count most, and "Fig. 2" in its source finds ``fig2-``.
    """
    figures = {}
    # Cut first: a report may come from anywhere, and one pattern over all of it could take hours.
    for part in report.split('<figure class="card" id="figure-')[1:]:
        name, inside = _NAME.match(part), part.partition("</figure>")[0]
        if name is not None:
            title, caption = _between(inside, "h3"), _between(inside, "figcaption")
            figures[name[1]] = f"{name[1]} {title} {caption}"
    if not figures:
        return None
    words = {name: _words(unescape(text)) for name, text in figures.items()}
    spread = Counter(word for each in words.values() for word in each)
    asked = _words(f"{finding.key} {finding.sentence} {finding.measure}")
    numbers = set(re.findall(r"(?:fig(?:ure|s)?\.?|table)\s*(\d+)", finding.source.lower()))

    def weight(name: str) -> float:
        shared = sum(math.log1p(len(figures) / spread[word]) for word in asked & words[name])
        named = re.match(r"(?:fig|table)(\d+)", name)
        return shared / math.sqrt(max(len(words[name]), 1)) + (
            10.0 if named and named[1] in numbers else 0.0
        )

    return max(figures, key=weight)


def _between(text: str, tag: str) -> str:
    """Return what is inside the first tag of that name."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}
