"""Claims in the HTML page: the verdict in one sentence, then all, folded by parts of the paper.

What fails, is undecided or proves nothing stands in the line that folds its part, so that nothing
has to be opened to know of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attnscope.markup import fill
from attnscope.report.wording import (
    SYMBOLS,
    control_class,
    control_outcome,
    interval,
    number,
    summary,
)

if TYPE_CHECKING:
    from markupsafe import Markup

    from attnscope.claims import Finding

_NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"
_PART = re.compile(rf"[A-Za-z]+ {_NUMBER}(?:(?:, | and | to ){_NUMBER})*(?![\w.])|[^,;:(\[]+")


def verdict(findings: Sequence[Finding]) -> Markup | str:
    """Return the verdict in one sentence, and the shares of it as a bar; empty without claims."""
    if not findings:
        return ""
    return fill("report/verdict", said=summary(findings), counts=_counts(findings))


def claims(findings: Sequence[Finding]) -> Markup | str:
    """Return all claims, a folded part each; a single part is open. Empty without claims."""
    if not findings:
        return ""
    parts: dict[str, list[Finding]] = {}
    for finding in findings:
        parts.setdefault(part_of(finding.source), []).append(finding)
    return fill(
        "report/claims",
        parts=parts,
        symbols=SYMBOLS,
        control_class=control_class,
        control_outcome=control_outcome,
        counts=_counts,
        interval=interval,
        number=number,
        summary=summary,
    )


def part_of(source: str) -> str:
    """Return the part of a paper that a claim's source begins with.

    >>> part_of("Theorem 1, eq (9)"), part_of("sections 1 and 3.3, Fig 2"), part_of("beyond: eq 7")
    ('Theorem 1', 'Sections 1 and 3.3', 'Beyond')
    """
    found = _PART.match(source.strip())
    name = found[0].strip() if found else source.strip()
    return name[:1].upper() + name[1:] if name else "Other claims"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the claims that hold, fail and are undecided; what there is none of is left out."""
    verdicts = [each.verdict for each in findings]
    return {name: verdicts.count(name) for name in SYMBOLS if name in verdicts}
