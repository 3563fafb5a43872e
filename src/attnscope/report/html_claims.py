"""Claims in the HTML page: the verdict in one sentence, then all, folded by parts of the paper.

What fails, is undecided or proves nothing stands in the line that folds its part, so that nothing
has to be opened to know of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from attnscope.report.wording import (
    SYMBOLS,
    control_class,
    control_outcome,
    interval,
    number,
    summary,
)

if TYPE_CHECKING:
    from attnscope.claims import Finding

_NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"
_PART = re.compile(rf"[A-Za-z]+ {_NUMBER}(?:(?:, | and | to ){_NUMBER})*(?![\w.])|[^,;:(\[]+")


def verdict(findings: Sequence[Finding]) -> str:
    """Return the verdict in one sentence, and the shares of it as a bar; empty without claims."""
    if not findings:
        return ""
    return (
        f'<div class="verdict"><p class="score">{escape(summary(findings))}.</p>'
        f"{_bar(findings)}</div>"
    )


def claims(findings: Sequence[Finding]) -> str:
    """Return all claims, a folded part each; a single part is open."""
    parts: dict[str, list[Finding]] = {}
    for finding in findings:
        parts.setdefault(part_of(finding.source), []).append(finding)
    tools = (
        '<p class="tools" hidden><button type="button" data-unfold=".claims">Open all</button></p>'
    )
    folded = [_part(name, each, len(parts) == 1) for name, each in parts.items()]
    return "\n".join([tools] * (len(parts) > 1) + folded)


def part_of(source: str) -> str:
    """Return the part of a paper that a claim's source begins with.

    >>> part_of("Theorem 1, eq (9)"), part_of("sections 1 and 3.3, Fig 2"), part_of("beyond: eq 7")
    ('Theorem 1', 'Sections 1 and 3.3', 'Beyond')
    """
    found = _PART.match(source.strip())
    name = found[0].strip() if found else source.strip()
    return name[:1].upper() + name[1:] if name else "Other claims"


def _bar(findings: Iterable[Finding]) -> str:
    """Return the share of claims that hold, fail and are undecided, as one bar."""
    verdicts = [each.verdict for each in findings]
    parts = "".join(
        f'<span class="{name}" style="flex-grow:{verdicts.count(name)}"></span>'
        for name in SYMBOLS
        if name in verdicts
    )
    return f'<div class="verdicts" aria-hidden="true">{parts}</div>'


def _part(name: str, findings: Sequence[Finding], is_open: bool) -> str:
    rows = "\n".join(map(_finding, findings))
    heads = ("Verdict", "Claim", "Paper", "Ours", "Criterion", "Control")
    # Roles are said aloud since the narrow layout turns rows into cards.
    head = "".join(f'<th scope="col" role="columnheader">{each}</th>' for each in heads)
    told = "".join(map(_in_short, findings))
    return (
        f'<details class="card claims"{" open" if is_open else ""}><summary>'
        f'<span class="part"><span class="name">{escape(name)}</span> {_bar(findings)} '
        f'<span class="soft small">{escape(summary(findings))}</span></span>{told}</summary>\n'
        '<div class="scroll"><table role="table">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{rows}</tbody></table></div></details>'
    )


def _in_short(finding: Finding) -> str:
    """Return what the folded part has to say of a claim: nothing if all is as it should be."""
    marks = []
    if finding.verdict != "holds":
        marks.append(_badge(finding))
    if control_class(finding) == "alarm":
        outcome = escape(control_outcome(finding))
        marks.append(f'<span class="alarm small">{outcome}</span>')
    if not marks:
        return ""
    return f'\n<span class="short">{" ".join(marks)} {escape(finding.sentence)}</span>'


def _badge(finding: Finding) -> str:
    said = escape(finding.verdict)
    return f'<span class="badge {said}">{SYMBOLS[finding.verdict]} {said}</span>'


def _finding(finding: Finding) -> str:
    measure = (
        f'<p class="soft small">Measured: {escape(finding.measure)}.</p>' if finding.measure else ""
    )
    reason = (
        f'<p class="reason {escape(finding.verdict)} small"><strong>Why:</strong> '
        f"{escape(finding.reason)}</p>"
        if finding.reason
        else ""
    )
    control = control_class(finding)
    cells = (
        ("", _badge(finding)),
        (
            "",
            f"<p>{escape(finding.sentence)}</p>"
            f'<p class="soft small">{escape(finding.source)}</p>{measure}{reason}',
        ),
        ("Paper", escape(finding.paper)),
        (
            "Ours",
            f'<p class="value">{escape(number(finding.ours))}</p>'
            f'<p class="soft small">{escape(interval(finding))}</p>',
        ),
        ("Criterion", escape(finding.criterion)),
        (
            "Control",
            f"<p>{escape(finding.control_sentence)}</p>"
            f'<p><span class="value">{escape(number(finding.control))}</span>: '
            f'<span class="{control}">{escape(control_outcome(finding))}</span></p>',
        ),
    )
    tags = "".join(
        f'<td role="cell"{f" data-label={label!r}" if label else ""}>{body}</td>'
        for label, body in cells
    )
    return f'<tr role="row" id="claim-{escape(finding.key)}">{tags}</tr>'
