"""The claims in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.report.wording import (
    SYMBOLS,
    control_outcome,
    interval,
    measured,
    summary,
)

if TYPE_CHECKING:
    from attnscope.claims import Finding

COLORS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def claims_table(findings: Sequence[Finding]) -> RenderableType:
    """Return the claims as a table that reads well from 80 columns on, and their count."""
    table = Table(show_lines=True, expand=True, header_style="bold")
    table.add_column("Verdict", width=11)
    table.add_column("Claim", ratio=5, overflow="fold")
    table.add_column("Paper, ours", ratio=4, overflow="fold")
    table.add_column("Control", ratio=4, overflow="fold")
    for finding in findings:
        table.add_row(_verdict(finding), _claim(finding), _values(finding), _control(finding))
    count = Text(summary(findings) + ".", style="bold")
    return Group(table, count) if findings else count


def _verdict(finding: Finding) -> Text:
    word = f"{SYMBOLS[finding.verdict]} {finding.verdict}"
    return Text(word, style=f"bold {COLORS[finding.verdict]}")


def _claim(finding: Finding) -> Text:
    text = Text(_printable(finding.sentence))
    text.append(f"\n{_printable(finding.source)}", style="dim")
    if finding.reason:
        text.append(f"\nWhy: {_printable(finding.reason)}", style=COLORS[finding.verdict])
    return text


def _values(finding: Finding) -> Text:
    unit = _printable(finding.unit)
    text = Text.assemble(
        ("paper ", "dim"),
        _printable(finding.paper),
        ("\nours  ", "dim"),
        (measured(finding.ours, unit), "bold"),
        (f"\n{interval(finding)}", "dim"),
        ("\nmust be ", "dim"),
        _printable(finding.criterion),
    )
    return text


def _control(finding: Finding) -> Text:
    text = Text(_printable(finding.control_sentence))
    text.append(f"\n{measured(finding.control, _printable(finding.unit))}: ")
    loud = "green" if finding.control_fails else "bold white on red"
    text.append(control_outcome(finding), style=loud)
    return text


def _printable(text: str) -> str:
    """Replace control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
