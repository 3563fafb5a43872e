"""The claims ledger: every claim that a run decides, with the way to its figure and its run."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import quote

from attnscope.claims import Finding
from attnscope.lab.entries import Entry
from attnscope.lab.safety import written
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

MOST = 40
"""Further runs that are named under a claim; the list of runs has all of them."""


@dataclass(frozen=True)
class Row:
    """One claim and what it came to in every run, the newest first."""

    study: str
    found: tuple[tuple[Entry, Finding], ...]

    @property
    def rest(self) -> tuple[tuple[Entry, Finding], ...]:
        """All but the newest."""
        return self.found[1:]

    @property
    def tally(self) -> str:
        """What it came to in the others."""
        counts = Counter(finding.verdict for _, finding in self.rest)
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def rows(runs: Sequence[Entry]) -> list[Row]:
    """Gather the findings of all runs, claim by claim, in the order of study and claim."""
    gathered: dict[tuple[str, str], list[tuple[Entry, Finding]]] = defaultdict(list)
    for run in runs:
        for finding in run.findings:
            gathered[run.study, finding.key].append((run, finding))
    order = {key: place for place, key in enumerate(gathered)}
    keys = sorted(gathered, key=lambda key: (key[0], order[key]))
    return [Row(study, tuple(gathered[study, key])) for study, key in keys]


def ledger_page(runs: Sequence[Entry]) -> Markup:
    """Return the markup of the ledger."""
    table = rows(runs)
    studies: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        studies[row.study].append(row)
    return fill(
        "lab/ledger",
        studies=studies,
        newest=summary([row.found[0][1] for row in table]),
        unread=[run for run in runs if run.trouble],
        most=MOST,
        symbols=SYMBOLS,
        control_class=control_class,
        control_outcome=control_outcome,
        interval=interval,
        number=number,
        quoted=_quoted,
    )


def _quoted(key: str) -> str:
    return quote(written(key), safe="")


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
