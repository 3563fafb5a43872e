"""The claims in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnscope.report.wording import SYMBOLS, control_outcome, number, span, summary

if TYPE_CHECKING:
    from attnscope.claims import Finding
    from attnscope.claims.diagnosis import Diagnosis
    from attnscope.report.page import Cell
    from attnscope.report.page import Table as Rows

COLORS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def claims_table(findings: Sequence[Finding]) -> RenderableType:
    """Return the claims, a few full lines each, and their count."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(width=11)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        word = f"{SYMBOLS[finding.verdict]} {finding.verdict}"
        table.add_row(Text(word, style=f"bold {COLORS[finding.verdict]}"), _told(finding))
    count = Text(summary(findings) + ".", style="bold")
    return Group(table, Text(), count) if findings else count


def plain_table(table: Rows) -> RenderableType:
    """Return a table of a report with its heading, a blank line after it."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in table.columns:
        drawn.add_column(_printable(heading), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(_cell(cell)) for cell in row))
    return Group(Text(_printable(table.title), style="bold"), drawn, Text())


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return number(cell) if isinstance(cell, float) else _printable(str(cell))


def diagnosis_list(diagnoses: Sequence[Diagnosis], note: str = "") -> RenderableType:
    """Return what is the matter with a watched model, a few lines each."""
    lines: list[RenderableType] = [Text("Diagnosis", style="bold")]
    for diagnosis in diagnoses:
        text = Text(_printable(diagnosis.sentence), style="yellow")
        text.append(f"\nsince step {diagnosis.since_step:,}", style="bold")
        for name, value in diagnosis.evidence.items():
            text.append(f"; {_printable(name)} {number(value)}", style="not bold default")
        text.append(f"\nWhat helps: {_printable(diagnosis.advice)}", style="dim default")
        lines.append(Padding(text, (0, 0, 1, 2)))
    if note:
        lines.append(Text(_printable(note)))
    return Group(*lines)


def _told(finding: Finding) -> Text:
    text = Text(_printable(finding.sentence))
    text.append(f"  {_printable(finding.source)}", style="dim")
    ends = span(finding.low, finding.high)
    text.append(f"\n{number(finding.ours)}", style="bold")
    text.append(f" ({ends})" if ends else " (no interval)")
    text.append(f", must be {_printable(finding.criterion)}")
    if finding.paper:
        text.append(f"; paper: {_printable(finding.paper)}", style="dim")
    text.append(f"\ncontrol, {_printable(finding.control_sentence)}: ", style="dim")
    text.append(f"{number(finding.control)}, ")
    loud = "green" if finding.control_fails else "bold white on red"
    text.append(control_outcome(finding), style=loud)
    if finding.reason:
        text.append(f"\nWhy: {_printable(finding.reason)}", style=COLORS[finding.verdict])
    return text


def _printable(text: str) -> str:
    """Replace control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
