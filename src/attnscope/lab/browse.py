"""The markup of the list of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.lab.entries import Condition, Entry
from attnscope.markup import fill
from attnscope.report.wording import SYMBOLS
from attnscope.trajectory.manifest import WATCHED

if TYPE_CHECKING:
    from markupsafe import Markup

SHOWN = 100
"""Rows of the page itself; the others follow when it stands, hidden until they are asked for."""

WORDS: dict[Condition, str] = {
    "going": "still going",
    "finished": "finished",
    "unfinished": "not finished",
    "unreadable": "cannot be read",
}
KINDS: dict[Condition, str] = {"going": "holds", "finished": "", "unfinished": "undecided"}
"""Which badge a condition has."""


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
) -> Markup:
    """Return the markup of the list: its first rows, or all of them."""
    names = ", ".join(others[:20]) + (f" and {len(others) - 20} more" if len(others) > 20 else "")
    first = runs if whole else runs[:SHOWN]
    return fill(
        "lab/runs",
        root=root,
        runs=len(runs),
        going=sum(run.condition == "going" for run in runs),
        rows=run_rows(runs, first),
        more=len(first) < len(runs),
        others=names,
    )


def run_rows(runs: Sequence[Entry], shown: Sequence[Entry], *, hidden: bool = False) -> Markup:
    """Return the rows of some of the runs; what all of them share is not said."""
    said = settings(runs)
    return fill(
        "lab/run_rows",
        rows=[(run, said[run.name]) for run in shown],
        hidden=hidden,
        kinds=KINDS,
        words=WORDS,
        symbols=SYMBOLS,
        watched=WATCHED,
    )
